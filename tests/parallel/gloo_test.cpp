#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "core/device.h"
#include "parallel/launch.h"

namespace howmany {
namespace {

// Threads of this process that wait for their turn on a core.
std::vector<pid_t> patient_threads() {
  std::vector<pid_t> found;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const pid_t thread = std::stoi(task.path().filename());
    if (sched_getscheduler(thread) == SCHED_BATCH) found.push_back(thread);
  }
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
    if (sched_getscheduler(0) != SCHED_OTHER) GTEST_SKIP() << "this process has a policy already";
  }
};

TEST_F(Gloo, MovesDataByThreadsThatDoNotPreemptTheRanks) {
  launch_threads(
      2,
      [](Comm& comm) {
        EXPECT_EQ(patient_threads().size(), 2u);
        EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
        comm.barrier();  // both have counted
      },
      "gloo");
}

TEST_F(Gloo, MovesTheDataOfAGroupOnTheCoresOfItsRanks) {
  launch_threads(
      2,
      [](Comm& world) {
        const std::vector<pid_t> before = patient_threads();
        world.barrier();
        const DeviceScope on({.type = DeviceType::cpu, .index = 0});
        const auto group = world.split(0);
        const std::vector<int> mine = cores_of(0);
        int started = 0;
        for (const pid_t thread : patient_threads()) {
          if (std::ranges::count(before, thread) > 0) continue;
          ++started;
          EXPECT_EQ(cores_of(thread), mine);
        }
        EXPECT_EQ(started, 2);
        group->barrier();
      },
      "gloo");
}

}  // namespace
}  // namespace howmany
