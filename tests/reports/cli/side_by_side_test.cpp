// SPDX-License-Identifier: Apache-2.0
#include "reports/cli/side_by_side.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace howmany::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

nlohmann::json gpus_answer(const std::string& text) {
  const nlohmann::json row = {
      {"devices", 2},       {"best", true},          {"samples_per_s", 1500}, {"speedup", 1.5},
      {"efficiency", 0.75}, {"efficiency_low", 0.7}, {"efficiency_high", 0.8}};
  const nlohmann::json one = {
      {"model", text}, {"recommended", 2}, {"certain", true}, {"because", text}, {"table", {row}}};
  return {{"gpus", {{"cases", {one, one}}}}};
}

std::vector<NamedSummary> runs(const std::string& text) {
  NamedSummary a{text, {}}, b{"b", {}}, c{"c", {}};
  a.summary.answer = gpus_answer(text);
  b.summary.answer = {{"workers", {{"recommended", 4}, {"certain", false}, {"because", "It is."}}}};
  return {a, b, c};
}

TEST(SideBySide, HasARowForEachAnswerOfEachRun) {
  const auto rows = answer_rows(runs("mlp"));
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0],
            (AnswerRow{"mlp", "gpus", "mlp", "2", "yes", "1.50 k", "1.50", "0.70 to 0.80", "mlp"}));
  EXPECT_EQ(rows[1], rows[0]);
  EXPECT_EQ(rows[2], (AnswerRow{"b", "workers", "-", "4", "no", "-", "-", "-", "It is."}));
  EXPECT_EQ(rows[3], (AnswerRow{"c", "-", "-", "-", "-", "-", "-", "-", "-"}));
}

TEST(SideBySide, EscapesTextOfFiles) {
  EXPECT_THAT(side_by_side_text(runs("mlp\x1b[2J"), false), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace howmany::reports
