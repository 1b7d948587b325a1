#include "benches/schedule.h"

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

// A machine whose operations each have a latency and a rate of their own, on which a case takes
// what it was dealt, but no less than it costs.
class Host {
 public:
  explicit Host(unsigned seed) : random_(seed) {}

  CaseCost cost(const BackendCase& c) {
    if (!rates_.contains(c.op)) rates_[c.op] = std::uniform_real_distribution(0.5e9, 4e9)(random_);
    const double call = 20e-6 + static_cast<double>(c.bytes) / rates_[c.op];
    return {3 * call, call};
  }
  double sum(const std::vector<BackendCase>& cases, int calls) {
    double sum = 0;
    for (const BackendCase& c : cases) sum += cost(c).of(calls);
    return sum;
  }
  // The deals by case; a case that was left out has no calls. `disturbed` costs that much more
  // once.
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

TEST_F(ScheduleOnAHost, MeasureEveryCaseWithAllItsCallsInTwiceTheTimeThatTheyNeed) {
  const double seconds = 2 * host_.sum(cases_, kCalls);
  EXPECT_EQ(with_calls(host_.measure(cases_, seconds), kCalls), std::ssize(cases_));
  EXPECT_NEAR(host_.now() / seconds, 1, 0.1);
}

TEST_F(ScheduleOnAHost, MeasureEveryCaseWithFewerCallsBeforeOneIsLeftOut) {
  const double seconds = host_.sum(cases_, kCalls);
  const std::vector<Deal> deals = host_.measure(cases_, seconds);
  EXPECT_EQ(with_calls(deals, 0), 0);
  EXPECT_GT(with_calls(deals, 1), 0);
  EXPECT_GT(with_calls(deals, kCalls), with_calls(deals, 1));
  EXPECT_NEAR(host_.now() / seconds, 1, 0.1);
}

TEST_F(ScheduleOnAHost, LeaveOutTheLongestWhereThereIsNoTimeForOneCallOfEach) {
  const std::vector<Deal> deals = host_.measure(cases_, 0.5 * host_.sum(cases_, 1));
  double left_out = std::numeric_limits<double>::infinity(), measured = 0;
  for (size_t i = 0; i < cases_.size(); ++i)
    if (cases_[i].bytes == cases_.back().bytes)
      deals[i].calls == 0 ? left_out = std::min(left_out, host_.cost(cases_[i]).call)
                          : measured = std::max(measured, host_.cost(cases_[i]).call);
  EXPECT_GT(with_calls(deals, 0), 0);
  EXPECT_LT(with_calls(deals, 0), std::ssize(cases_) / 6);
  EXPECT_LT(measured, left_out) << "of the largest size";
}

TEST_F(ScheduleOnAHost, LeaveNothingOutBecauseOneCaseWasDisturbed) {
  const auto disturbed =
      std::ranges::find_if(cases_, [](const BackendCase& c) { return c.bytes == 4 << 20; });
  ASSERT_NE(disturbed, cases_.end());
  EXPECT_EQ(with_calls(host_.measure(cases_, 1.5 * host_.sum(cases_, kCalls), &*disturbed), 0), 0);
}

TEST(Schedule, LeavesOutWhatCannotFit) {
  std::vector<BackendCase> cases(2);
  cases[0] = {"a", "all_reduce", "", {}, Dtype::f32, 1000};
  cases[1] = {"b", "all_reduce", "", {}, Dtype::f32, 1'000'000};
  Schedule schedule(cases, 10, kCalls, [] { return 0; });
  EXPECT_EQ(schedule.take(cases[0]).value().calls, kCalls);
  schedule.took(cases[0], {.fixed = 1, .call = 2});
  EXPECT_DOUBLE_EQ(schedule.expected(cases[1]).of(1), 3000);
  EXPECT_FALSE(schedule.take(cases[1]));
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
