// SPDX-License-Identifier: Apache-2.0
// A thread that hangs is reported and its process ends, because a thread cannot be ended alone.
#include "parallel/comm/hang_timeout.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <thread>

#include "parallel/launch/launch.h"
#include "parallel/sync/primitives.h"
#include "tests/support/fragile.h"
#include "tests/support/training.h"

namespace howmany {
namespace {

using namespace testing_support;
using namespace std::chrono_literals;

constexpr Device kLost{DeviceType::cpu, 1};

void hang() {
  for (;;) std::this_thread::sleep_for(1h);
}

// A step on two devices of this process.
void step(const std::string& mode, const std::function<void()>& what) {
  ModelSpec model = fragile_model(4, [what](Device device) {
    if (device == kLost) what();
  });
  const Batch batch = global_batch(model, 8, 0);
  make_mode(mode, {.model = std::move(model), .devices = cpus(2)})->step(batch);
}

class Patience : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};
using PatienceDeathTest = Patience;
INSTANTIATE_TEST_SUITE_P(Modes, PatienceDeathTest,
                         ::testing::Values("data_parallel", "model", "model:micro_batches=2"),
                         [](const auto& test) { return std::to_string(test.index); });

TEST_P(PatienceDeathTest, EndsTheProcessAndNamesTheDeviceThatHangs) {
  const auto lose_cpu_1 = [] {
    set_hang_timeout(1s);
    step(GetParam(), hang);
  };
  EXPECT_EXIT(lose_cpu_1(), ::testing::ExitedWithCode(3),
              "howmany: cpu:1 has not ended 1\\.0 s after another device");
}

TEST_P(PatienceDeathTest, OfOneThatThrowsThereIsNoNeed) {
  EXPECT_THROW(step(GetParam(), [] { throw std::runtime_error("out of luck"); }),
               std::runtime_error);
}

TEST(RankDeathTest, ThatHangsIsNamedOnceAnotherFailed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto lose_rank_1 = [] {
    set_hang_timeout(1s);
    launch_threads(3, [](Comm& comm) {
      comm.set_timeout(1s);
      if (comm.rank() == 1) hang();
      comm.barrier();
    });
  };
  EXPECT_EXIT(lose_rank_1(), ::testing::ExitedWithCode(3),
              "howmany: rank 1 of 3 has not ended 1\\.0 s after another failed: \\[barrier\\] .*"
              "peer 1");
}

TEST(RankDeathTest, KeepsWhatWasPrinted) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto print_and_give_up = [] {
    std::setvbuf(stdout, nullptr, _IOFBF, 4096);
    dup2(fileno(stderr), fileno(stdout));
    std::printf("epoch 1 is measured\n");
    end_hung_process("cpu:1", "another device");
  };
  EXPECT_EXIT(print_and_give_up(), ::testing::ExitedWithCode(3), "epoch 1 is measured\nhowmany: ");
}

TEST(Rank, ThatTakesLongerThanTheOthersIsWaitedFor) {
  const auto before = hang_timeout();
  set_hang_timeout(1ms);
  bool slow_ended = false;
  launch_threads(2, [&](Comm& comm) {
    if (comm.rank() == 0) return;
    std::this_thread::sleep_for(50ms);
    slow_ended = true;
  });
  set_hang_timeout(before);
  EXPECT_TRUE(slow_ended);
}

}  // namespace
}  // namespace howmany
