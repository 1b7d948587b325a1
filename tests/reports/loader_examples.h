// What loader_bench leaves, made up: one worker makes 500 samples/s on a machine of 4 cores.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "reports/workers_advise.h"

namespace howmany {

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

// A machine of `cores` on which each worker makes 500 samples/s.
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

// A loader whose rate bends softly at its cores and may have a ceiling that no probe saw.
struct Machine {
  double cores, ceiling;
  bool soft;
  double waits = 1;  // a sample takes so many times what it keeps a core busy
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

inline std::vector<Machine> machines() {
  std::vector<Machine> all;
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

// The n-th run of each number is off by the same noise in each call.
inline double noise(uint64_t seed, int workers, size_t run, double sd) {
  if (!(sd > 0)) return 1;
  std::mt19937_64 random(seed * 1000003 + static_cast<uint64_t>(workers) * 1009 + run);
  return std::normal_distribution<double>(1, sd)(random);
}

// Measures until the search has decided; returns the order of trials.
inline std::vector<int> measure_on(const Machine& machine, WorkersFacts& facts, double sd = 0,
                                   uint64_t seed = 0) {
  std::vector<int> order;
  const double demand = facts.asked.demand;
  facts.probes.cores = machine.cores;
  while (const auto next = next_trial(facts)) {
    WorkersPoint p = example_point(facts, *next);
    const auto again = static_cast<size_t>(std::count(order.begin(), order.end(), *next));
    const double rate = machine.rate(*next) * noise(seed, *next, again, sd);
    p.rate = example_metric(rate, 1);
    if (demand > 0) p.stall->value = *next == 0 ? 0.5 : std::max(0.0, 1 - rate / demand);
    add_run(facts.points, p);
    order.push_back(*next);
    if (order.size() > 50) break;
  }
  return order;
}

// Measures on the made-up machine until the search has decided; returns the order of trials.
inline std::vector<int> search(WorkersFacts& facts, double cores = 4) {
  std::vector<int> order;
  while (const auto next = next_trial(facts)) {
    order.push_back(*next);
    add_run(facts.points, example_point(facts, *next, cores));
    if (order.size() > 50) break;
  }
  return order;
}

}  // namespace howmany
