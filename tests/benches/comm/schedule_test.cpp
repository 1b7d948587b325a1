// SPDX-License-Identifier: Apache-2.0
#include "benches/comm/schedule.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <ranges>

namespace howmany::benches {
namespace {

constexpr int kCalls = 3;

std::vector<BackendCase> all_cases() {
  BackendFlags flags;
  flags.backends = {"local"};
  flags.work.oversubscribe = true;
  flags.no_overlap = true;
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
  // Returns the deals by case; a skipped case has no calls. The first measurement of `disturbed`
  // costs much more.
  std::vector<Deal> measure(const std::vector<BackendCase>& cases, double seconds,
                            const BackendCase* disturbed = nullptr) {
    now_ = 0;
    Schedule schedule(cases, seconds, kCalls, [this] { return now_; });
    std::vector<Deal> deals;
    for (const BackendCase& c : cases) {
      deals.push_back(schedule.take(c).value_or(Deal{}));
      if (deals.back().calls == 0) continue;
      CaseCost cost = this->cost(c);
      if (&c == disturbed) cost = {20 * cost.fixed, 20 * cost.call};
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

TEST_F(ScheduleOnAHost, MeasuresEveryCaseWithAllItsCallsInThreeTimesTheTimeThatTheyNeed) {
  const double seconds = 3 * host_.sum(cases_, kCalls);
  EXPECT_EQ(with_calls(host_.measure(cases_, seconds), kCalls), std::ssize(cases_));
  EXPECT_NEAR(host_.now() / seconds, 1, 0.15);
}

TEST_F(ScheduleOnAHost, MeasuresEveryCaseWithFewerCallsBeforeOneIsLeftOut) {
  const double seconds = host_.sum(cases_, kCalls);
  const std::vector<Deal> deals = host_.measure(cases_, seconds);
  EXPECT_EQ(with_calls(deals, 0), 0);
  EXPECT_GT(with_calls(deals, 1), 0);
  EXPECT_GT(with_calls(deals, kCalls), with_calls(deals, 1));
  EXPECT_NEAR(host_.now() / seconds, 1, 0.15);
}

TEST_F(ScheduleOnAHost, LeavesOutTheLongestWhereThereIsNoTimeForOneCallOfEach) {
  const std::vector<Deal> deals = host_.measure(cases_, 0.5 * host_.sum(cases_, 1));
  double left_out = 0, measured = 0;
  for (size_t i = 0; i < cases_.size(); ++i)
    (deals[i].calls == 0 ? left_out : measured) += host_.cost(cases_[i]).call;
  const auto out = static_cast<double>(with_calls(deals, 0));
  const auto all = static_cast<double>(cases_.size());
  EXPECT_GT(out, 0);
  EXPECT_LT(out, all / 6);
  EXPECT_GT(left_out / out, 5 * measured / (all - out)) << "on average";
}

TEST_F(ScheduleOnAHost, LeavesNothingOutBecauseOneCaseWasDisturbed) {
  const double seconds = 1.5 * host_.sum(cases_, kCalls);
  for (const BackendCase& c : cases_) {
    if (c.bytes > 4 << 20) continue;  // larger cases may really use up the time of the others
    EXPECT_EQ(with_calls(host_.measure(cases_, seconds, &c), 0), 0) << c.name;
  }
}

TEST(Schedule, LeavesOutWhatCannotFit) {
  std::vector<BackendCase> cases(2);
  cases[0] = {"a", "all_reduce", "", {}, Dtype::f32, 64 << 10};
  cases[1] = {"b", "all_reduce", "", {}, Dtype::f32, 64 << 20};
  Schedule schedule(cases, 10, kCalls, [] { return 0; });
  EXPECT_EQ(schedule.take(cases[0]).value().calls, kCalls);
  schedule.took(cases[0], {.fixed = 1, .call = 2});
  EXPECT_DOUBLE_EQ(schedule.expected(cases[1]).of(1), 3072);
  EXPECT_FALSE(schedule.take(cases[1]));
}

TEST(Schedule, LeavesOutTheLongerForTheSakeOfAShorterThatIsLater) {
  const int64_t small = 64 << 10, large = 640 << 10;
  std::vector<BackendCase> cases(4);
  cases[0] = {"a", "all_reduce", "", {}, Dtype::f32, small};
  cases[1] = {"b", "broadcast", "", {}, Dtype::f32, small};
  cases[2] = {"c", "all_reduce", "", {}, Dtype::f32, large};
  cases[3] = {"d", "broadcast", "", {}, Dtype::f32, large};
  Schedule schedule(cases, 8.9, kCalls, [] { return 0; });
  EXPECT_TRUE(schedule.take(cases[0]));
  EXPECT_TRUE(schedule.take(cases[1]));
  schedule.took(cases[0], {.fixed = 0.5, .call = 0.4});
  schedule.took(cases[1], {.fixed = 0.05, .call = 0.05});
  EXPECT_FALSE(schedule.take(cases[2])) << "nine seconds, and one for the other";
  EXPECT_TRUE(schedule.take(cases[3]));
}

TEST(Schedule, MeasuresWhatTakesNoTimeEvenWhenNoneIsLeft) {
  std::vector<BackendCase> cases(2);
  cases[0] = {"a", "all_reduce", "", {}, Dtype::f32, 1000};
  cases[1] = {"b", "all_reduce", "", {}, Dtype::f32, 2000};
  Schedule schedule(cases, 1, kCalls, [] { return 2; });
  ASSERT_TRUE(schedule.take(cases[0]));
  schedule.took(cases[0], {.fixed = 1e-5, .call = 1e-5});
  EXPECT_EQ(schedule.take(cases[1]).value().calls, kCalls);
}

}  // namespace
}  // namespace howmany::benches
