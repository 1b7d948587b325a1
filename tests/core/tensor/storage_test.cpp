// SPDX-License-Identifier: Apache-2.0
// labels: threads
#include "core/tensor/storage.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "core/base/error.h"

namespace howmany {
namespace {

TEST(Storage, IsAlignedAndNeverNull) {
  for (int64_t bytes : {0, 1, 63, 64, 65, 100'000}) {
    const Storage s(bytes, {});
    ASSERT_NE(s.data(), nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(s.data()) % 64, 0u);
    EXPECT_GE(s.bytes(), bytes);
    std::memset(s.data(), 1, static_cast<size_t>(s.bytes()));
  }
}

TEST(Storage, CountsWhatIsUsedAndKept) {
  release_cached_memory();
  reset_peak_memory();
  const MemoryUse before = memory_use();
  EXPECT_EQ(before.cached, 0);
  {
    const Storage a(1 << 20, {}), b(1 << 20, {});
    EXPECT_EQ(memory_use().in_use, before.in_use + (2 << 20));
  }
  EXPECT_EQ(memory_use().in_use, before.in_use);
  EXPECT_EQ(memory_use().peak, before.in_use + (2 << 20));
#ifndef HM_SANITIZED  // sanitizer builds cache no blocks
  EXPECT_EQ(memory_use().cached, 2 << 20);
  release_cached_memory();
#endif
  EXPECT_EQ(memory_use().cached, 0);
}

#ifndef HM_SANITIZED
TEST(Storage, ReusesABlockOfTheSameSize) {
  const void* first = nullptr;
  { first = Storage(12'345, {}).data(); }
  EXPECT_EQ(Storage(12'345, {}).data(), first);
  EXPECT_NE(Storage(54'321, {}).data(), first);
}

int64_t address_space_bytes() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

TEST(Storage, GivesBackWhatIsKeptBeforeItRunsOutOfMemory) {
  release_cached_memory();
  { const Storage kept(400 << 20, {}); }
  ASSERT_EQ(memory_use().cached, 400 << 20);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const auto room = static_cast<rlim_t>(address_space_bytes() + (200 << 20));
  const rlimit tight{.rlim_cur = room, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  EXPECT_NO_THROW(Storage(500 << 20, {}));
  EXPECT_EQ(memory_use().cached, 500 << 20);
  EXPECT_THROW(Storage(int64_t{4} << 30, {}), Error);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  release_cached_memory();
}
#endif

TEST(Storage, MayComeAndGoOnManyThreads) {
  const int64_t before = memory_use().in_use;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) {
        const Storage s(64 * (i % 5 + 1), {});
        std::memset(s.data(), t, static_cast<size_t>(s.bytes()));
        const char* bytes = static_cast<const char*>(s.data());
        EXPECT_EQ(bytes[0], t);
        EXPECT_EQ(bytes[s.bytes() - 1], t);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory_use().in_use, before);
}

}  // namespace
}  // namespace howmany
