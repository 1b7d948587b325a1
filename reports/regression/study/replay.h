// SPDX-License-Identifier: Apache-2.0
// Judges gates again on recorded launches, in windows without common blocks. Values only; safe from
// any thread.
//
// - false alarms: how often unchanged code is reported
// - power: how often a real slowdown is found
// - coverage: how often intervals contain the true value
// - other tools: the verdicts of their methods on the same launches
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
// Returns the Clopper-Pearson interval (95 %), which is exact and never too narrow.
Interval interval_of(const Share& share);

// Complete gates, with screen and fresh pairs.
struct GateTally {
  Share alarms, gains;  // share of gates with any benchmark called slower, faster
  Share inconclusive;   // share of measurements
};
GateTally replay_gates(const Suite& base, const Suite& candidate, const GateRules& rules);

// Judgements on `pairs` pairs, as in the last stage of a gate.
struct WindowTally {
  Share slower, faster, covered;  // share of benchmarks; covered: the interval contains `truth`
  std::map<std::string, Share> slower_each;           // by benchmark
  Share alarms;                                       // share of windows with any slower benchmark
  std::map<std::string, std::vector<double>> shifts;  // |log shift| per window
};
WindowTally replay_windows(const Suite& base, const Suite& candidate, int pairs,
                           const JudgeOptions& options, double truth);

// The method of another tool on `n` launches per side: interleaved as ours, or base first and then
// the candidate, as these tools are commonly used.
struct MethodTally {
  std::string method;
  Share alarms, slower;  // share of windows; share of benchmarks
};
std::vector<MethodTally> replay_others(const Suite& base, const Suite& candidate, int n,
                                       bool in_turns);

}  // namespace howmany::reports
