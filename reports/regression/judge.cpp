// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "core/base/schema/context.h"
#include "core/base/text/names.h"
#include "reports/regression/near_names.h"
#include "reports/regression/ranks.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

constexpr int64_t kManySamples = 9999;

// Samples of one metric of one benchmark. Sorted by block if paired.
struct Sides {
  std::vector<double> base, candidate;
};

Interval as_change(const Interval& log_interval) {
  return {std::expm1(log_interval.low), std::expm1(log_interval.high)};
}

bool all_equal(const std::vector<double>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

bool all_positive(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double x) { return x > 0; });
}

std::vector<double> logs(std::vector<double> values) {
  for (double& value : values) value = std::log(value);
  return values;
}

void compare_exactly(Row& row) {
  const double a = *row.base, b = *row.candidate;
  if (a != 0) row.change = b / a - 1;
  const bool worse = row.kind.better == Better::kLess ? b > a : b < a;
  row.verdict = a == b ? Verdict::kSame : worse ? Verdict::kSlower : Verdict::kFaster;
}

std::optional<Shift> test_ratios(Row& row, const Sides& sides, bool paired) {
  if (!all_positive(sides.base) || !all_positive(sides.candidate)) {
    row.why = "has values of 0 or less: no ratio";
    return std::nullopt;
  }
  const std::vector<double> a = logs(sides.base), b = logs(sides.candidate);
  const double sign = row.kind.better == Better::kLess ? 1 : -1;
  std::vector<double> worse = b, from = a;
  for (double& x : worse) x *= sign;
  for (double& x : from) x *= sign;
  const double bound = std::log1p(row.floor);
  Shift shift;
  if (paired) {
    for (size_t i = 0; i < worse.size(); ++i) worse[i] -= from[i];
    shift = paired_shift(worse);
    row.p_slower = signed_rank_above(worse, bound);
    for (double& x : worse) x = -x;
    row.p_faster = signed_rank_above(worse, bound);
  } else {
    shift = unpaired_shift(from, worse);
    row.p_slower = rank_sum_above(from, worse, bound);
    row.p_faster = rank_sum_above(worse, from, bound);
  }
  row.change = std::expm1(sign * shift.value);
  if (shift.interval) {
    Interval change = as_change(*shift.interval);
    if (sign < 0) change = {1 / (1 + change.high) - 1, 1 / (1 + change.low) - 1};
    row.interval = change;
  }
  return shift;
}

// Returns the number of samples that would settle the row at the current estimate. The interval's
// width shrinks with the square root of the number.
int64_t samples_to_settle(const Row& row, double shift, const Interval& interval, double same) {
  const double half = (interval.high - interval.low) / 2;
  const double edge = std::log1p(same), bound = std::log1p(row.floor);
  const double to_same = edge - std::abs(shift), to_other = std::abs(shift) - bound;
  const double distance = std::max({to_same, to_other, 1e-4});
  const auto now = static_cast<double>(std::min(row.base_samples, row.candidate_samples));
  const double times = half / distance;
  return static_cast<int64_t>(
      std::ceil(std::min<double>(kManySamples, now * std::max(1.1, times * times))));
}

// Returns "1 run a side" or "6 pairs".
std::string runs_text(int64_t count, bool paired) {
  return fmt::format("{} {}{}{}", count, paired ? "pair" : "run", count == 1 ? "" : "s",
                     paired ? "" : " a side");
}

// Fills `row`. Its kind and floor must be set. Returns the shift of the logarithms (positive is
// worse) if the p-values need Holm's correction. Returns nullopt if the row is decided or cannot be
// tested.
std::optional<Shift> test(Row& row, const Sides& sides, bool paired) {
  row.base_samples = static_cast<int64_t>(sides.base.size());
  row.candidate_samples = static_cast<int64_t>(sides.candidate.size());
  if (sides.base.empty() || sides.candidate.empty()) {
    row.why = "no block has both sides";
    return std::nullopt;
  }
  row.base = median(sides.base);
  row.candidate = median(sides.candidate);
  if (row.kind.exact && all_equal(sides.base) && all_equal(sides.candidate)) {
    compare_exactly(row);
    return std::nullopt;
  }
  if (row.kind.exact) {
    row.why = "differs from run to run of one program: tested, not compared exactly";
    row.kind.exact = false;
  }
  return test_ratios(row, sides, paired);
}

