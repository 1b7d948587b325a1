// SPDX-License-Identifier: Apache-2.0
// The verdicts of a comparison for each benchmark and metric, with counts, an exit code and a
// headline. Values only; safe from any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/statistics.h"
#include "reports/regression/fingerprint.h"
#include "reports/regression/metric.h"

namespace howmany::reports {

enum class Verdict {
  kSlower,        // surely worse by more than the floor
  kFaster,        // surely better by more than the floor
  kSame,          // surely within `same_within`; exact metrics: equal
  kInconclusive,  // `why` has the reason
  kFailed,        // a side reported an error
  kSkipped,       // skipped by a side, or too short to be judged
  kMissing,       // only in the base
  kNew,           // only in the candidate
};
const char* name_of(Verdict verdict);  // "SLOWER"

// Default floors: a change must surely exceed them to count. Unpaired runs differ by more, because
// they include changes of the machine between them.
constexpr double kPairedEffect = 0.01, kUnpairedEffect = 0.05;
constexpr double kMinJudgedSeconds = 1e-10;  // times below it on both sides are skipped

struct JudgeOptions {
  double alpha = 0.05;
  std::optional<double> min_effect;  // smallest change that counts: 1 % paired, 5 % unpaired
  double same_within = 0.03;
  std::vector<std::string> metrics;  // judged in addition to exact ones; default: real_time
  MetricKinds kinds;
};

struct Row {
  std::string benchmark, metric;
  MetricKind kind;
  Verdict verdict = Verdict::kInconclusive;
  std::string why;                                  // text, if the numbers do not explain it
  std::optional<double> base, candidate;            // medians, in kind.unit
  std::optional<double> change;                     // candidate / base - 1, Hodges-Lehmann
  std::optional<Interval> interval;                 // of the change, 95 %
  std::optional<double> p_slower, p_faster;         // corrected by Holm; H0: within the floor
  int64_t base_samples = 0, candidate_samples = 0;  // pairs if paired
  double floor = 0;
  std::optional<double> finds;  // smallest slowdown whose interval would lie above the floor
  int64_t needed = 0;           // samples per side, or pairs, that would settle it; 0: none
};

struct Comparison {
  std::string base, candidate;  // sources
  std::string commit, date;     // of the candidate, from its context
  Likeness likeness;
  bool paired = false;
  JudgeOptions options;
  std::vector<Row> rows;  // worst first within a verdict; verdicts in the order of the enum
  std::vector<std::pair<std::string, std::string>> renamed;  // likely renamed benchmarks
  std::optional<double> suite_change;                        // over all benchmarks
  std::optional<Interval> suite_interval;
  std::vector<std::string> notes;
  bool identical = false;  // the programs are identical; nothing was measured

  int64_t count(Verdict verdict) const;
  int64_t judged() const;         // rows that neither failed nor lack a side
  bool nothing_compared() const;  // no row has values of both sides
  // True if there are tests and all are inconclusive. Exact metrics need no test, and do not count.
  bool nothing_judged() const;
};

// Returns the first that applies of 1, 3, 5 and 0 (see command.h).
int exit_code(const Comparison& comparison, bool strict);
// Returns the result in one or two sentences, "Slower: 2 of 40 measurements.".
std::string headline(const Comparison& comparison);

}  // namespace howmany::reports
