// SPDX-License-Identifier: Apache-2.0
// Host logic of the cuda backend: keys of products, launch configurations and the reuse of pinned
// blocks. backend_on_fake_gpus checks what cuBLASLt gets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/backends/cuda/blas/blas.h"
#include "core/backends/cuda/kernels/grid.h"
#include "core/backends/cuda/runtime/runtime.h"
#include "core/backends/cuda/runtime/staging.h"
#include "core/gpu/gpu.h"
#include "core/nn/loss.h"

namespace howmany::cuda {
namespace {

TEST(Product, KeepsAlgorithmsOfDifferentProblemsApart) {
  const float value = 0;
  const Product p{.m = 2, .n = 3, .k = 5};
  std::set<ProblemKey> keys{key_of(p, 0), key_of(p, 0)};
  EXPECT_EQ(keys.size(), 1u);
  Product longer = p, turned = p, added = p, biased = p;
  longer.m = 4;
  turned.transpose_a = true;
  added.accumulate = true;
  biased.bias = {&value, Dtype::f32};
  Product apart = p, batched = p;
  apart.strides.a = 64;
  batched.batch = 2;
  Product half = p, short_ = p;
  half.inputs = Precision::bf16;
  short_.inputs = Precision::tf32;
  Product stored = half;
  stored.y.dtype = Dtype::bf16;
  for (const Product& other : {longer, turned, added, biased, apart, batched, half, short_, stored})
    keys.insert(key_of(other, 0));
  keys.insert(key_of(p, 1));
  EXPECT_EQ(keys.size(), 11u);
}

TEST(Grid, HasAThreadForEachElement) {
  for (const int64_t n : {1, 255, 256, 257, 100'000}) {
    const Grid grid = grid_for_elements(n);
    EXPECT_GE(int64_t{grid.blocks} * grid.threads, n);
    EXPECT_LT((int64_t{grid.blocks} - 1) * grid.threads, n);
  }
  EXPECT_EQ(grid_for_elements(int64_t{1} << 50).blocks, kMaxBlocks);
}

TEST(Grid, GivesRowsBlocksOfAPowerOfTwo) {
  for (const int64_t width : {0, 1, 31, 33, 100, 256, 5000}) {
    const Grid grid = grid_for_rows(7, width);
    EXPECT_TRUE(std::has_single_bit(grid.threads)) << width;
    EXPECT_GE(grid.threads, kWarp);
    EXPECT_LE(grid.threads, kMaxThreads);
    EXPECT_EQ(grid.blocks, 7u);
  }
  EXPECT_EQ(grid_for_rows(int64_t{1} << 40, 1).blocks, kMaxBlocks);
}

TEST(Grid, ColumnChunksCoverEveryRowOnce) {
  for (const int64_t rows : {0, 1, 2, 511, 513, 802'816})
    for (const int64_t columns : {1, 3, 64, 2048, 100'000}) {
      const ColumnPlan plan = plan_columns(rows, columns);
      EXPECT_GE(plan.chunks, 1);
      EXPECT_GE(plan.chunk * plan.chunks, rows) << rows << " " << columns;
      EXPECT_LE(plan.chunk * (plan.chunks - 1), std::max<int64_t>(rows - 1, 0));
    }
}

TEST(Divisor, DividesAsDivisionDoes) {
  constexpr int64_t kSmall = int64_t{1} << 31;
  for (const int64_t by : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{7}, int64_t{64},
                           int64_t{641}, int64_t{12'345'679}, kSmall - 1, kSmall, 5 * kSmall}) {
    const Divisor divisor(by);
    for (const int64_t near : {int64_t{0}, by, 3 * by, kSmall - 1, kSmall, 1'000'003 * kSmall})
      for (const int64_t n : {near - 1, near, near + 1}) {
        if (n < 0) continue;
        EXPECT_EQ(divisor(n), n / by) << n << " / " << by;
        EXPECT_EQ(divisor.rest(n), n % by) << n << " % " << by;
      }
    for (int64_t n = kSmall - 1; n > 0; n -= n / 1000 + 1) ASSERT_EQ(divisor(n), n / by) << n;
  }
}

TEST(Staging, HasFewSizes) {
  EXPECT_EQ(staged_size(0), 4096u);
  EXPECT_EQ(staged_size(4096), 4096u);
  EXPECT_EQ(staged_size(4097), 8192u);
}

TEST(Staging, ReusesABlockAfterItsCopy) {
  if (gpu::count() == 0) GTEST_SKIP() << gpu::unavailable();
  const OnDevice on(0);
  Staging staging;
  const Staging::Block first = staging.take(100), second = staging.take(100);
  EXPECT_NE(first.host, second.host);
  staging.give(first, on.stream());
  EXPECT_EQ(staging.held(), 1u);
  gpu::synchronize(0);
  const Staging::Block larger = staging.take(5000), again = staging.take(4096);
  EXPECT_NE(larger.host, first.host);
  EXPECT_EQ(again.host, first.host);
  EXPECT_EQ(staging.held(), 0u);
  for (const Staging::Block& block : {second, larger, again}) staging.give(block, on.stream());
}

TEST(Step, RefusesLabelsOutOfRange) {
  if (gpu::count() == 0) GTEST_SKIP() << gpu::unavailable();
  const Device device{DeviceType::cuda, 0};
  const Tensor y = Tensor::zeros({2, 3}, Dtype::f32, device);
  Tensor labels = Tensor::from<int64_t>({0, 3}, {2}).to(device);
  const auto loss = [&] { compute_loss(Loss::softmax_cross_entropy, y, labels, 2); };
  EXPECT_THROW(loss(), std::invalid_argument);
  labels.copy_from(Tensor::from<int64_t>({0, 2}, {2}));  // invalidates the known range of ids
  EXPECT_NO_THROW(loss());
  labels.copy_from(Tensor::from<int64_t>({0, -1}, {2}));
  EXPECT_THROW(loss(), std::invalid_argument);
}

TEST(GpuUuid, NamesItsDevice) {
  if (gpu::count() == 0) GTEST_SKIP() << gpu::unavailable();
  for (int index = 0; index < gpu::count(); ++index) {
    const std::string uuid = gpu::uuid(index);
    EXPECT_THAT(uuid,
                testing::MatchesRegex("GPU-[0-9a-f]+-[0-9a-f]+-[0-9a-f]+-[0-9a-f]+-[0-9a-f]+"));
    EXPECT_EQ(uuid.size(), 40u);
    EXPECT_EQ(Device::parse("cuda:" + uuid), (Device{DeviceType::cuda, index}));
    EXPECT_EQ(parse_devices("cpu:0-1," + uuid).back(), (Device{DeviceType::cuda, index}));
  }
  if (gpu::count() == 1) return;
  EXPECT_THROW(Device::parse("GPU-"), std::invalid_argument);
}

TEST(PciAddress, IsEmptyForUnknownGpus) {
  if (gpu::count() == 0) GTEST_SKIP() << gpu::unavailable();
  for (int index = 0; index < gpu::count(); ++index)
    EXPECT_THAT(gpu::pci_address(index),
                testing::MatchesRegex("[0-9A-Fa-f]+:[0-9A-Fa-f]+:[0-9A-Fa-f]+\\.[0-9]"));
  for (const int index : {-1, gpu::count()}) {
    EXPECT_EQ(gpu::pci_address(index), "");
    EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "left for the next caller";
  }
}

TEST(OnDevice, NestsAndRestores) {
  if (gpu::count() < 2) GTEST_SKIP() << gpu::count() << " GPUs are here";
  const auto current = [] {
    int device = -1;
    cudaGetDevice(&device);
    return device;
  };
  const OnDevice outer(1);
  EXPECT_EQ(current(), 1);
  {
    const OnDevice inner(0), again(0);
    EXPECT_EQ(current(), 0);
    EXPECT_NE(inner.stream(), outer.stream());
    EXPECT_EQ(inner.stream(), again.stream());
  }
  EXPECT_EQ(current(), 1);
}

}  // namespace
}  // namespace howmany::cuda
