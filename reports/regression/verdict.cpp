// Summarizes a comparison: names, counts, exit code, headline.
#include "reports/regression/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

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

int exit_code(const Comparison& comparison, bool strict) {
  if (comparison.count(Verdict::kSlower) > 0) return 1;
  if (comparison.count(Verdict::kFailed) > 0 || comparison.nothing_compared()) return 3;
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

// Returns the most important result. `left` receives the verdicts that are not mentioned yet.
std::string opening(const Comparison& c, std::vector<Verdict>& left) {
  const int64_t judged = c.judged(), slower = c.count(Verdict::kSlower);
  const int64_t unclear = c.count(Verdict::kInconclusive), failed = c.count(Verdict::kFailed);
  if (c.nothing_compared()) {
    left.insert(left.end(), {Verdict::kInconclusive, Verdict::kSkipped});
    return "Nothing was compared";
  }
  if (slower > 0) return fmt::format("Slower: {} of {} measurements", slower, judged);
  if (failed > 0) {
    std::erase(left, Verdict::kFailed);
    left.push_back(Verdict::kInconclusive);
    return fmt::format("Failed: {} of {} measurements; no regression found in the other {}", failed,
                       failed + judged, judged);
  }
  if (unclear == 0) return fmt::format("No regression in {} measurements", judged);
  return fmt::format("No regression found, but {} of {} measurements are inconclusive", unclear,
                     judged);
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
