// SPDX-License-Identifier: Apache-2.0
// The launches of a gate and its rules, for live and recorded blocks. A block is a launch of both
// sides. Values only; safe from any thread.
//
// Sample. The best repetition of one launch. Its index is the block, which pairs the sides.
// Screen. A few pairs of all benchmarks.
// Decision. Benchmarks that are not surely the same or better are measured again. Only these fresh
//   pairs decide, so a regression is always confirmed on new data.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "reports/regression/judge.h"

namespace howmany::reports {

// Adds the best repetition of each metric of `launch`, or the median if neither direction is
// better.
void add_launch(Suite& side, const Suite& launch, int64_t block, const MetricKinds& kinds = {});
// Returns the samples of blocks [first, last).
Suite blocks_of(const Suite& side, int64_t first, int64_t last);
// Returns Google Benchmark JSON of a suite, which `howmany compare` pairs again.
std::string bench_json(const Suite& suite);

// Returns the benchmarks that need fresh pairs: suspected or undecided.
std::vector<std::string> to_escalate(const Comparison& screen);
// Keeps only these benchmarks, or all if `names` is empty.
Suite only(const Suite& suite, const std::vector<std::string>& names);
// Replaces the verdicts of these benchmarks in `screen` by those in `fresh`.
Comparison settled(const Comparison& screen, const Comparison& fresh);
// For a gate without time for fresh pairs: suspicions become inconclusive.
Comparison unsettled(const Comparison& screen, const std::string& why);

// Chooses the order of the sides: AB BA or BA AB at random. Each side is first equally often, so
// linear drift cancels.
class RunOrder {
 public:
  explicit RunOrder(uint64_t seed) : random_(seed) {}
  bool base_first();

 private:
  std::mt19937_64 random_;
  bool first_ = false, half_ = false;
};

}  // namespace howmany::reports
