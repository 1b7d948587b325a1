// SPDX-License-Identifier: Apache-2.0
#include "benches/comm/schedule.h"

#include <algorithm>

namespace howmany::benches {
namespace {

constexpr double kAlwaysSeconds = 0.02;  // cases below this are always measured
constexpr double kMinSeconds = 2e-3;
constexpr int64_t kSmall = 64 << 10;  // bytes; smaller messages take about as long as one byte

double weight(const BackendCase& c) {
  return 1 + std::min(static_cast<double>(c.bytes), 64e6) / 4e6;
}

std::string key(const BackendCase& c) {
  return fmt::format("{} {} {} {}", c.op, c.work.backend, name_of(c.dtype), c.work.count());
}

}  // namespace

Schedule::Schedule(const std::vector<BackendCase>& cases, Budget budget)
    : cases_(cases), budget_(std::move(budget)) {}

std::optional<Deal> Schedule::take(const BackendCase& c) const {
  const double once = expected(c).of(1), usual = expected(c).of(kCallsForAnInterval);
  double weights = weight(c), shorter = 0, later_once = 0, later_usual = 0;
  for (auto at = static_cast<size_t>(&c - cases_.data()) + 1; at < cases_.size(); ++at) {
    const CaseCost other = expected(cases_[at]);
    weights += weight(cases_[at]);
    later_once += other.of(1);
    later_usual += other.of(kCallsForAnInterval);
    if (other.of(1) < once) shorter += other.of(1);
  }
  if (once >= kAlwaysSeconds && !budget_.fits(once + shorter)) return {};
  if (budget_.fits(usual + later_usual)) {
    const double spare = budget_.share(weight(c), weights, usual + later_usual);
    return Deal{std::max(kMinSeconds, usual + spare), kCallsForAnInterval};
  }
  // Costs of larger sizes may be overestimated, so a tenth of the share is safe from them.
  const double seconds = std::max(once + budget_.share(weight(c), weights, once + later_once),
                                  0.1 * budget_.share(weight(c), weights));
  const bool has_time = usual <= std::max(seconds, kAlwaysSeconds);
  return Deal{std::max(kMinSeconds, seconds), has_time ? kCallsForAnInterval : 1};
}

void Schedule::took(const BackendCase& c, const CaseCost& cost) { seen_[key(c)][c.bytes] = cost; }

CaseCost Schedule::expected(const BackendCase& c) const {
  const auto found = seen_.find(key(c));
  if (found == seen_.end()) return {};
  auto seen = found->second.upper_bound(c.bytes);
  if (seen != found->second.begin()) --seen;
  const double ratio = static_cast<double>(std::max(c.bytes, kSmall)) /
                       static_cast<double>(std::max(seen->first, kSmall));
  return {seen->second.fixed * ratio, seen->second.call * ratio};
}

}  // namespace howmany::benches
