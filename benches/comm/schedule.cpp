// SPDX-License-Identifier: Apache-2.0
#include "benches/comm/schedule.h"

#include <algorithm>

#include "core/base/clock.h"

namespace howmany::benches {
namespace {

constexpr double kAlwaysSeconds = 0.02;  // cases below this are always measured
constexpr double kLeastSeconds = 2e-3;
constexpr double kOwn = 0.5;          // share of its weighted part that a case gets in any event
constexpr double kBeyond = 0.1;       // share of the total time by which cases may overrun
constexpr int64_t kSmall = 64 << 10;  // bytes; smaller messages take about as long as one byte

using Costs = std::map<int64_t, CaseCost>;

double weight(const BackendCase& c) {
  return 1 + std::min(static_cast<double>(c.bytes), 64e6) / 4e6;
}

std::string key(const BackendCase& c) {
  return fmt::format("{} {} {} {}", c.op, c.work.backend, name_of(c.dtype), c.work.count());
}

CaseCost scaled(const Costs::value_type& seen, int64_t bytes) {
  const double ratio = static_cast<double>(std::max(bytes, kSmall)) /
                       static_cast<double>(std::max(seen.first, kSmall));
  return {seen.second.fixed * ratio, seen.second.call * ratio};
}

std::function<double()> wall_clock() {
  return [start = Clock::now()] { return seconds_since(start); };
}

// The time of the cases that fit into `seconds`, the shortest first.
struct Fitting {
  double briefly = 0, usually = 0;
};

Fitting fitting(const std::vector<CaseCost>& shortest_first, double seconds, int calls) {
  Fitting all;
  for (const CaseCost& cost : shortest_first) {
    if (all.briefly + cost.of(1) > seconds) break;
    all.briefly += cost.of(1);
    all.usually += cost.of(calls);
  }
  return all;
}

double sum_below(const std::vector<CaseCost>& costs, double most) {
  double sum = 0;
  for (const CaseCost& cost : costs)
    if (cost.of(1) < most) sum += cost.of(1);
  return sum;
}

}  // namespace

Schedule::Schedule(const std::vector<BackendCase>& cases, double seconds, int least_calls,
                   std::function<double()> now)
    : cases_(cases),
      seconds_(seconds),
      calls_(least_calls),
      now_(now ? std::move(now) : wall_clock()) {}

std::optional<Deal> Schedule::take(const BackendCase& c) {
  const auto at = static_cast<size_t>(&c - cases_.data());
  next_ = at + 1;
  const double left = seconds_ - now_();
  const CaseCost cost = expected(c);
  const std::vector<CaseCost> others = later();
  const bool fits = cost.of(1) + sum_below(others, cost.of(1)) <= left + kBeyond * seconds_;
  if (!fits && cost.of(1) >= kAlwaysSeconds) return {};
  const Fitting rest = fitting(others, left + kBeyond * seconds_ - cost.of(1), calls_);
  const bool usual = cost.of(calls_) <= std::max(left - rest.briefly, kAlwaysSeconds);
  const int calls = usual ? calls_ : 1;
  const double share = weight(c) / weight_from(at);
  const double spare = left - cost.of(calls) - rest.usually;
  const double dealt = cost.of(calls) + std::max(0.0, spare) * share;
  return Deal{std::max({kLeastSeconds, dealt, kOwn * left * share}), calls};
}

double Schedule::weight_from(size_t at) const {
  double sum = 0;
  for (; at < cases_.size(); ++at) sum += weight(cases_[at]);
  return sum;
}

void Schedule::took(const BackendCase& c, const CaseCost& cost) { seen_[key(c)][c.bytes] = cost; }

// Uses the smaller of two estimates, so that one disturbed measurement does not affect all larger
// sizes.
CaseCost Schedule::expected(const BackendCase& c) const {
  const auto found = seen_.find(key(c));
  if (found == seen_.end()) return {};
  const Costs& seen = found->second;
  auto above = seen.upper_bound(c.bytes);
  if (above == seen.begin()) return scaled(*above, c.bytes);
  const CaseCost cost = scaled(*--above, c.bytes);
  if (above == seen.begin()) return cost;
  const CaseCost other = scaled(*--above, c.bytes);
  return {std::min(cost.fixed, other.fixed), std::min(cost.call, other.call)};
}

std::vector<CaseCost> Schedule::later() const {
  std::vector<CaseCost> costs;
  for (size_t i = next_; i < cases_.size(); ++i) costs.push_back(expected(cases_[i]));
  std::ranges::sort(costs, {}, [](const CaseCost& cost) { return cost.of(1); });
  return costs;
}

}  // namespace howmany::benches
