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

constexpr int kRounds = 10;

// Returns the stall of a loader that makes `rate` samples/s per device.
inline double example_stall(const WorkersFacts& facts, int workers, double rate) {
  const double demand = facts.asked.demand;
  return workers == 0 ? demand / (demand + rate) : std::max(0.0, 1 - rate / demand);
}

// Returns a point of a machine with `cores`, where each worker makes 500 samples/s. It had a turn
// in every round.
inline WorkersPoint example_point(const WorkersFacts& facts, int workers, double cores = 4) {
  WorkersPoint p;
  p.workers = workers;
  const double rate = 500 * std::min<double>(std::max(1, workers), cores);
  const double demand = facts.asked.demand;
  for (int round = 0; round < kRounds; ++round) {
    p.rates[round] = facts.asked.devices * (demand > 0 ? std::min(rate, demand) : rate);
    if (demand > 0) p.stalls.push_back(example_stall(facts, workers, rate));
  }
  return p;
}

// A loader with a rate that saturates at its cores, and maybe a ceiling that no probe sees.
struct SimulatedMachine {
  double cores, ceiling;
  bool soft;
  double waits = 1;  // time of a sample relative to its core time
  double rate(int workers) const {
    const double w = 500 / waits * std::max(1, workers), c = 500 * std::min(cores, ceiling);
    return soft ? std::pow(std::pow(w, -5) + std::pow(c, -5), -0.2) : std::min(w, c);
  }
  double best() const { return rate(64); }
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

// The numbers of each run of turns, in order.
using Order = std::vector<std::vector<int>>;

inline int largest_of(const Order& order) {
  int largest = 0;
  for (const auto& numbers : order) largest = std::max(largest, std::ranges::max(numbers));
  return largest;
}

constexpr int kRuns = 6;  // that a time budget suffices for

// Measures as LoaderMeasuring does. `rate(workers, round)`: samples/s of a device.
template <typename Rate>
Order take_all_turns(WorkersFacts& facts, const Rate& rate) {
  Order order;
  while (order.size() < kRuns) {
    const std::vector<int> numbers = next_numbers(facts);
    if (numbers.empty()) break;
    order.push_back(numbers);
    const int begin = next_round(facts.points);
    for (const int workers : numbers)
      for (int round = begin; round < begin + kRounds; ++round) {
        WorkersPoint& p = point_at(facts.points, workers);
        const double made = rate(workers, round), demand = facts.asked.demand;
        p.rates[round] = facts.asked.devices * (demand > 0 ? std::min(made, demand) : made);
        if (demand > 0) p.stalls.push_back(example_stall(facts, workers, made));
      }
  }
  return order;
}

// The noise of the machine's speed between rounds, relative to the noise of a turn.
constexpr double kWander = 4;

inline Order measure_on(const SimulatedMachine& machine, WorkersFacts& facts, double sd = 0,
                        uint64_t seed = 0) {
  facts.probes.cores = machine.cores;
  return take_all_turns(facts, [&](int workers, int round) {
    const auto moment = static_cast<size_t>(round);
    return machine.rate(workers) * noise(seed, workers, moment, sd) *
           noise(seed, 1 << 20, moment, kWander * sd);
  });
}

// Searches on a machine with `cores` cores.
inline Order search(WorkersFacts& facts, double cores = 4) {
  return take_all_turns(facts, [cores](int workers, int) {
    return 500 * std::min<double>(std::max(1, workers), cores);
  });
}

}  // namespace howmany::reports
