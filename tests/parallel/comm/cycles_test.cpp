// SPDX-License-Identifier: Apache-2.0
// labels: slow
// timeout: 300
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "parallel/launch/launch.h"

namespace howmany {
namespace {

#ifdef HM_SANITIZED
// Sanitizers are several times slower and quarantine freed memory.
constexpr int kCycles = 100;
constexpr int64_t kMostGrowth = int64_t{1} << 30;
#else
constexpr int kCycles = 1000;
constexpr int64_t kMostGrowth = 1 << 20;  // bytes; detects a leak of 1 kB per world
#endif

int64_t entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

// The resources of this process: descriptors, threads, bytes of memory.
struct Holdings {
  int64_t files = entries("/proc/self/fd"), threads = entries("/proc/self/task"), bytes = 0;

  Holdings() {
    int64_t total = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> total >> resident;
    bytes = resident * sysconf(_SC_PAGESIZE);
  }
};

void make_worlds(std::string_view backend, int count) {
  for (int i = 0; i < count; ++i)
    launch_threads(
        2,
        [](Comm& comm) {
          Tensor t = Tensor::full({1000}, 1);
          comm.all_reduce_async(t).wait();  // starts the comm thread
          const auto group = comm.split(0);
          group->all_reduce(t);
          ASSERT_EQ(t.data<float>()[999], 4);
        },
        backend);
}

class Cycles : public ::testing::TestWithParam<std::string_view> {};
INSTANTIATE_TEST_SUITE_P(All, Cycles, ::testing::ValuesIn(thread_comm_names(4)),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(Cycles, AThousandWorldsLeaveNothingBehind) {
  make_worlds(GetParam(), kCycles / 5);  // warm-up: fills caches and pools
  const Holdings before;
  make_worlds(GetParam(), kCycles);
  const Holdings after;
  EXPECT_EQ(after.files, before.files);
  EXPECT_EQ(after.threads, before.threads);
  EXPECT_LT(after.bytes - before.bytes, kMostGrowth);
}

}  // namespace
}  // namespace howmany
