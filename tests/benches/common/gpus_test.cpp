// SPDX-License-Identifier: Apache-2.0
#include "benches/common/gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace howmany::benches {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::string> kUuids = {"GPU-8932f937-d72c", "GPU-8ff00a11-4106", "GPU-44ad"};

std::vector<size_t> cuda(const std::vector<std::string>& uuids, const char* list) {
  return visible_gpus(uuids, list, GpuListReader::cuda);
}
std::vector<size_t> rocr(const char* list) {
  return visible_gpus(kUuids, list, GpuListReader::rocr);
}
std::vector<size_t> hip(const char* list) { return visible_gpus(kUuids, list, GpuListReader::hip); }

TEST(VisibleGpus, AreAllWithoutTheVariable) {
  EXPECT_THAT(cuda(kUuids, nullptr), ElementsAre(0, 1, 2));
  EXPECT_THAT(cuda(kUuids, ""), IsEmpty());
}

TEST(VisibleGpus, AreInTheOrderOfTheVariable) {
  EXPECT_THAT(cuda(kUuids, "2,0"), ElementsAre(2, 0));
  EXPECT_THAT(cuda(kUuids, "1, 2"), ElementsAre(1, 2));
}

TEST(VisibleGpus, MayBeNamedByTheBeginningOfTheirUuid) {
  EXPECT_THAT(cuda(kUuids, "GPU-44,GPU-8932f937-d72c,1"), ElementsAre(2, 0, 1));
  EXPECT_THAT(cuda(kUuids, "GPU-8"), IsEmpty()) << "two begin so";
  EXPECT_THAT(cuda({""}, "GPU-44"), IsEmpty());
}

TEST(VisibleGpus, EndWhereAWordIsNone) {
  EXPECT_THAT(cuda(kUuids, "0,7,1"), ElementsAre(0));
  EXPECT_THAT(cuda(kUuids, "-1"), IsEmpty());
  EXPECT_THAT(cuda(kUuids, "1,none"), ElementsAre(1));
  EXPECT_THAT(cuda(kUuids, "1x"), IsEmpty());
  EXPECT_THAT(cuda(kUuids, "99999999999999999999999"), IsEmpty());
}

TEST(VisibleGpus, AreNoneWhereOneIsNamedTwice) {
  EXPECT_THAT(cuda(kUuids, "0,GPU-8932"), IsEmpty());
}

TEST(VisibleGpus, OfRocrEndAtARepetition) {
  EXPECT_THAT(rocr("1,gpu-8932F,1,2"), ElementsAre(1, 0));
  EXPECT_THAT(rocr(""), IsEmpty());
  EXPECT_THAT(rocr(nullptr), ElementsAre(0, 1, 2));
}

TEST(VisibleGpus, OfHipAreAllIfTheListIsEmpty) {
  EXPECT_THAT(hip(""), ElementsAre(0, 1, 2));
  EXPECT_THAT(hip("-1"), IsEmpty());
  EXPECT_THAT(hip("2,2,0"), ElementsAre(2, 0)) << "a repetition is skipped";
  EXPECT_THAT(hip("GPU-44,1"), ElementsAre(2, 1));
  EXPECT_THAT(hip("1, 2"), ElementsAre(1)) << "HIP skips no spaces";
}

}  // namespace
}  // namespace howmany::benches
