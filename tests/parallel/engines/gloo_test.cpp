// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <vector>

#include "core/tensor/device.h"
#include "parallel/launch/launch.h"

namespace howmany {
namespace {

std::vector<pid_t> threads() {
  std::vector<pid_t> found;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
    found.push_back(std::stoi(task.path().filename()));
  return found;
}

std::vector<int> cores_of(pid_t thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(thread, sizeof set, &set);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

class Gloo : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::ranges::count(comm_names(), "gloo") == 0) GTEST_SKIP() << "built without gloo";
  }
};

TEST_F(Gloo, LeavesTheSchedulingPolicyAsItIs) {
  const int policy = sched_getscheduler(0);
  launch_threads(
      2,
      [&](Comm& comm) {
        for (const pid_t thread : threads()) EXPECT_EQ(sched_getscheduler(thread), policy);
        comm.barrier();  // both ranks have checked
      },
      "gloo");
}

TEST_F(Gloo, DoesNotBindTransportThreadsIfRanksAreBound) {
  launch_threads(
      2,
      [](Comm& world) {
        const std::vector<pid_t> before = threads();
        world.barrier();
        const std::vector<int> all = cores_of(0);
        const DeviceScope on({.type = DeviceType::cpu, .index = 0});
        const std::vector<int> mine = cores_of(0);
        const auto group = world.split(0);
        EXPECT_EQ(cores_of(0), mine);
        int transport = 0, calls = 0;
        for (const pid_t thread : threads()) {
          if (std::ranges::count(before, thread) > 0) continue;
          if (cores_of(thread) == all)
            ++transport;
          else if (cores_of(thread) == mine)
            ++calls;
        }
        if (all != mine) {
          EXPECT_EQ(transport, 2);
          EXPECT_EQ(calls, 4);  // two ranks, two calls each
        }
        group->barrier();
      },
      "gloo");
}

// Gloo would leave a buffer half written if a message is too short, and end the process if it is
// too long.
TEST_F(Gloo, CallsOfDifferentSizesDtypesOrRootsNeverMeet) {
  const auto sized = [](Comm& comm) { return Tensor::zeros({comm.rank() == 0 ? 2 : 4}); };
  const std::vector<std::function<void(Comm&)>> calls = {
      [&](Comm& c) { c.rank() == 0 ? c.send(sized(c), 1) : c.receive(sized(c), 0); },
      [&](Comm& c) { c.rank() == 1 ? c.send(sized(c), 0) : c.receive(sized(c), 1); },
      [&](Comm& c) { c.all_reduce(sized(c)); },
      [&](Comm& c) { c.broadcast(sized(c), 0); },
      [&](Comm& c) { c.broadcast(sized(c), 1); },
      [&](Comm& c) { c.all_gather(sized(c), Tensor::zeros({c.rank() == 0 ? 4 : 8})); },
      [&](Comm& c) { c.broadcast(Tensor::zeros({4}), c.rank()); },
      [&](Comm& c) {
        c.broadcast(Tensor::zeros({4}, c.rank() == 0 ? Dtype::i32 : Dtype::f32), 0);
      }};
  for (const auto& call : calls)
    EXPECT_THROW(launch_threads(
                     2,
                     [&](Comm& comm) {
                       comm.set_timeout(std::chrono::milliseconds(200));
                       call(comm);
                       comm.barrier();
                     },
                     "gloo"),
                 CommError);
}

}  // namespace
}  // namespace howmany
