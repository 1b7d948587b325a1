// SPDX-License-Identifier: Apache-2.0
// Synthetic results of loader_bench: one worker makes 500 samples/s on a machine of 4 cores.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>
#include "reports/workers/points.h"
#include "reports/workers/search.h"

namespace howmany::reports {

inline const char* kLoaderProbes = R"({
  "context": {"loader_files": "1000"},
  "benchmarks": [
    {"name": "loader/probe/solo/batch:64", "run_type": "iteration", "real_time": 128, "time_unit": "ms",
     "sample_s": 2e-3, "read_s": 1e-4, "decode_s": 1.2e-3, "transform_s": 6e-4, "rest_s": 1e-4,
     "file_bytes": 110000, "pixels": 2000000, "sample_bytes": 602120, "samples_per_s": 500},
    {"name": "loader/probe/handover/workers:1/batch:64", "run_type": "iteration", "real_time": 0.01,
     "time_unit": "ms", "sample_s": 2e-7},
    {"name": "loader/probe/collate/batch:64", "run_type": "iteration", "real_time": 6, "time_unit": "ms",
     "sample_s": 1e-4},
    {"name": "loader/probe/cores/threads:4", "run_type": "iteration", "real_time": 1, "time_unit": "s",
     "cores": 4},
    {"name": "loader/probe/read/threads:1/cache:warm", "run_type": "iteration", "real_time": 1,
     "time_unit": "ms", "files_per_s": 50000},
    {"name": "loader/probe/read/threads:4/cache:cold", "run_type": "iteration", "real_time": 1,
     "time_unit": "ms", "files_per_s": 800}
  ]
})";

inline LoaderProbes example_probes() {
  const std::string line =
      R"({"name": "loader/probe/solo/batch:64", "seconds": [0.127, 0.128, 0.129, 0.128]})";
  return probes_from(bench_from_json(nlohmann::json::parse(kLoaderProbes), "probes"),
                     samples_from_text(line + "\n", "samples"));
}

inline Metric example_metric(double value, double half) {
  return {value, "1/s", value - half, value + half, 10, "iterations"};
}

// Returns a point of a machine with `cores`, where each worker makes 500 samples/s.
inline WorkersPoint example_point(const WorkersFacts& facts, int workers, double cores = 4) {
  WorkersPoint p;
  p.workers = workers;
  const double rate = 500 * std::min<double>(std::max(1, workers), cores);
  p.rate = example_metric(rate * facts.asked.devices, 5);
  if (facts.asked.demand <= 0) return p;
  const double stall = workers == 0 ? facts.asked.demand / (facts.asked.demand + rate)
                                    : std::max(0.0, 1 - rate / facts.asked.demand);
  p.stall = Metric{stall, "ratio", std::max(0.0, stall - 0.001), stall + 0.001, 10, "iterations"};
  return p;
}

// Returns the busy cores of `workers` that wait for storage. A sample waits `wait` times its core
// time. Model: the machine repairman's queue with exponential times.
inline double busy_cores(int workers, double cores, double wait) {
  double share = 1, all = 0, busy = 0;  // share of time with k workers that do not wait
  for (int k = 0; k <= workers; ++k) {
    all += share;
    busy += share * std::min<double>(k, cores);
    share *= (workers - k) / (wait * std::min<double>(k + 1, cores));
  }
  return busy / all;
}

// Relative growth of a sample's core time per worker, if workers wait.
constexpr double kDearer = 2e-3;

// A loader with a rate that saturates at its cores, and maybe a ceiling that no probe sees.
struct SimulatedMachine {
  double cores, ceiling;
  bool soft;
  double waits = 1;  // time of a sample relative to its core time
  double rate(int workers) const {
    if (soft && waits > 1) return 500 * busy(workers) * std::exp(-kDearer * workers);
    const double w = 500 / waits * std::max(1, workers), c = 500 * std::min(cores, ceiling);
    return soft ? std::pow(std::pow(w, -5) + std::pow(c, -5), -0.2) : std::min(w, c);
  }
  double busy(int workers) const {
    return soft && waits > 1 ? busy_cores(std::max(1, workers), cores, waits - 1)
                             : rate(workers) / 500;
  }
  double best() const {
    double best = 0;
    for (int workers = 1; workers <= 64; ++workers) best = std::max(best, rate(workers));
    return best;
  }
  int needed() const {
    int workers = 0;
    while (rate(workers) < 0.98 * best()) ++workers;
    return workers;
  }
};

