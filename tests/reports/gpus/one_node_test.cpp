// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/one_node.h"

#include <gmock/gmock.h>

namespace howmany::reports {
namespace {

using ::testing::SizeIs;

Measurement measured(int devices, int nodes, double rate) {
  Measurement m;
  m.suite = "speedup";
  m.parameters = {{"model", "train.py"},
                  {"devices", std::to_string(devices)},
                  {"nodes", std::to_string(nodes)},
                  {"scaling", "weak"}};
  m.metrics["samples_per_s"] = {rate, "1/s", {}, {}, 3, "rounds"};
  return m;
}

TEST(OneNode, PredictsEachCountOfSeveralNodesFromTheRowsOfOne) {
  const auto rows = beside_one_node(
      {measured(1, 1, 100), measured(4, 1, 360), measured(8, 2, 700), measured(16, 4, 200)});
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[0]["devices"], 8);
  EXPECT_EQ(rows[0]["nodes"], 2);
  EXPECT_NEAR(rows[0]["efficiency"], 0.875, 1e-9);
  EXPECT_TRUE(rows[0]["inside"]);
  EXPECT_LT(rows[0]["predicted_low"], rows[0]["predicted"]);
  EXPECT_NEAR(rows[1]["efficiency"], 0.125, 1e-9);
  EXPECT_FALSE(rows[1]["inside"]);
  EXPECT_THAT(one_node_notes({{"one_node", rows}}), SizeIs(2));
}

TEST(OneNode, TakesTheFastestRowOfACount) {
  const auto rows =
      beside_one_node({measured(1, 1, 100), measured(2, 2, 120), measured(2, 2, 180)});
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_NEAR(rows[0]["efficiency"], 0.9, 1e-9);
}

TEST(OneNode, IsEmptyWithoutAWholeNodeOrSeveral) {
  EXPECT_THAT(beside_one_node({}), SizeIs(0));
  EXPECT_THAT(beside_one_node({measured(1, 1, 100), measured(2, 1, 190)}), SizeIs(0));
  EXPECT_THAT(beside_one_node({measured(1, 1, 100), measured(8, 2, 700)}), SizeIs(0));
  Measurement strong = measured(2, 2, 190);
  strong.parameters["scaling"] = "strong";
  EXPECT_THAT(beside_one_node({measured(1, 1, 100), strong}), SizeIs(0));
  EXPECT_THAT(one_node_notes(nlohmann::json::object()), SizeIs(0));
}

}  // namespace
}  // namespace howmany::reports
