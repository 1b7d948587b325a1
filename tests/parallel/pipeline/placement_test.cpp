// SPDX-License-Identifier: Apache-2.0
#include "parallel/pipeline/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "core/tensor/rng.h"
#include "tests/support/message_of.h"

namespace howmany {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string str(const std::vector<PlacedPart>& parts) {
  std::string text;
  for (const PlacedPart& p : parts)
    text += std::to_string(p.begin) + ".." + std::to_string(p.end) + "@" + p.device.str() + " ";
  return text;
}

std::string refusal(std::string_view text, size_t units = 10) {
  return message_of<std::invalid_argument>([&] { str(parse_placement(text, units)); });
}

TEST(ParsePlacement, ReadsRangesOfUnits) {
  EXPECT_EQ(str(parse_placement("0-3:cpu:0,4-9:cpu:1", 10)), "0..4@cpu:0 4..10@cpu:1 ");
  EXPECT_EQ(str(parse_placement("0:cpu:0+1-:cpu:1", 10)), "0..1@cpu:0 1..10@cpu:1 ");
  EXPECT_EQ(str(parse_placement("0:cpu:0,1:cpu:1,2-3:cpu:0", 4)),
            "0..1@cpu:0 1..2@cpu:1 2..4@cpu:0 ");
}

TEST(ParsePlacement, SaysWhatToWrite) {
  EXPECT_THAT(refusal("0-3:cpu:0,5-9:cpu:1"), HasSubstr("expected unit 4 next, found 5"));
  EXPECT_THAT(refusal("0-3:cpu:0,3-9:cpu:1"), HasSubstr("expected unit 4 next, found 3"));
  EXPECT_THAT(refusal("0-3:cpu:0"), HasSubstr("units 4 to 9 have no device"));
  EXPECT_THAT(refusal("0-10:cpu:0"), HasSubstr("units 0 to 10 of a model that has 0 to 9"));
  EXPECT_THAT(refusal("0-9"), HasSubstr("names no device: write it as 0-3:cpu:0,4-9:cpu:1"));
  EXPECT_THAT(refusal("a-9:cpu:0"), HasSubstr("has no unit number 'a'"));
  EXPECT_THAT(refusal("0-9:gpu:0"), HasSubstr("gpu"));
  EXPECT_THAT(refusal(""), HasSubstr("names no device"));
  EXPECT_THAT(refusal("5-2:cpu:0", 6), HasSubstr("expected unit 0"));
  EXPECT_THAT(refusal("0-99999999999999999999:cpu:0"), HasSubstr("has no unit number"));
}

TEST(Balance, HandWorkedCases) {
  const auto alike = [](const UnitCosts& costs, size_t parts) {
    return balance(std::vector(parts, costs));
  };
  EXPECT_THAT(alike({1, 1, 1, 1}, 2), ElementsAre(0, 2, 4));
  EXPECT_THAT(alike({5, 1, 1, 1}, 2), ElementsAre(0, 1, 4));
  EXPECT_THAT(alike({4, 17, 4}, 3), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(alike({2, 3}, 1), ElementsAre(0, 2));
}

TEST(Balance, GivesMoreUnitsToTheFasterDevice) {
  const UnitCosts fast(7, 1), slow(7, 3), slower(7, 5);
  EXPECT_THAT(balance({fast, slower}), ElementsAre(0, 6, 7));
  EXPECT_THAT(balance({slower, fast}), ElementsAre(0, 1, 7));
  EXPECT_THAT(balance({fast, slow, fast}), ElementsAre(0, 3, 4, 7));
}

double slowest(const std::vector<UnitCosts>& parts, const std::vector<size_t>& bounds) {
  double most = 0;
  for (size_t p = 0; p + 1 < bounds.size(); ++p) {
    double sum = 0;
    for (size_t i = bounds[p]; i < bounds[p + 1]; ++i) sum += parts[p][i];
    most = std::max(most, sum);
  }
  return most;
}

double best_by_trying_all(const std::vector<UnitCosts>& parts) {
  double best = 1e300;
  const size_t units = parts[0].size();
  std::vector<size_t> bounds{0};
  const std::function<void()> extend = [&] {
    if (bounds.size() == parts.size()) {
      bounds.push_back(units);
      best = std::min(best, slowest(parts, bounds));
      return bounds.pop_back();
    }
    const size_t left = parts.size() - bounds.size();
    for (size_t next = bounds.back() + 1; next + left <= units; ++next) {
      bounds.push_back(next);
      extend();
      bounds.pop_back();
    }
  };
  extend();
  return best;
}

TEST(Balance, IsTheOptimum) {
  const Rng rng(11);
  uint64_t draw = 0;
  for (int round = 0; round < 200; ++round) {
    const int64_t units = 1 + rng.below(draw++, 9), count = 1 + rng.below(draw++, units);
    std::vector parts(static_cast<size_t>(count), UnitCosts(static_cast<size_t>(units)));
    for (UnitCosts& costs : parts)
      for (double& cost : costs) cost = static_cast<double>(rng.below(draw++, 20));
    const std::vector<size_t> bounds = balance(parts);
    ASSERT_EQ(std::ssize(bounds), count + 1);
    EXPECT_TRUE(std::ranges::is_sorted(bounds, std::less_equal<>()));
    EXPECT_DOUBLE_EQ(slowest(parts, bounds), best_by_trying_all(parts));
  }
}

TEST(Balance, RefusesMorePartsThanUnits) {
  EXPECT_THROW(balance({{1, 2}, {1, 2}, {1, 2}}), std::invalid_argument);
  EXPECT_THROW(balance({}), std::invalid_argument);
}

TEST(MeasureUnits, TimesEveryUnitOfAModelThatTakesImages) {
  const ModelSpec m = make_model("resnet18:image=32,width=2,classes=3");
  const std::vector<Unit> all = units(*m.layer);
  const std::vector<double> seconds =
      measure_units(all, {.rows = 2, .sample = m.sample, .repeats = 1});
  ASSERT_EQ(seconds.size(), all.size());
  for (const double s : seconds) EXPECT_GT(s, 0);
}

// The last unit, the logits, has most FLOP, and the first one, the embedding, only moves bytes.
TEST(MeasureUnits, CutsOfAGpuAreNotThoseOfACpuCore) {
  const ModelSpec model = make_model("gpt2:size=xl,tied=no");
  const std::vector<Unit> all = units(*model.layer);
  const auto cuts = [&](double flop_per_byte) {
    const UnitCosts costs = measure_units(all, {.rows = 2,
                                                .sample = model.sample,
                                                .input = model.input,
                                                .device = {DeviceType::meta, 0},
                                                .flop_per_byte = flop_per_byte});
    return balance(std::vector(8, costs));
  };
  EXPECT_NE(cuts(kCpuFlopPerByte), cuts(300));
}

}  // namespace
}  // namespace howmany
