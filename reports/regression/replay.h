// Gates judged again on recorded launches, in windows that share no block: how often unchanged code
// raises an alarm, how often a real slowdown is found, whether intervals hold the truth; and what
// the methods of other tools would have said of the same launches. Values only; safe from any
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reports/regression/rules.h"
#include "reports/regression/suite.h"

namespace howmany::reports {

struct Share {
  int64_t hits = 0, of = 0;
  double value() const { return of > 0 ? static_cast<double>(hits) / static_cast<double>(of) : 0; }
  void add(bool hit) {
    hits += hit ? 1 : 0;
    ++of;
  }
};
// Clopper and Pearson's, 95 %: exact, never too narrow.
Interval interval_of(const Share& share);

// Whole gates, with their screen and their fresh pairs.
struct GateTally {
  Share alarms, gains;  // of gates: any benchmark called slower, faster
  Share inconclusive;   // of measurements
};
GateTally replay_gates(const Suite& base, const Suite& candidate, const GateRules& rules);

// Judged once on `pairs` pairs; what a gate decides by in the end.
struct WindowTally {
  Share slower, faster, covered;             // of benchmarks; covered: the interval holds `truth`
  std::map<std::string, Share> slower_each;  // by benchmark
  Share alarms;                              // of windows with any slower
  std::map<std::string, std::vector<double>> shifts;  // |log shift| of each window
};
WindowTally replay_windows(const Suite& base, const Suite& candidate, int pairs,
                           const JudgeOptions& options, double truth);

// Of another tool, on `n` launches a side: in turns as we measure, or base first and candidate
// afterwards, as the tool is commonly used.
struct MethodTally {
  std::string method;
  Share alarms, slower;  // of windows, of benchmarks
};
std::vector<MethodTally> replay_others(const Suite& base, const Suite& candidate, int n,
                                       bool in_turns);

}  // namespace howmany::reports
