// SPDX-License-Identifier: Apache-2.0
// labels: threads
#include "core/profile/range.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "tests/support/ranges.h"

namespace howmany {
namespace {

using testing_support::RangeCounts;

// NVTX searches for a tool only once, at the first range of the process.
void* recorder() {
  static void* const library = [] {
    setenv("NVTX_INJECTION64_PATH", testing_support::recorder_path().c_str(), 1);
    return dlopen(testing_support::recorder_path().c_str(), RTLD_NOW);
  }();
  return library;
}

RangeCounts recorded() {
  const std::string path = testing::TempDir() + "howmany_ranges_" + std::to_string(getpid());
  reinterpret_cast<void (*)(const char*)>(dlsym(recorder(), "hm_write_ranges"))(path.c_str());
  RangeCounts counts;
  testing_support::add_ranges(path, counts);
  std::filesystem::remove(path);
  return counts;
}

class Ranges : public testing::Test {
 protected:
  void SetUp() override {
    if (!ranges_built_in()) GTEST_SKIP() << "built without the NVTX headers";
    ASSERT_NE(recorder(), nullptr) << dlerror();
  }
};

TEST_F(Ranges, ReachAToolWithCategoryAndPayload) {
  {
    const Range step(Category::step, "test step");
    const Range compute(Category::compute, "test matmul", 1000);
    const Range copy(Category::copy, "test copy", 1ULL << 40);
  }
  {
    const Range again(Category::compute, "test matmul", 24);
    EXPECT_EQ(recorded()["compute/test matmul"].pops, 1u) << "still open";
  }
  RangeCounts counts = recorded();
  EXPECT_EQ(counts["step/test step"].pushes, 1u);
  EXPECT_EQ(counts["compute/test matmul"].pushes, 2u);
  EXPECT_EQ(counts["compute/test matmul"].pops, 2u);
  EXPECT_EQ(counts["compute/test matmul"].payload, 1024u);
  EXPECT_EQ(counts["copy/test copy"].payload, 1ULL << 40);
}

TEST_F(Ranges, EveryCategoryHasItsName) {
  { const Range r(Category::step, "n"); }
  { const Range r(Category::compute, "n"); }
  { const Range r(Category::optimizer, "n"); }
  { const Range r(Category::data, "n"); }
  { const Range r(Category::copy, "n"); }
  { const Range r(Category::comm, "n"); }
  RangeCounts counts = recorded();
  for (const char* key : {"step/n", "compute/n", "optimizer/n", "data/n", "copy/n", "comm/n"})
    EXPECT_EQ(counts[key].pops, 1u) << key;
}

TEST_F(Ranges, NestPerThread) {
  const Range outer(Category::step, "outer");
  std::thread([] { const Range inner(Category::data, "other thread"); }).join();
  RangeCounts counts = recorded();
  EXPECT_EQ(counts["data/other thread"].pops, 1u);
  EXPECT_EQ(counts["step/outer"].pops, 0u);
}

}  // namespace
}  // namespace howmany
