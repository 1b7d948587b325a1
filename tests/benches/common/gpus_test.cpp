// SPDX-License-Identifier: Apache-2.0
#include "benches/common/gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace howmany::benches {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::string> kUuids = {"GPU-8932f937-d72c", "GPU-8ff00a11-4106", "GPU-44ad"};

TEST(VisibleGpus, AreAllWithoutTheVariable) {
  EXPECT_THAT(visible_gpus(kUuids, nullptr), ElementsAre(0, 1, 2));
  EXPECT_THAT(visible_gpus(kUuids, ""), IsEmpty());
}

TEST(VisibleGpus, AreInTheOrderOfTheVariable) {
  EXPECT_THAT(visible_gpus(kUuids, "2,0"), ElementsAre(2, 0));
  EXPECT_THAT(visible_gpus(kUuids, "1, 2"), ElementsAre(1, 2));
}

TEST(VisibleGpus, MayBeNamedByTheBeginningOfTheirUuid) {
  EXPECT_THAT(visible_gpus(kUuids, "GPU-44,GPU-8932f937-d72c,1"), ElementsAre(2, 0, 1));
  EXPECT_THAT(visible_gpus(kUuids, "GPU-8"), IsEmpty()) << "two begin so";
  EXPECT_THAT(visible_gpus({""}, "GPU-44"), IsEmpty());
}

TEST(VisibleGpus, EndWhereAWordIsNone) {
  EXPECT_THAT(visible_gpus(kUuids, "0,7,1"), ElementsAre(0));
  EXPECT_THAT(visible_gpus(kUuids, "-1"), IsEmpty());
  EXPECT_THAT(visible_gpus(kUuids, "1,none"), ElementsAre(1));
  EXPECT_THAT(visible_gpus(kUuids, "1x"), IsEmpty());
  EXPECT_THAT(visible_gpus(kUuids, "99999999999999999999999"), IsEmpty());
}

TEST(VisibleGpus, AreNoneWhereOneIsNamedTwice) {
  EXPECT_THAT(visible_gpus(kUuids, "0,GPU-8932"), IsEmpty());
}

}  // namespace
}  // namespace howmany::benches
