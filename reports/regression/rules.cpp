// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace howmany::reports {
namespace {

std::set<std::string> names_of(const std::vector<Row>& rows) {
  std::set<std::string> names;
  for (const Row& row : rows) names.insert(row.benchmark);
  return names;
}

bool is_open(const Row& row) {
  return !row.kind.exact &&
         (row.verdict == Verdict::kSlower || row.verdict == Verdict::kInconclusive);
}

}  // namespace

std::vector<std::string> to_escalate(const Comparison& screen) {
  std::set<std::string> names;
  for (const Row& row : screen.rows) {
    if (is_open(row)) names.insert(row.benchmark);
  }
  return {names.begin(), names.end()};
}

Suite only(const Suite& suite, const std::vector<std::string>& names) {
  if (names.empty()) return suite;
  Suite part = suite;
  const std::set<std::string> wanted(names.begin(), names.end());
  std::erase_if(part.benchmarks, [&](const Benchmark& b) { return !wanted.contains(b.name); });
  return part;
}

Comparison settled(const Comparison& screen, const Comparison& fresh) {
  Comparison result = screen;
  const std::set<std::string> again = names_of(fresh.rows);
  std::erase_if(result.rows, [&](const Row& row) { return again.contains(row.benchmark); });
  result.rows.insert(result.rows.end(), fresh.rows.begin(), fresh.rows.end());
  std::stable_sort(result.rows.begin(), result.rows.end(),
                   [](const Row& a, const Row& b) { return a.verdict < b.verdict; });
  result.notes.push_back(fmt::format(
      "{} benchmarks were measured again, on fresh pairs, which alone decide", again.size()));
  return result;
}

Comparison unsettled(const Comparison& screen, const std::string& why) {
  Comparison result = screen;
  for (Row& row : result.rows) {
    if (row.verdict != Verdict::kSlower || row.kind.exact) continue;
    row.verdict = Verdict::kInconclusive;
    row.why =
        fmt::format("slower in {} pairs, not confirmed on fresh ones: {}", row.base_samples, why);
  }
  std::stable_sort(result.rows.begin(), result.rows.end(),
                   [](const Row& a, const Row& b) { return a.verdict < b.verdict; });
  return result;
}

bool RunOrder::base_first() {
  if (!half_) first_ = random_() % 2 == 0;
  half_ = !half_;
  return half_ == first_;
}

}  // namespace howmany::reports
