// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/counted.h"

#include <gmock/gmock.h>

#include "core/base/error.h"
#include "tests/reports/predict/counted_examples.h"
#include "tests/support/message_of.h"

namespace howmany::reports {
namespace {

using ::testing::HasSubstr;

std::string refusal(const nlohmann::json& json) {
  return message_of<InputError>([&] { counted_from(json, "count"); });
}

TEST(Counted, ReadsAStep) {
  const CountedStep step = count_of(count_json(8));
  EXPECT_EQ(step.world, 8);
  EXPECT_EQ(step.samples, 32);
  EXPECT_EQ(step.operations(), 3U);
  EXPECT_EQ(step.flop(), 3e12);
  EXPECT_EQ(step.gradient_bytes(), 30 << 20);
  ASSERT_EQ(step.collectives.size(), 1U);
  EXPECT_EQ(step.collectives[0].kind, Collective::kAllReduce);
  EXPECT_FALSE(step.collectives[0].waited);
  EXPECT_EQ(step.kinds[1].phase, OpPhase::kBackward);
  EXPECT_FALSE(step.loader);
}

TEST(Counted, AccumulatedGradientsAreExchangedOnce) {
  CountedStep step;
  step.micro_batches = 2;
  step.gradients = {{1, 8}, {2, 40}, {5, 8}, {6, 40}};
  ASSERT_EQ(step.last_gradients().size(), 2U);
  EXPECT_EQ(step.last_gradients()[0].place, 5U);
  EXPECT_EQ(step.gradient_bytes(), 48);
  step.gradients[1].bytes = 4;  // of two models
  EXPECT_EQ(step.last_gradients().size(), 4U);
}

TEST(Counted, ARefusedStepMayMissTheRest) {
  EXPECT_EQ(counted_from({{"refused", "a CUDA extension"}}, "count").refused, "a CUDA extension");
  EXPECT_NE(refusal({{"refused", ""}}), "");
  EXPECT_NE(refusal({{"refused", nullptr}}), "");
}

TEST(Counted, ACollectiveWithoutTimesRefusesTheStep) {
  nlohmann::json json = count_json(8);
  json["collectives"][0]["op"] = "all_to_all";
  EXPECT_THAT(count_of(json).refused, HasSubstr("all_to_all"));
}

TEST(Counted, NamesThePlaceOfAnError) {
  const auto changed = [](const std::string& pointer, const nlohmann::json& value) {
    nlohmann::json json = count_json(8);
    json[nlohmann::json::json_pointer(pointer)] = value;
    return refusal(json);
  };
  EXPECT_THAT(changed("/way", "guessed"), HasSubstr("way"));
  EXPECT_THAT(changed("/world", 0), HasSubstr("world"));
  EXPECT_THAT(changed("/kinds/0/work", "magic"), HasSubstr("kinds[0].work"));
  EXPECT_THAT(changed("/kinds/0/flop", -1), HasSubstr("kinds[0].flop"));
  EXPECT_THAT(changed("/kinds/0/flop", 1e30), HasSubstr("kinds[0].flop"));
  EXPECT_THAT(changed("/order/0", 3), HasSubstr("order[0]"));
  EXPECT_THAT(changed("/order/0", -2), HasSubstr("order[0]"));
  EXPECT_THAT(changed("/order/0", -1), HasSubstr("order"));       // called twice
  EXPECT_THAT(changed("/order", {0, 1, 2}), HasSubstr("order"));  // never called
  EXPECT_THAT(changed("/order", {-1}), HasSubstr("order"));       // no operation
  EXPECT_THAT(changed("/collectives/0/waited", 5), HasSubstr("waited"));
  EXPECT_THAT(changed("/collectives/0/ranks", 0), HasSubstr("ranks"));
  EXPECT_THAT(changed("/gradients/0/0", 9), HasSubstr("gradients[0]"));
  EXPECT_THAT(changed("/gradients/0", {1, 2, 3}), HasSubstr("gradients[0]"));
  EXPECT_THAT(changed("/memory/reserved", "much"), HasSubstr("memory.reserved"));
}

}  // namespace
}  // namespace howmany::reports
