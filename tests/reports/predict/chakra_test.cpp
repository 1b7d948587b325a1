// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/chakra.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/base/error.h"

namespace howmany::reports {
namespace {

LoggedCollective bucket_of(double at, double seconds) {
  return {Collective::kAllReduce, 1e6, 64, 1, at, seconds, 0, {}};
}

// Each node has its name, such as work_3: the count of nodes so far.
size_t count_of(const std::string& trace, const std::string& name) {
  size_t count = 0;
  for (size_t at = trace.find(name); at != std::string::npos; at = trace.find(name, at + 1))
    ++count;
  return count;
}

TEST(Chakra, WorkSurroundsTheCollectives) {
  const std::string trace = chakra_trace({10, {bucket_of(6, 2), bucket_of(8, 1)}});
  EXPECT_EQ(count_of(trace, "work_"), 3u);
  EXPECT_EQ(count_of(trace, "all_reduce_"), 2u);
  EXPECT_LT(trace.find("work_1"), trace.find("all_reduce_2"));
  EXPECT_LT(trace.find("all_reduce_4"), trace.find("work_5"));
}

TEST(Chakra, AStepWithoutCollectivesIsOneNode) {
  EXPECT_EQ(count_of(chakra_trace({1, {}}), "work_"), 1u);
}

// Gathered at 1, needed at 4, so that the work between is a node of its own.
TEST(Chakra, AWaitDividesTheWork) {
  const LoggedCollective gather{Collective::kAllGather, 6.4e7, 64, 1, 1, 2, -1, 4};
  const std::string trace = chakra_trace({9, {gather}});
  EXPECT_EQ(count_of(trace, "work_"), 3u);
  EXPECT_EQ(count_of(trace, "all_gather_2"), 1u);
}

TEST(Chakra, NoStepsAreRefused) {
  EXPECT_THROW(write_chakra({4, {}}, "/nonexistent/x"), InputError);
  EXPECT_THROW(write_chakra({2, {{1, {}}}}, "/nonexistent/x"), InputError);
}

TEST(Chakra, GroupsOfAMeshAreRefused) {
  LoggedCollective one;
  one.ranks = 2;
  const std::string prefix = ::testing::TempDir() + "/mesh";
  EXPECT_THROW(write_chakra({4, {{1, {one}}}}, prefix), InputError);
  EXPECT_FALSE(std::filesystem::exists(prefix + ".0.et"));
}

}  // namespace
}  // namespace howmany::reports