std::vector<double> values_of(const std::vector<Sample>& samples) {
  std::vector<double> values;
  values.reserve(samples.size());
  for (const Sample& sample : samples) values.push_back(sample.value);
  return values;
}

// Returns the samples of blocks that both sides have. `a` and `b` are sorted by block.
Sides in_pairs(const std::vector<Sample>& a, const std::vector<Sample>& b) {
  Sides sides;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i].index == b[j].index) {
      sides.base.push_back(a[i++].value);
      sides.candidate.push_back(b[j++].value);
    } else {
      ++(a[i].index < b[j].index ? i : j);
    }
  }
  return sides;
}

std::string text_in(const nlohmann::json& context, const char* key) {
  const auto it = context.find(key);
  return it != context.end() && it->is_string() ? it->get<std::string>() : "unknown";
}

class Judge {
 public:
  Judge(const Suite& base, const Suite& candidate, const JudgeOptions& options)
      : base_(base), candidate_(candidate), options_(options) {
    result_.base = base.source;
    result_.candidate = candidate.source;
    result_.commit = text_in(candidate.context, context::kCommit);
    result_.date = text_in(candidate.context, "date");
    result_.options = options;
    result_.likeness = likeness(base.context, candidate.context);
    const auto blocks = base.context.find("howmany_blocks");
    result_.paired = blocks != base.context.end() && blocks->is_string() &&
                     candidate.context.value("howmany_blocks", nlohmann::json()) == *blocks;
  }

  Comparison run() {
    add_notes();
    match();
    decide();
    judge_whole();
    guess_renames();
    sort_rows();
    return std::move(result_);
  }

 private:
  // A row that waits for Holm's correction.
  struct Open {
    size_t row;
    Shift shift;  // of the logarithms; positive is worse
  };

  void add_notes() {
    for (const Suite* suite : {&base_, &candidate_}) {
      result_.notes.insert(result_.notes.end(), suite->notes.begin(), suite->notes.end());
    }
    if (result_.paired) return;
    result_.notes.push_back(
        "the sides were not interleaved: a drift of the machine looks like a change of the code "
        "(howmany gate interleaves them)");
    if (!base_.launches || !candidate_.launches) {
      result_.notes.push_back(
          "repetitions within one process share its memory layout: runs in fresh processes differ "
          "more");
    }
  }

  void match() {
    std::unordered_map<std::string_view, const Benchmark*> others;
    for (const Benchmark& b : candidate_.benchmarks) others[b.name] = &b;
    for (const Benchmark& a : base_.benchmarks) {
      const auto it = others.find(a.name);
      if (it == others.end()) {
        add_row(a.name, Verdict::kMissing, "only in the base");
        continue;
      }
      compare(a, *it->second);
      others.erase(it);
    }
    for (const Benchmark& b : candidate_.benchmarks) {
      if (others.contains(b.name)) add_row(b.name, Verdict::kNew, "only in the candidate");
    }
  }

  Row& add_row(const std::string& name, Verdict verdict, std::string why) {
    Row& row = result_.rows.emplace_back();
    row.benchmark = name;
    row.metric = "real_time";
    row.kind = *metric_kind(row.metric);
    row.verdict = verdict;
    row.why = std::move(why);
    return row;
  }

  void compare(const Benchmark& a, const Benchmark& b) {
    if (!a.error.empty() || !b.error.empty()) {
      const bool base = !a.error.empty();
      add_row(a.name, Verdict::kFailed,
              fmt::format("{}: {}", base ? "base" : "candidate", base ? a.error : b.error));
      return;
    }
    if (!a.skipped.empty() || !b.skipped.empty()) {
      add_row(a.name, Verdict::kSkipped, a.skipped.empty() ? b.skipped : a.skipped);
      return;
    }
    if (a.metrics.empty() || b.metrics.empty()) {
      compare_aggregates(a, b);
      return;
    }
    size_t before = result_.rows.size();
    for (const auto& [metric, samples] : a.metrics) {
      const auto other = b.metrics.find(metric);
      if (other != b.metrics.end()) compare_metric(a.name, metric, samples, other->second);
    }
    if (result_.rows.size() == before) {
      add_row(a.name, Verdict::kInconclusive, "no metric to judge that both sides have");
    }
  }

