// The rules of a gate, apart from how it measures, so that the same rules judge live blocks and
// recorded ones: a screen on a few pairs, then everything that is not surely the same or better is
// measured once more, on fresh pairs, which alone decide. A regression is thus always confirmed on
// data that did not raise the suspicion. Values only; safe from any thread.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "reports/regression/judge.h"

namespace howmany::reports {

struct GateRules {
  int screen = 10, pairs = 40;
  JudgeOptions judge;
};

// Benchmarks that need fresh pairs: suspected or undecided.
std::vector<std::string> to_escalate(const Comparison& screen);
// Only these benchmarks; all of them when `names` is empty.
Suite only(const Suite& suite, const std::vector<std::string>& names);
// The verdicts of `fresh` in place of those of the same benchmarks in `screen`.
Comparison settled(const Comparison& screen, const Comparison& fresh);
// Without time for fresh pairs: a suspicion is no verdict.
Comparison unsettled(const Comparison& screen, const std::string& why);

// Who goes first in the blocks to come: AB BA or BA AB, at random, so that each side is first as
// often as the other and drift in a line cancels.
class Turns {
 public:
  explicit Turns(uint64_t seed) : random_(seed) {}
  bool base_first();

 private:
  std::mt19937_64 random_;
  bool first_ = false, half_ = false;
};

}  // namespace howmany::reports
