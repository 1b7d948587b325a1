// SPDX-License-Identifier: Apache-2.0
// Synthetic measurements: one worker makes 500 samples/s on a machine of 4 cores.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "reports/workers/measure.h"

namespace howmany::reports {

constexpr int kRounds = 10;

// Returns the stall of a loader that makes `rate` samples/s per device.
inline double example_stall(const WorkersFacts& facts, int workers, double rate) {
  const double demand = facts.asked.demand;
  return workers == 0 ? demand / (demand + rate) : std::max(0.0, 1 - rate / demand);
}

// Adds a turn in which the loader of each device makes `rate` samples/s.
inline void add_example_turn(WorkersFacts& facts, int workers, int round, double rate) {
  WorkersPoint& p = point_at(facts.points, workers);
  const double demand = facts.asked.demand;
  double taken = rate;
  if (demand > 0) {
    p.stalls.push_back(example_stall(facts, workers, rate));
    taken = demand * (1 - p.stalls.back());
  }
  p.rates[round] = facts.asked.devices * taken;
}

// A loader with a rate that saturates at its cores, and maybe a ceiling below that.
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
  facts.cores = 4;
  facts.bounds = {{"cores", 4, false, "4 cores"}, {"/dev/shm (PyTorch)", 100, true, "8 GB"}};
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

// Gives each number kRounds turns. `rate(workers, round)`: samples/s of a device.
template <typename Rate>
class SimulatedBench : public WorkersBench {
 public:
  explicit SimulatedBench(Rate rate) : rate_(std::move(rate)) {}
  bool measure(WorkersFacts& facts, const std::vector<int>& numbers, double) override {
    order.push_back(numbers);
    const int begin = next_round(facts.points);
    for (const int workers : numbers)
      for (int round = begin; round < begin + kRounds; ++round)
        add_example_turn(facts, workers, round, rate_(workers, round));
    return true;
  }
  double seconds_of(size_t) const override { return 1; }
  Order order;

 private:
  Rate rate_;
};

template <typename Rate>
Order take_all_turns(WorkersFacts& facts, const Rate& rate) {
  SimulatedBench<Rate> bench(rate);
  measure_workers(bench, facts, Budget(0));
  return bench.order;
}

// The noise of the machine's speed between rounds, relative to the noise of a turn.
constexpr double kWander = 4;

inline Order measure_on(const SimulatedMachine& machine, WorkersFacts& facts, double sd = 0,
                        uint64_t seed = 0) {
  facts.cores = machine.cores;
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