  void compare_aggregates(const Benchmark& a, const Benchmark& b) {
    Row& row = add_row(a.name, Verdict::kInconclusive,
                       "aggregates only: run without --benchmark_report_aggregates_only, or pytest "
                       "with --benchmark-save-data");
    const auto value = [](const Benchmark& x) -> std::optional<double> {
      if (const auto it = x.metrics.find("real_time"); it != x.metrics.end()) {
        return median(values_of(it->second));
      }
      const auto it = x.aggregates.find("real_time");
      return it == x.aggregates.end() ? std::nullopt : std::optional(it->second);
    };
    row.base = value(a);
    row.candidate = value(b);
    if (row.base && row.candidate && *row.base > 0) row.change = *row.candidate / *row.base - 1;
    row.needed = fewest();
  }

  bool is_wanted(const std::string& metric, const MetricKind& kind) const {
    const auto& wanted = options_.metrics;
    const auto has = [&](const char* name) {
      return std::find(wanted.begin(), wanted.end(), name) != wanted.end();
    };
    if (kind.exact || options_.kinds.contains(metric) || has("all")) return true;
    return wanted.empty() ? metric == "real_time" : has(metric.c_str());
  }

  void compare_metric(const std::string& name, const std::string& metric,
                      const std::vector<Sample>& a, const std::vector<Sample>& b) {
    const auto kind = metric_kind(options_.kinds, metric);
    if (!kind || !is_wanted(metric, *kind)) return;
    const Sides sides = result_.paired ? in_pairs(a, b) : Sides{values_of(a), values_of(b)};
    Row& row = add_row(name, Verdict::kInconclusive, "");
    row.metric = metric;
    row.kind = *kind;
    row.floor = options_.min_effect.value_or(result_.paired ? kPairedEffect : kUnpairedEffect);
    if (skip_untimed(row, sides)) return;
    if (const auto shift = test(row, sides, result_.paired)) {
      open_.push_back({result_.rows.size() - 1, *shift});
    }
  }

  // An optimized-away loop takes a time that no clock resolves, and its ratios are meaningless.
  static bool skip_untimed(Row& row, const Sides& sides) {
    if (row.metric != "real_time" && row.metric != "cpu_time") return false;
    if (sides.base.empty() || sides.candidate.empty()) return false;
    const double base = median(sides.base), candidate = median(sides.candidate);
    if (std::max(base, candidate) >= kMinJudgedSeconds) return false;
    row.verdict = Verdict::kSkipped;
    row.why = "both times are below 0.1 ns: too short to be judged";
    row.base = base;
    row.candidate = candidate;
    return true;
  }

  int64_t fewest() const {
    const auto tests = static_cast<int64_t>(std::max<size_t>(1, open_.size()));
    return result_.paired ? fewest_pairs(options_.alpha, tests)
                          : fewest_samples(options_.alpha, tests);
  }

  // Applies Holm's correction to all tests of one direction. Improvements are a separate family.
  void adjust(std::optional<double> Row::*p) {
    std::vector<double> all;
    for (const Open& open : open_) all.push_back(*(result_.rows[open.row].*p));
    const std::vector<double> adjusted = holm(all);
    for (size_t i = 0; i < open_.size(); ++i) result_.rows[open_[i].row].*p = adjusted[i];
  }

  void decide() {
    adjust(&Row::p_slower);
    adjust(&Row::p_faster);
    for (const Open& open : open_) {
      Row& row = result_.rows[open.row];
      row.verdict = verdict_of(row);
      if (const auto& interval = open.shift.interval) {
        row.finds = std::expm1(std::max(0.0, std::log1p(row.floor) - interval->low));
      }
      if (row.verdict == Verdict::kInconclusive) explain(row, open.shift);
    }
  }

