// SPDX-License-Identifier: Apache-2.0
// labels: threads
#include "benches/speedup/trace_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <random>

#include "parallel/launch/launch.h"
#include "tests/support/message_of.h"
#include "tests/support/tensors.h"

namespace howmany::benches {
namespace {

TEST(ClockOffset, IsFoundToWhatABarrierTakes) {
  const uint64_t seed = testing_support::fresh_seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const int64_t hour = 3'600'000'000'000;
  std::vector<int64_t> shift;
  for (int rank = 0; rank < 3; ++rank) shift.push_back(static_cast<int64_t>(random() % hour));
  launch_threads(3, [&](Comm& comm) {
    const int64_t own = shift[static_cast<size_t>(comm.rank())];
    const ClockOffset found = clock_offset(comm, [&] { return profile_clock_ns() + own; });
    EXPECT_LE(std::abs(found.ahead - (own - shift[0])), found.within) << comm.rank();
    EXPECT_EQ(found.within > 0, comm.rank() > 0);
  });
}

TEST(ClockOffset, OfOneClockIsNone) {
  launch_threads(3, [](Comm& comm) {
    const ClockOffset found = clock_offset(comm);
    EXPECT_EQ(found.ahead, 0);
    EXPECT_EQ(found.within, 0);
  });
}

TEST(LeadsProcess, TheFirstOfItsThreads) {
  launch_threads(3, [](Comm& comm) { EXPECT_EQ(leads_process(comm), comm.rank() == 0); });
}

TEST(BringToRank0, KeepsTheOrderOfRanksAndEveryByte) {
  const auto text_of = [](int rank) {  // rank 3 needs more than one message
    return rank == 1 ? "" : std::string(rank == 3 ? (size_t{16} << 20) + 5 : 7, "abcd"[rank]) + "z";
  };
  std::vector<std::string> got;
  launch_threads(4, [&](Comm& comm) {
    bring_to_rank_0(comm, text_of(comm.rank()), [&](const std::string& one) {
      EXPECT_EQ(comm.rank(), 0);
      got.push_back(one);
    });
  });
  ASSERT_EQ(got.size(), 3u);
  for (const auto& [at, rank] : {std::pair(0, 0), {1, 2}, {2, 3}})
    EXPECT_TRUE(got[static_cast<size_t>(at)] == text_of(rank)) << rank;
}

TEST(BringToRank0, HasWhatCameBeforeARankWasLost) {
  std::vector<std::string> got;
  std::latch came(2);
  const std::string why = message_of<std::exception>([&] {
    launch_threads(3, [&](Comm& comm) {
      if (comm.rank() == 2) {  // it has announced its size
        comm.all_gather(Tensor::from<int64_t>({1000}, {1}), Tensor::empty({3}, Dtype::i64));
        came.wait();
        throw Error("rank 2 is lost");
      }
      bring_to_rank_0(comm, "rank " + std::to_string(comm.rank()), [&](const std::string& one) {
        got.push_back(one);
        came.count_down();
      });
    });
  });
  EXPECT_THAT(why, testing::HasSubstr("rank 2"));
  EXPECT_THAT(got, testing::ElementsAre("rank 0", "rank 1"));
}

}  // namespace
}  // namespace howmany::benches
