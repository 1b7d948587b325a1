// SPDX-License-Identifier: Apache-2.0
#include "parallel/sync/agreement.h"

#include <gtest/gtest.h>

#include <random>

#include "parallel/launch/launch.h"

namespace howmany {
namespace {

TEST(Agreement, IsTheSameForAllOnceAnyRankWantsIt) {
  const int wants = static_cast<int>(std::random_device()() % 3);
  for (const std::string_view backend : thread_comm_names(3))
    launch_threads(
        3,
        [&](Comm& comm) {
          Agreement agreement(comm);
          EXPECT_FALSE(agreement.any(false)) << backend;
          const bool at_once = agreement.any(comm.rank() == wants);
          EXPECT_EQ(at_once, comm.native_device().type == DeviceType::cpu) << backend;
          EXPECT_TRUE(at_once || agreement.any(false)) << "a step late";
          EXPECT_FALSE(agreement.any(false)) << backend;
        },
        backend);
}

TEST(Agreement, OfOneRankIsItsOwnWish) {
  launch_threads(1, [](Comm& comm) {
    Agreement agreement(comm);
    EXPECT_FALSE(agreement.any(false));
    EXPECT_TRUE(agreement.any(true));
  });
}

}  // namespace
}  // namespace howmany
