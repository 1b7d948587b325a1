// SPDX-License-Identifier: Apache-2.0
// The rules of a gate, for live and recorded blocks. Values only; safe from any thread.
//
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
