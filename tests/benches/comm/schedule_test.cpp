// SPDX-License-Identifier: Apache-2.0
#include "benches/comm/schedule.h"

#include <gtest/gtest.h>

#include <random>
#include <ranges>

namespace howmany::benches {
namespace {

constexpr int kCalls = kCallsForAnInterval;

std::vector<BackendCase> all_cases() {
  BackendFlags flags;
  flags.backends = {"local"};
  flags.work.oversubscribe = true;
  return backend_cases(flags, {});
}

// A machine on which each operation has its own latency and rate. A case takes the time it was
// given, but at least its cost.
class Host {
 public:
  explicit Host(unsigned seed)
      : random_(seed), latency_(std::uniform_real_distribution(1e-6, 500e-6)(random_)) {}

  CaseCost cost(const BackendCase& c) {
    if (!rates_.contains(c.op)) rates_[c.op] = std::uniform_real_distribution(0.5e9, 4e9)(random_);
    const double call = latency_ + static_cast<double>(c.bytes) / rates_[c.op];
    return {3 * call, call};
  }
  double sum(const std::vector<BackendCase>& cases, int calls) {
    double sum = 0;
    for (const BackendCase& c : cases) sum += cost(c).of(calls);
    return sum;
  }
  // Returns the deals by case; a skipped case has no calls.
  std::vector<Deal> measure(const std::vector<BackendCase>& cases, double seconds) {
    now_ = 0;
    Schedule schedule(cases, Budget(seconds, [this] { return now_; }));
    std::vector<Deal> deals;
    for (const BackendCase& c : cases) {
      deals.push_back(schedule.take(c).value_or(Deal{}));
      if (deals.back().calls == 0) continue;
      const CaseCost cost = this->cost(c);
      schedule.took(c, cost);
      now_ += std::max(deals.back().seconds, cost.of(deals.back().calls));
    }
    return deals;
  }
  double now() const { return now_; }

 private:
  std::mt19937 random_;
  const double latency_;
  std::map<std::string, double> rates_;
  double now_ = 0;
};

int64_t with_calls(const std::vector<Deal>& deals, int calls) {
  return std::ranges::count(deals, calls, &Deal::calls);
}

class ScheduleOnAHost : public ::testing::Test {
 protected:
  const unsigned seed_ = std::random_device{}();
  ::testing::ScopedTrace trace_{__FILE__, __LINE__, fmt::format("seed {}", seed_)};
  Host host_{seed_};
  const std::vector<BackendCase> cases_ = all_cases();
};

TEST_F(ScheduleOnAHost, MeasuresEveryCaseWithAllCallsIfThereIsTime) {
  const double seconds = 4 * host_.sum(cases_, kCalls);
  EXPECT_EQ(with_calls(host_.measure(cases_, seconds), kCalls), std::ssize(cases_));
  EXPECT_NEAR(host_.now() / seconds, 1, 0.1);
}

TEST_F(ScheduleOnAHost, MeasuresEveryCaseOnceBeforeOneIsSkipped) {
  const std::vector<Deal> deals = host_.measure(cases_, 1.2 * host_.sum(cases_, 1));
  EXPECT_EQ(with_calls(deals, 0), 0);
  EXPECT_GT(with_calls(deals, 1), 0);
}

TEST_F(ScheduleOnAHost, SkipsOnlyLargeMessagesIfTimeIsShort) {
  const double seconds = 0.5 * host_.sum(cases_, 1);
  const std::vector<Deal> deals = host_.measure(cases_, seconds);
  EXPECT_GT(with_calls(deals, 0), 0);
  for (size_t i = 0; i < cases_.size(); ++i)
    EXPECT_TRUE(deals[i].calls > 0 || cases_[i].bytes >= 1 << 20) << cases_[i].name;
  EXPECT_LE(host_.now(), 1.1 * seconds);
}

std::vector<BackendCase> two_sizes() {
  std::vector<BackendCase> cases(2);
  cases[0] = {"a", "all_reduce", "", {}, Dtype::f32, 64 << 10};
  cases[1] = {"b", "all_reduce", "", {}, Dtype::f32, 64 << 20};
  return cases;
}

TEST(Schedule, SkipsACaseThatDoesNotFit) {
  const std::vector<BackendCase> cases = two_sizes();
  Schedule schedule(cases, Budget(10, [] { return 0; }));
  EXPECT_EQ(schedule.take(cases[0]).value().calls, kCalls);
  schedule.took(cases[0], {.fixed = 1, .call = 2});
  EXPECT_DOUBLE_EQ(schedule.expected(cases[1]).of(1), 3072);
  EXPECT_FALSE(schedule.take(cases[1]));
}

TEST(Schedule, MeasuresShortCasesIfNoTimeIsLeft) {
  const std::vector<BackendCase> cases = two_sizes();
  Schedule schedule(cases, Budget(1, [] { return 2; }));
  ASSERT_TRUE(schedule.take(cases[0]));
  schedule.took(cases[0], {.fixed = 1e-6, .call = 1e-6});
  EXPECT_EQ(schedule.take(cases[1]).value().calls, kCalls);
}

}  // namespace
}  // namespace howmany::benches
