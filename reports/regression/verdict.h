// The verdicts of a comparison: for each benchmark and metric, and as counts, an exit code and one
// sentence. Values only; safe from any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/statistics.h"
#include "reports/regression/fingerprint.h"
#include "reports/regression/metric.h"

namespace howmany::reports {

enum class Verdict {
  kSlower,        // worse for sure, by more than the floor
  kFaster,        // better for sure, by more than the floor
  kSame,          // for sure within `same_within`; exact metrics: equal
  kInconclusive,  // `why` says what is missing
  kFailed,        // a side reported an error
  kSkipped,       // a side skipped it
  kMissing,       // only in the base
  kNew,           // only in the candidate
};
const char* name_of(Verdict verdict);  // "SLOWER"

// What a change must surely exceed to count, unless told otherwise. Unpaired runs differ by more:
// whatever the machine did between them is in there.
constexpr double kPairedEffect = 0.01, kUnpairedEffect = 0.05;

struct JudgeOptions {
  double alpha = 0.05;
  std::optional<double> min_effect;  // of what counts; by default 1 % paired and 5 % unpaired
  double same_within = 0.03;
  std::vector<std::string> metrics;  // to judge, besides exact ones; by default real_time
  MetricKinds kinds;
  std::map<std::string, double> spread;  // A/A spread of this machine by benchmark, "" for others
};

struct Row {
  std::string benchmark, metric;
  MetricKind kind;
  Verdict verdict = Verdict::kInconclusive;
  std::string why;                                  // in words, where the numbers do not say it
  std::optional<double> base, candidate;            // medians, in kind.unit
  std::optional<double> change;                     // candidate / base - 1, Hodges-Lehmann
  std::optional<Interval> interval;                 // of the change, 95 %
  std::optional<double> p_slower, p_faster;         // Holm's, against the floor
  int64_t base_samples = 0, candidate_samples = 0;  // pairs, when paired
  double floor = 0;
  int64_t needed = 0;  // samples a side, or pairs, that would settle it; 0: nothing to settle
};

struct Comparison {
  std::string base, candidate;  // where they come from
  std::string commit, date;     // of the candidate, as its context has them
  Likeness likeness;
  bool paired = false;
  JudgeOptions options;
  std::vector<Row> rows;  // worst first within a verdict; verdicts in the order of the enum
  std::vector<std::pair<std::string, std::string>> renamed;  // probably
  std::optional<double> suite_change;                        // of all benchmarks together
  std::optional<Interval> suite_interval;
  std::vector<std::string> notes;
  bool identical = false;  // the programs are: nothing needs to be measured

  int64_t count(Verdict verdict) const;
  int64_t judged() const;         // rows that neither failed nor lack a side
  bool nothing_compared() const;  // no row has values of both sides
};

// 1 a regression, else 3 a side failed or nothing was compared, else 5 inconclusive when `strict`,
// else 0.
int exit_code(const Comparison& comparison, bool strict);
// "2 of 40 measurements are slower: ..." in one sentence.
std::string headline(const Comparison& comparison);

}  // namespace howmany::reports