inline std::vector<SimulatedMachine> machines() {
  std::vector<SimulatedMachine> all;
  for (const double cores : {1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0})
    for (const double ceiling : {1.0, 0.6})
      for (const bool soft : {false, true}) all.push_back({cores, ceiling * cores, soft});
  return all;
}

inline WorkersFacts example_facts(double demand = 0, int devices = 1) {
  WorkersFacts facts;
  facts.asked = {.devices = devices, .demand = demand, .prefetch = 2, .batch = 64};
  facts.demand_from = demand > 0 ? "--samples-per-second" : "";
  facts.probes = example_probes();
  facts.bounds = {{"cores", 4, false, "4 cores"}, {"/dev/shm (PyTorch)", 100, true, "8 GB"}};
  facts.files = 1000;
  return facts;
}

// Returns a deterministic noise factor with standard deviation `sd`.
inline double noise(uint64_t seed, int what, size_t run, double sd) {
  if (!(sd > 0)) return 1;
  std::mt19937_64 random(seed * 1000003 + static_cast<uint64_t>(what) * 1009 + run);
  return std::exp(std::normal_distribution<double>(0, sd)(random));
}

// The measurements in order: one number alone, or several interleaved.
using Order = std::vector<std::vector<int>>;

inline int largest_of(const Order& order) {
  int largest = 0;
  for (const auto& numbers : order) largest = std::max(largest, std::ranges::max(numbers));
  return largest;
}

constexpr size_t kRoundsAtOnce = 50;

// Measures until the search has decided. `alone` makes a point, `in_turn` a rate, `busy` the busy
// cores of a round (0: unknown).
template <typename Alone, typename InTurn, typename Busy>
Order until_decided(WorkersFacts& facts, const Alone& alone, const InTurn& in_turn,
                    const Busy& busy) {
  Order order;
  for (size_t round = 0; order.size() <= 50; round += kRoundsAtOnce) {
    const std::vector<int> next = next_trials(facts);
    if (next.empty()) break;
    order.push_back(next);
    if (next.size() == 1) facts.points.push_back(alone(next[0], round));
    if (next.size() == 1) continue;
    std::vector<WorkersFacts::Round> rounds(kRoundsAtOnce), cores(kRoundsAtOnce);
    for (const int workers : next) {
      if (std::ranges::count(facts.points, workers, &WorkersPoint::workers) == 0)
        facts.points.push_back(alone(workers, round));
      for (size_t r = 0; r < kRoundsAtOnce; ++r) {
        rounds[r][workers] = in_turn(workers, round + r);
        if (const double all = busy(workers, round + r); all > 0) cores[r][workers] = all;
      }
    }
    std::erase_if(cores, [](const auto& told) { return told.empty(); });
    add_rounds(facts, rounds, cores);
  }
  return order;
}

// The noise of the machine's speed between moments, relative to the noise of a run.
constexpr double kWander = 4;
// The noise of busy cores relative to that of rates.
constexpr double kOfBusy = 0.25;

inline Order measure_on(const SimulatedMachine& machine, WorkersFacts& facts, double sd = 0,
                        uint64_t seed = 0) {
  const double demand = facts.asked.demand;
  facts.probes.cores = machine.cores;
  const auto rate = [&](int workers, size_t moment) {
    return machine.rate(workers) * noise(seed, workers, moment, sd) *
           noise(seed, 1 << 20, moment, kWander * sd);
  };
  const auto alone = [&](int workers, size_t moment) {
    WorkersPoint p = example_point(facts, workers);
    p.rate = example_metric(rate(workers, moment), 1);
    if (demand > 0) p.stall->value = workers == 0 ? 0.5 : std::max(0.0, 1 - p.rate.value / demand);
    return p;
  };
  const auto busy = [&](int workers, size_t moment) {
    return machine.busy(workers) * noise(seed, -workers, moment, kOfBusy * sd);
  };
  return until_decided(facts, alone, rate, busy);
}

// Searches on a machine with `cores` cores.
inline Order search(WorkersFacts& facts, double cores = 4) {
  const auto point = [&](int workers, size_t) { return example_point(facts, workers, cores); };
  return until_decided(
      facts, point, [&](int workers, size_t r) { return point(workers, r).rate.value; },
      [](int, size_t) { return 0.0; });
}

}  // namespace howmany::reports
