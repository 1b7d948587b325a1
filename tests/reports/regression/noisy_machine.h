// SPDX-License-Identifier: Apache-2.0
// A trace of launches with known times, for tests.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "reports/regression/trace.h"

namespace howmany::reports {

// A synthetic machine with measured noise: every block has its own speed, every launch 2 % of its
// own noise.
class NoisyMachine {
 public:
  explicit NoisyMachine(uint64_t seed) : random_(seed) {}

  std::vector<Launch> trace(int blocks, int benchmarks, double extra, const std::string& slow_arm) {
    std::vector<Launch> launches;
    for (int block = 0; block < blocks; ++block) {
      const double block_speed = std::exp(0.05 * noise_(random_));
      for (const std::string& arm : {std::string("base"), slow_arm}) {
        Launch launch{block, arm, 0, 0.1, {}};
        for (int i = 0; i < benchmarks; ++i) {
          const double work = 1e-3 * (arm == "base" ? 1 : 1 + extra);
          launch.values["b" + std::to_string(i)]["real_time"] = {work * block_speed *
                                                                 std::exp(0.02 * noise_(random_))};
        }
        launches.push_back(launch);
      }
    }
    return launches;
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> noise_;
};

}  // namespace howmany::reports
