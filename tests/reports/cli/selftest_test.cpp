// SPDX-License-Identifier: Apache-2.0
#include "reports/cli/selftest.h"

#include <gmock/gmock.h>

namespace howmany::reports {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Selftest, CountsWhatPassedAndNamesWhatFailedAndWhatWasSkipped) {
  const TestTotals totals = read_totals(
      "[==========] Running 4 tests from 2 test suites.\n"
      "[ RUN      ] Comm.Sums\n"
      "[       OK ] Comm.Sums (12 ms)\n"
      "[ RUN      ] Law/Mode.TrainsAsSingle/3\n"
      "mode_test.cpp:10: Failure\n"
      "[  FAILED  ] Law/Mode.TrainsAsSingle/3, where GetParam() = (ddp, 2) (7 ms)\n"
      "[ RUN      ] Comm.Nccl\n"
      "comm_test.cpp:20: Skipped\n"
      "no GPU here\n"
      "\n"
      "[  SKIPPED ] Comm.Nccl (0 ms)\n"
      "[ RUN      ] Comm.Quiet\n"
      "[  SKIPPED ] Comm.Quiet (0 ms)\n"
      "[  PASSED  ] 1 test.\n"
      "[  SKIPPED ] 2 tests, listed below:\n"
      "[  SKIPPED ] Comm.Nccl\n"
      "[  FAILED  ] Law/Mode.TrainsAsSingle/3, where GetParam() = (ddp, 2)\n");
  EXPECT_EQ(totals.passed, 1);
  EXPECT_EQ(totals.failed, 1);
  EXPECT_THAT(totals.failures, ElementsAre("Law/Mode.TrainsAsSingle/3"));
  EXPECT_THAT(totals.skipped, ElementsAre("Comm.Nccl: no GPU here", "Comm.Quiet"));
}

TEST(Selftest, FindsNothingInTextThatIsNotGoogleTests) {
  const TestTotals totals = read_totals("[       OK ] \n ms)\n[  FAILED  ] (3 ms)\n\xff\n");
  EXPECT_EQ(totals.passed, 0);
  EXPECT_EQ(totals.failed, 0);
  EXPECT_THAT(totals.skipped, IsEmpty());
}

}  // namespace
}  // namespace howmany::reports
