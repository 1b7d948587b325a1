// SPDX-License-Identifier: Apache-2.0
#include "parallel/sync/straggler.h"

#include <gtest/gtest.h>

#include "parallel/launch/launch.h"

namespace howmany {
namespace {

TEST(Straggler, IsTheSlowestRankAndHowMuchLongerItWorksThanTheMedianOfTheOthers) {
  const Straggler found = straggler_of({1.0, 1.5, 4.0, 1.25});
  EXPECT_EQ(found.rank, 2);
  EXPECT_DOUBLE_EQ(found.extra_seconds, 2.75);
  EXPECT_DOUBLE_EQ(straggler_of({3, 1}).extra_seconds, 2);
}

TEST(Straggler, IsNobodyWhereARankIsAlone) {
  EXPECT_EQ(straggler_of({2}).extra_seconds, 0);
  EXPECT_THROW(straggler_of({}), std::invalid_argument);
}

TEST(Straggler, IsTheSameOnEveryRankAndAStepThatWasSlowOnceIsNoReason) {
  launch_threads(3, [](Comm& comm) {
    const double slow = comm.rank() == 1 ? 2 : 1;
    const Straggler found = find_straggler(comm, {slow, comm.rank() == 0 ? 50 : slow, slow});
    EXPECT_EQ(found.rank, 1);
    EXPECT_DOUBLE_EQ(found.extra_seconds, 1);
    EXPECT_THROW(find_straggler(comm, {}), std::invalid_argument);
  });
}

}  // namespace
}  // namespace howmany
