// SPDX-License-Identifier: Apache-2.0
// Summarizes a comparison: names, counts, exit code, headline.
#include "reports/regression/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "core/base/schema/exit_codes.h"
#include "core/base/text/format.h"
#include "core/base/text/table.h"
#include "reports/regression/text.h"

namespace howmany::reports {

const char* name_of(Verdict verdict) {
  constexpr std::array<const char*, 8> kNames = {"SLOWER", "FASTER",  "SAME",    "INCONCLUSIVE",
                                                 "FAILED", "SKIPPED", "MISSING", "NEW"};
  return kNames[static_cast<size_t>(verdict)];
}

int64_t Comparison::count(Verdict verdict) const {
  return std::count_if(rows.begin(), rows.end(),
                       [&](const Row& row) { return row.verdict == verdict; });
}

int64_t Comparison::judged() const {
  return std::ranges::count_if(
      rows, [](const Row& row) { return row.verdict <= Verdict::kInconclusive; });
}

bool Comparison::nothing_compared() const {
  return !identical && std::ranges::none_of(rows, [](const Row& row) {
    return row.verdict <= Verdict::kInconclusive && row.base && row.candidate;
  });
}

bool Comparison::nothing_judged() const {
  const auto is_tested = [](const Row& row) {
    return row.verdict <= Verdict::kInconclusive && !row.kind.exact;
  };
  return count(Verdict::kInconclusive) > 0 && std::ranges::none_of(rows, [&](const Row& row) {
           return is_tested(row) && row.verdict != Verdict::kInconclusive;
         });
}

int exit_code(const Comparison& comparison, bool strict) {
  if (comparison.count(Verdict::kSlower) > 0) return exit_code::kCheckFailed;
  if (comparison.count(Verdict::kFailed) > 0 || comparison.nothing_compared())
    return exit_code::kMeasurementFailed;
  if (comparison.nothing_judged()) return exit_code::kInconclusive;
  return strict && comparison.count(Verdict::kInconclusive) > 0 ? 5 : 0;
}

namespace {

std::string lower_name(Verdict verdict) {
  std::string name = name_of(verdict);
  std::ranges::transform(name, name.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  return name;
}

const Row* largest_change(const Comparison& c) {
  const Row* largest = nullptr;
  for (const Row& row : c.rows) {
    if (row.verdict != Verdict::kInconclusive || !row.change) continue;
    if (largest == nullptr || std::abs(*row.change) > std::abs(*largest->change)) largest = &row;
  }
  return largest;
}

// Returns the reason of an inconclusive row: "1 run a side, 6 are needed".
std::string missing_for(const Row& row, bool paired) {
  const int64_t have = std::min(row.base_samples, row.candidate_samples);
  if (have == 0 || row.needed <= have) return without_full_stop(row.why);
  const char* unit = paired ? (have == 1 ? "pair" : "pairs") : have == 1 ? "run" : "runs";
  return fmt::format("{} {}{}, {} are needed", have, unit, paired ? "" : " a side", row.needed);
}

// For a comparison with inconclusive tests only.
std::string nothing_judged_text(const Comparison& c) {
  const Row* largest = largest_change(c);
  const auto first = std::ranges::find(c.rows, Verdict::kInconclusive, &Row::verdict);
  const Row& example = largest != nullptr ? *largest : *first;
  std::string text =
      fmt::format("{} could be judged: {}",
                  c.judged() > c.count(Verdict::kInconclusive) ? "Only exact metrics" : "Nothing",
                  missing_for(example, c.paired));
  if (largest == nullptr) return text;
  const std::string name =
      example.benchmark + (example.metric == "real_time" ? "" : " " + example.metric);
  return text + fmt::format(". Largest change: {} {}", shortened(name, kNameWidth),
                            change_text(*example.change));
}

// Returns the most important result. `left` receives the verdicts that are not mentioned yet.
std::string opening(const Comparison& c, std::vector<Verdict>& left) {
  const int64_t judged = c.judged(), slower = c.count(Verdict::kSlower);
  const int64_t unclear = c.count(Verdict::kInconclusive), failed = c.count(Verdict::kFailed);
  if (c.nothing_compared()) {
    left.insert(left.end(), {Verdict::kInconclusive, Verdict::kSkipped});
    return "Nothing was compared";
  }
  if (slower > 0) return fmt::format("Slower: {} of {}", slower, number(judged, "measurement"));
  if (failed > 0) {
    std::erase(left, Verdict::kFailed);
    left.push_back(Verdict::kInconclusive);
    return fmt::format("Failed: {} of {}; no regression found in the other {}", failed,
                       number(failed + judged, "measurement"), judged);
  }
  if (c.nothing_judged()) return nothing_judged_text(c);
  if (unclear == 0) return fmt::format("No regression in {}", number(judged, "measurement"));
  return fmt::format("No regression found, but {} of {} {} inconclusive", unclear,
                     number(judged, "measurement"), unclear == 1 ? "is" : "are");
}

}  // namespace

std::string headline(const Comparison& c) {
  std::vector<Verdict> left = {Verdict::kFaster, Verdict::kFailed, Verdict::kMissing,
                               Verdict::kNew};
  std::string text = opening(c, left);
  for (const Verdict other : left) {
    if (const int64_t n = c.count(other)) text += fmt::format(", {} {}", n, lower_name(other));
  }
  return text + ".";
}

}  // namespace howmany::reports
