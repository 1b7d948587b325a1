// SPDX-License-Identifier: Apache-2.0
#include "benches/common/peak_memory.h"

#include <gtest/gtest.h>

#include "core/gpu/gpu.h"
#include "core/tensor/tensor.h"

namespace howmany::benches {
namespace {

constexpr int64_t kElements = 1 << 20;
constexpr double kBytes = 4.0 * kElements;

TEST(PeakMemory, OfAGpuCountsItsMemory) {
  if (gpu::count() == 0) GTEST_SKIP() << gpu::unavailable();
  const Device gpu{DeviceType::cuda, 0};
  reset_peak_memory({gpu});
  const Tensor on_host = Tensor::zeros({8 * kElements});
  const double before = peak_bytes_of_one({gpu});
  Tensor::zeros({kElements}, Dtype::f32, gpu);
  EXPECT_GE(peak_bytes_of_one({gpu}), before + kBytes);
  EXPECT_LT(peak_bytes_of_one({gpu}), before + 2 * kBytes);
  gpu::synchronize(0);
  reset_peak_memory({gpu});
  EXPECT_LT(peak_bytes_of_one({gpu}), before + kBytes) << "what was held before is counted";
}

TEST(PeakMemory, OfSlicesIsTheirShareOfTheProcess) {
  const std::vector<Device> two{{DeviceType::cpu, 0}, {DeviceType::cpu, 1}};
  reset_peak_memory(two);
  const double before = peak_bytes_of_one(two);
  Tensor::zeros({kElements});
  EXPECT_GE(peak_bytes_of_one(two), before + kBytes / 2);
  EXPECT_EQ(peak_bytes_of_one({two[0]}), 2 * peak_bytes_of_one(two));
}

}  // namespace
}  // namespace howmany::benches
