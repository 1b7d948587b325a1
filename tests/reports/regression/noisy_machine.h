// SPDX-License-Identifier: Apache-2.0
// Two sides of a gate with known times, for tests.
#pragma once

#include <cmath>
#include <functional>
#include <random>
#include <string>

#include "reports/regression/rules.h"

namespace howmany::reports {

struct BothSides {
  Suite base, candidate;
};

// A synthetic machine with measured noise: every block has its own speed (5 %), every launch 2 % of
// its own noise.
class NoisyMachine {
 public:
  explicit NoisyMachine(uint64_t seed) : random_(seed) {}

  // Returns both sides in pairs. The candidate does `extra` more work. `drift` returns the factor
  // of a block.
  BothSides sides(
      int blocks, int benchmarks, double extra,
      const std::function<double(int)>& drift = [](int) { return 1.0; }) {
    BothSides both;
    for (int block = 0; block < blocks; ++block) {
      const double speed = std::exp(0.05 * noise_(random_)) * drift(block);
      add_launch(both.base, launch(benchmarks, 1e-3 * speed), block);
      add_launch(both.candidate, launch(benchmarks, 1e-3 * speed * (1 + extra)), block);
    }
    both.base.context["howmany_blocks"] = both.candidate.context["howmany_blocks"] = "one gate";
    return both;
  }

 private:
  Suite launch(int benchmarks, double seconds) {
    Suite suite;
    for (int i = 0; i < benchmarks; ++i) {
      Benchmark& benchmark = suite.benchmarks.emplace_back();
      benchmark.name = "b" + std::to_string(i);
      benchmark.metrics["real_time"] = {{0, seconds * std::exp(0.02 * noise_(random_))}};
    }
    return suite;
  }

  std::mt19937_64 random_;
  std::normal_distribution<double> noise_;
};

}  // namespace howmany::reports
