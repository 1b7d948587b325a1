// SPDX-License-Identifier: Apache-2.0
#include "parallel/launch/slurm.h"

#include <gtest/gtest.h>

namespace howmany {
namespace {

TEST(Slurm, FirstHostOfAList) {
  EXPECT_EQ(first_host("node1"), "node1");
  EXPECT_EQ(first_host("node1,node2"), "node1");
  EXPECT_EQ(first_host("node[07-12,20],gpu3"), "node07");
  EXPECT_EQ(first_host("node[3,5-9]"), "node3");
  EXPECT_EQ(first_host("gpu3,node[07-12]"), "gpu3");
  EXPECT_EQ(first_host("rack[1-2]-n5,x"), "rack1-n5");
  EXPECT_EQ(first_host("rack[1-2]n[04-05],x[1-2]"), "rack1n04");
  EXPECT_EQ(first_host(""), "");
  EXPECT_EQ(first_host("node[1-2"), "");
}

TEST(Slurm, TasksOfANode) {
  EXPECT_EQ(tasks_on_node("4", 0), 4);
  EXPECT_EQ(tasks_on_node("2(x3),1", 2), 2);
  EXPECT_EQ(tasks_on_node("2(x3),1", 3), 1);
  EXPECT_EQ(tasks_on_node("2(x3),1", 4), 0);
  EXPECT_EQ(tasks_on_node("", 0), 0);
  EXPECT_EQ(tasks_on_node("many", 0), 0);
}

}  // namespace
}  // namespace howmany
