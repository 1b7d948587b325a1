// SPDX-License-Identifier: Apache-2.0
// Choices of algorithms that outlive the process. Uses fake GPUs.
#include "benches/common/tuning_cache.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "core/base/text/files.h"
#include "core/gpu/gpu.h"
#include "core/gpu/tuning.h"
#include "core/ops/ops.h"
#include "parallel/launch/launch.h"
#include "tests/support/image_files.h"
#include "tests/support/tensors.h"

namespace howmany::benches {
namespace {

class TuningCache : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu::count() == 0) GTEST_SKIP() << "no GPU";
    setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
    // The second call of a problem measures its algorithms.
    const Device gpu{DeviceType::cuda, 0};
    const Tensor a = Tensor::full({256, 192}, 1).to(gpu), b = Tensor::full({192, 256}, 1).to(gpu);
    for (int i = 0; i < 2; ++i) ops::matmul(a, b);
    ASSERT_FALSE(gpu::tuning().empty());
  }
  void TearDown() override { unsetenv("XDG_CACHE_HOME"); }

  static void keep(int ranks) {
    launch_threads(ranks, [](Comm& comm) { agree_on_tuning(comm, true); });
  }
  static void use_kept(int ranks) {
    launch_threads(ranks, [](Comm& comm) { use_kept_tuning(comm); });
  }
  static std::vector<int64_t> with_last_choice(std::vector<int64_t> list, int64_t choice) {
    list.back() = choice;
    return list;
  }
  static void write(const std::string& text) {
    std::ofstream(tuning_file(), std::ios::trunc) << text;
  }

 private:
  const testing_support::TempFolder folder_;
};

TEST_F(TuningCache, ChoicesServeTheNextProcess) {
  const std::vector<int64_t> own = gpu::tuning();
  keep(2);
  const std::vector<int64_t> other = with_last_choice(own, own.back() + 1);
  gpu::use_tuning(other);  // as if measured by another process
  ASSERT_EQ(gpu::tuning(), other);
  use_kept(2);
  EXPECT_EQ(gpu::tuning(), own);
}

TEST_F(TuningCache, ChangesNothingWithoutAFile) {
  const std::vector<int64_t> own = gpu::tuning();
  use_kept(1);
  EXPECT_EQ(gpu::tuning(), own);
  launch_threads(1, [](Comm& comm) { agree_on_tuning(comm, false); });
  EXPECT_THROW(read_text(tuning_file()), std::exception);
}

TEST_F(TuningCache, IgnoresFilesWithOtherContents) {
  const std::vector<int64_t> own = gpu::tuning();
  keep(1);
  for (const char* text : {"", "{", "[]", R"({"choices": "x"})", R"({"choices": [1]})",
                           R"({"choices": [5, 1, 2]})", R"({"choices": [1e300]})"}) {
    write(text);
    EXPECT_NO_THROW(use_kept(1)) << text;
    EXPECT_EQ(gpu::tuning(), own) << text;
  }
  keep(1);
  use_kept(1);
  EXPECT_EQ(gpu::tuning(), own);
}

TEST_F(TuningCache, IsNamedAfterItsLibraries) {
  EXPECT_NE(tuning_file().find("cuBLASLt"), std::string::npos);
  unsetenv("XDG_CACHE_HOME");
  const std::string home = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  unsetenv("HOME");
  EXPECT_EQ(tuning_file(), "");
  EXPECT_NO_THROW(keep(1));
  if (!home.empty()) setenv("HOME", home.c_str(), 1);
}

}  // namespace
}  // namespace howmany::benches
