// SPDX-License-Identifier: Apache-2.0
// The memory pools of GPUs, and their access by other GPUs.
#include <gtest/gtest.h>

#include "core/gpu/gpu.h"
#include "core/tensor/tensor.h"

extern "C" unsigned hm_fake_gpu_peers(int index) __attribute__((weak));  // fake_gpu.h

namespace howmany {
namespace {

// Opening a pool to a peer maps all its memory there.
TEST(Pool, IsOpenedToTheGpusThatCopyFromItOnly) {
  if (&hm_fake_gpu_peers == nullptr) GTEST_SKIP() << "only imitated GPUs count this";
  ASSERT_GE(gpu::count(), 4);
  const Device from{DeviceType::cuda, 3}, to{DeviceType::cuda, 2};
  const Tensor x = Tensor::full({5}, 7, Dtype::f32, from);
  EXPECT_EQ(hm_fake_gpu_peers(3) & 0b0011U, 0U);
  EXPECT_EQ(x.to(to).to(Device{}).values<float>()[4], 7);
  EXPECT_EQ(hm_fake_gpu_peers(3) & 0b0111U, 0b0100U);
}

}  // namespace
}  // namespace howmany
