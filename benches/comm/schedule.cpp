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
  const CaseCost cost = expected(c);
  if (cost.of(1) >= kAlwaysSeconds && !budget_.fits(cost.of(1))) return {};
  double weights = 0;
  for (auto later = static_cast<size_t>(&c - cases_.data()); later < cases_.size(); ++later)
    weights += weight(cases_[later]);
  const double seconds = std::max(kMinSeconds, budget_.share(weight(c), weights));
  const bool has_time = cost.of(kCallsForAnInterval) <= std::max(2 * seconds, kAlwaysSeconds);
  return Deal{seconds, has_time ? kCallsForAnInterval : 1};
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
