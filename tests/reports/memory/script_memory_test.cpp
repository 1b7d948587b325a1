// SPDX-License-Identifier: Apache-2.0
#include "reports/memory/script_memory.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace howmany::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

ScriptMemory row(int ranks, double state_gb, double activations_gb) {
  ScriptMemory one{.ranks = ranks};
  one.parameters = one.gradients = 0.25e9 * state_gb;
  one.optimizer = 0.5e9 * state_gb;
  one.peak = 1e9 * (state_gb + activations_gb);
  one.reserved = 1.05 * one.peak;
  return one;
}

ScriptMemory refused(int ranks) { return {.ranks = ranks, .why = "it forms no group"}; }

TEST(ScriptMemory, TheFewestRanksThatFitAreTheAnswer) {
  const std::vector<ScriptMemory> rows = {row(1, 40, 2), row(2, 20, 2), row(4, 10, 2)};
  EXPECT_THAT(answer_of({"t.py", 80'000'000'000}, rows), HasSubstr("with 1 rank"));
  EXPECT_THAT(answer_of({"t.py", 40'000'000'000}, rows), HasSubstr("with 2 ranks"));
  EXPECT_THAT(answer_of({"t.py", 16'000'000'000}, rows), HasSubstr("with 4 ranks"));
  EXPECT_THAT(answer_of({"t.py", 0}, rows), HasSubstr("give --device-memory"));
}

TEST(ScriptMemory, ATenthIsLeftToLibraries) {
  const ScriptMemory one = row(1, 40, 2);  // 44.1 GB are reserved
  EXPECT_TRUE(fits(one, 49'000'001'000));
  EXPECT_FALSE(fits(one, 48'900'000'000));
  EXPECT_FALSE(fits(refused(1), 80'000'000'000));
}

TEST(ScriptMemory, WhatDoesNotFitIsToldWithWhatTakesMost) {
  const std::string state = answer_of({"t.py", 16'000'000'000}, {row(1, 40, 2), row(2, 20, 2)});
  EXPECT_THAT(state, StartsWith("t.py does not fit devices of 16 GB: it needs 23.1 GB"));
  EXPECT_THAT(state, HasSubstr("FSDP"));
  EXPECT_THAT(answer_of({"t.py", 16'000'000'000}, {row(1, 4, 40)}), HasSubstr("lower the batch"));
}

TEST(ScriptMemory, RowsThatCouldNotRunNeverWin) {
  const std::vector<ScriptMemory> rows = {row(1, 40, 2), refused(2)};
  EXPECT_THAT(answer_of({"t.py", 16'000'000'000}, rows), HasSubstr("with 1 rank"));
  EXPECT_THAT(render_memory({"t.py", 16'000'000'000}, rows), HasSubstr("2 ranks: it forms no"));
  EXPECT_THAT(answer_of({"t.py", 1}, {refused(1)}), StartsWith("No answer for t.py"));
}

TEST(ScriptMemory, JsonSaysHowEachRowWasFound) {
  ScriptMemory on_gpu = row(1, 4, 2);
  on_gpu.on_gpu = true;
  const auto json =
      to_json({"t.py", 16'000'000'000}, {on_gpu, row(1, 4, 2), row(2, 2, 2), refused(4)});
  EXPECT_EQ(json["schema"], "howmany.memory/1");
  EXPECT_EQ(json["rows"][0]["evidence"], "measured");
  EXPECT_EQ(json["rows"][1]["evidence"], "estimated");
  EXPECT_EQ(json["rows"][2]["evidence"], "rehearsed");
  EXPECT_TRUE(json["rows"][2]["fits"]);
  EXPECT_EQ(json["rows"][3]["why"], "it forms no group");
  EXPECT_FALSE(to_json({"t.py", 0}, {on_gpu})["rows"][0].contains("fits"));
}

TEST(ScriptMemory, TextSaysWhatWasCounted) {
  ScriptMemory on_gpu = row(1, 4, 2);
  on_gpu.on_gpu = true;
  EXPECT_THAT(render_memory({"t.py", 0}, {on_gpu}), HasSubstr("allocator on the GPU here"));
  const std::string estimated = render_memory({"t.py", 0}, {row(1, 4, 2)});
  EXPECT_THAT(estimated, HasSubstr("the tensors of a step were counted"));
  EXPECT_THAT(estimated, Not(HasSubstr("what FSDP divides")));
  EXPECT_THAT(render_memory({"t.py", 0}, {row(2, 4, 2)}), HasSubstr("what FSDP divides"));
}

}  // namespace
}  // namespace howmany::reports
