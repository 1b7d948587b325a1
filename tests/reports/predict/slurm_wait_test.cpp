// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/slurm_wait.h"

#include <gtest/gtest.h>

#include <ctime>

namespace howmany::reports {
namespace {

double local(const char* text) {
  std::tm time = {};
  time.tm_isdst = -1;
  strptime(text, "%Y-%m-%dT%H:%M:%S", &time);
  return static_cast<double>(std::mktime(&time));
}

const char* const kStarts =
    "sbatch: Job 8 to start at 2026-11-26T20:30:00 using 2 processors on nodes n1 in partition a";

TEST(SlurmWait, IsTheTimeUntilTheStart) {
  const SlurmAnswer answer = slurm_answer(kStarts, local("2026-11-26T19:00:00"));
  ASSERT_TRUE(answer.wait_hours);
  EXPECT_DOUBLE_EQ(*answer.wait_hours, 1.5);
  EXPECT_EQ(answer.refused, "");
}

TEST(SlurmWait, IsNothingIfTheStartIsNow) {
  EXPECT_DOUBLE_EQ(*slurm_answer(kStarts, local("2026-11-26T20:30:07")).wait_hours, 0);
}

TEST(SlurmWait, ARefusalHasSlurmsReason) {
  for (const std::string start :
       {"allocation failure: ", "sbatch: error: ", "sbatch: error: allocation failure: "}) {
    const SlurmAnswer answer =
        slurm_answer(start + "Requested node configuration is not available", 0);
    EXPECT_FALSE(answer.wait_hours);
    EXPECT_EQ(answer.refused, "Requested node configuration is not available");
  }
  for (const char* text : {"", "sbatch: Job 8 to start at soon"})
    EXPECT_FALSE(slurm_answer(text, 0).refused.empty()) << text;
}

}  // namespace
}  // namespace howmany::reports
