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
  const double once = expected(c).of(1);
  double weights = weight(c), shorter = 0, later = 0;
  for (auto at = static_cast<size_t>(&c - cases_.data()) + 1; at < cases_.size(); ++at) {
    const double other = expected(cases_[at]).of(1);
    weights += weight(cases_[at]);
    later += other;
    if (other < once) shorter += other;
  }
  if (once >= kAlwaysSeconds && !budget_.fits(once + shorter)) return {};
  const double seconds = once + budget_.share(weight(c), weights, once + later);
  const bool has_time = expected(c).of(kCallsForAnInterval) <= std::max(seconds, kAlwaysSeconds);
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