  Verdict verdict_of(const Row& row) const {
    if (*row.p_slower <= options_.alpha) return Verdict::kSlower;
    if (*row.p_faster <= options_.alpha) return Verdict::kFaster;
    const double within = std::max(options_.same_within, row.floor);
    const bool inside =
        row.interval && row.interval->low >= -within && row.interval->high <= within;
    return inside ? Verdict::kSame : Verdict::kInconclusive;
  }

  // Sets row.why and row.needed to the reason and the number of samples that would settle it.
  void explain(Row& row, const Shift& shift) const {
    const bool paired = result_.paired;
    const int64_t least = std::max<int64_t>(fewest(), paired ? 6 : 4);
    const int64_t have = std::min(row.base_samples, row.candidate_samples);
    row.needed = least;
    std::string why = have == 1 ? "is too few;" : "are too few;";
    if (shift.interval && have >= least) {
      const double within = std::max(options_.same_within, row.floor);
      row.needed = std::max(least, samples_to_settle(row, shift.value, *shift.interval, within));
      why = fmt::format("are too few for this noise; {}",
                        row.needed >= kManySamples ? "more than" : "about");
    }
    const bool launches = base_.launches || candidate_.launches;
    const char* option = paired ? "--pairs " : launches ? "" : "--benchmark_repetitions=";
    why = fmt::format("{} {} {} would do", runs_text(have, paired), why, row.needed);
    if (*option != 0 && row.needed < kManySamples)
      why += fmt::format(" ({}{})", option, row.needed);
    row.why += (row.why.empty() ? "" : "; ") + why;
  }

  // Computes the change of all benchmarks together, which may be too small to prove for one.
  void judge_whole() {
    std::vector<double> shifts;
    for (const Open& open : open_) {
      if (result_.rows[open.row].metric == "real_time") shifts.push_back(open.shift.value);
    }
    if (shifts.empty()) return;
    const Shift whole = paired_shift(shifts);
    if (!whole.interval) return;
    result_.suite_change = std::expm1(whole.value);
    result_.suite_interval = as_change(*whole.interval);
  }

  void guess_renames() {
    constexpr size_t kMaxRenames = 100;  // per side: all pairs are compared
    std::vector<std::string> gone, fresh;
    for (const Row& row : result_.rows) {
      if (row.verdict == Verdict::kMissing && gone.size() < kMaxRenames)
        gone.push_back(row.benchmark);
      if (row.verdict == Verdict::kNew && fresh.size() < kMaxRenames)
        fresh.push_back(row.benchmark);
    }
    result_.renamed = near_names(gone, fresh);
  }

  void sort_rows() {
    const auto order = [](const Row& row) {
      return std::tuple(row.verdict, -std::abs(row.change.value_or(0)));
    };
    std::stable_sort(result_.rows.begin(), result_.rows.end(),
                     [&](const Row& a, const Row& b) { return order(a) < order(b); });
  }

  const Suite& base_;
  const Suite& candidate_;
  const JudgeOptions& options_;
  Comparison result_;
  std::vector<Open> open_;
};

}  // namespace

Comparison judge(const Suite& base, const Suite& candidate, const JudgeOptions& options) {
  return Judge(base, candidate, options).run();
}

void refuse_unknown_metrics(const Suite& base, const Suite& candidate,
                            const JudgeOptions& options) {
  std::set<std::string> names;
  for (const Suite* suite : {&base, &candidate}) {
    for (const Benchmark& benchmark : suite->benchmarks) {
      for (const auto& [name, samples] : benchmark.metrics) names.insert(name);
      for (const auto& [name, value] : benchmark.aggregates) names.insert(name);
    }
  }
  const std::vector<std::string> known(names.begin(), names.end());
  for (const std::string& metric : options.metrics) {
    if (known.empty() || metric == "all" || names.contains(metric)) continue;
    throw InputError(fmt::format("--metric: no benchmark has \"{}\"{} (there are {})", metric,
                                 did_you_mean(metric, known), fmt::join(known, ", ")));
  }
}

}  // namespace howmany::reports
