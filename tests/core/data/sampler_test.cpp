// SPDX-License-Identifier: Apache-2.0
#include "core/data/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

namespace howmany {
namespace {

using testing::ElementsAre;

std::vector<int64_t> in_order(int64_t size, int rank, int world, bool drop_last = false) {
  return DistributedSampler(
             {.size = size, .rank = rank, .world = world, .shuffle = false, .drop_last = drop_last})
      .indices();
}

// The output of list(torch.utils.data.DistributedSampler(range(n), world, rank, shuffle=False)).
TEST(DistributedSampler, HandWorkedCases) {
  EXPECT_THAT(in_order(10, 0, 4), ElementsAre(0, 4, 8));
  EXPECT_THAT(in_order(10, 1, 4), ElementsAre(1, 5, 9));
  EXPECT_THAT(in_order(10, 2, 4), ElementsAre(2, 6, 0));
  EXPECT_THAT(in_order(10, 3, 4), ElementsAre(3, 7, 1));
  EXPECT_THAT(in_order(10, 0, 4, true), ElementsAre(0, 4));
  EXPECT_THAT(in_order(10, 3, 4, true), ElementsAre(3, 7));
  EXPECT_THAT(in_order(8, 1, 4), ElementsAre(1, 5));
  EXPECT_THAT(in_order(8, 1, 4, true), ElementsAre(1, 5));
  EXPECT_THAT(in_order(3, 4, 5), ElementsAre(1));  // 0 1 2 | 0 1
  EXPECT_THAT(in_order(2, 4, 7), ElementsAre(0));  // 0 1 | 0 1 0 1 0
  EXPECT_TRUE(in_order(3, 0, 5, true).empty());
}

// torch's rule, as in its source.
std::vector<int64_t> by_torchs_rule(std::vector<int64_t> order, int rank, int world,
                                    bool drop_last) {
  const auto length = static_cast<int64_t>(order.size());
  const auto ceil = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  int64_t samples = ceil(length, world);
  if (drop_last && length % world != 0) samples = length >= world ? ceil(length - world, world) : 0;
  const int64_t total = samples * world;
  if (drop_last) {
    order.resize(static_cast<size_t>(total));
  } else {
    const std::vector<int64_t> whole = order;
    while (std::ssize(order) < total) order.insert(order.end(), whole.begin(), whole.end());
    order.resize(static_cast<size_t>(total));
  }
  std::vector<int64_t> mine;
  for (int64_t i = rank; i < total; i += world) mine.push_back(order[static_cast<size_t>(i)]);
  return mine;
}

TEST(DistributedSampler, FollowsTorchsRule) {
  for (const int64_t size : {1, 2, 7, 8, 9, 100})
    for (const int world : {1, 2, 3, 4, 8})
      for (const bool drop_last : {false, true})
        for (int rank = 0; rank < world; ++rank) {
          DistributedSampler sampler(
              {.size = size, .rank = rank, .world = world, .seed = 3, .drop_last = drop_last});
          sampler.set_epoch(5);
          const auto want = by_torchs_rule(epoch_order(size, true, 3, 5), rank, world, drop_last);
          EXPECT_EQ(sampler.indices(), want) << size << " " << world << " " << drop_last;
          EXPECT_EQ(sampler.size(), std::ssize(want));
        }
}

TEST(DistributedSampler, RanksTogetherVisitTheOrderOfOneRank) {
  DistributedSampler alone({.size = 24, .seed = 9});
  alone.set_epoch(2);
  for (const int world : {2, 3, 4}) {
    std::vector<int64_t> dealt(24);
    for (int rank = 0; rank < world; ++rank) {
      DistributedSampler sampler({.size = 24, .rank = rank, .world = world, .seed = 9});
      sampler.set_epoch(2);
      const std::vector<int64_t> mine = sampler.indices();
      for (size_t i = 0; i < mine.size(); ++i)
        dealt[i * static_cast<size_t>(world) + static_cast<size_t>(rank)] = mine[i];
    }
    EXPECT_EQ(dealt, alone.indices());
  }
}

TEST(DistributedSampler, EpochsAndSeedsDiffer) {
  DistributedSampler sampler({.size = 50, .seed = 1});
  const auto first = sampler.indices();
  EXPECT_EQ(sampler.indices(), first);
  sampler.set_epoch(1);
  EXPECT_NE(sampler.indices(), first);
  EXPECT_NE(DistributedSampler({.size = 50, .seed = 2}).indices(), first);
  auto sorted = first;
  std::ranges::sort(sorted);
  for (int64_t i = 0; i < 50; ++i) EXPECT_EQ(sorted[static_cast<size_t>(i)], i);
}

TEST(DistributedSampler, RefusesNonsense) {
  EXPECT_THROW(DistributedSampler({.size = 0}), std::invalid_argument);
  EXPECT_THROW(DistributedSampler({.size = 4, .rank = 2, .world = 2}), std::invalid_argument);
  EXPECT_THROW(DistributedSampler({.size = 4, .rank = 0, .world = 0}), std::invalid_argument);
}

}  // namespace
}  // namespace howmany
