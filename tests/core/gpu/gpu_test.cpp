// SPDX-License-Identifier: Apache-2.0
// The GPU interface of core, in the current environment: a driver, no driver, or four fake GPUs
// (on_fake_gpus).
#include "core/gpu/gpu.h"
#include "core/gpu/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "core/backends/backend.h"
#include "core/backends/selection.h"
#include "core/base/error.h"
#include "core/ops/ops.h"
#include "core/tensor/rng.h"
#include "tests/support/message_of.h"
#include "tests/support/tensors.h"

namespace howmany {
namespace {

using testing_support::close;
using testing_support::Draw;

TEST(Gpus, AreUsableOrStateWhyNot) {
  EXPECT_GE(gpu::count(), 0);
  EXPECT_EQ(gpu::unavailable().empty(), gpu::count() > 0);
}

TEST(Gpus, RefuseUnknownIndices) {
  const Device none{DeviceType::cuda, gpu::count()};
  EXPECT_THAT(message_of<std::invalid_argument>([&] { Tensor::zeros({2}, Dtype::f32, none); }),
              testing::HasSubstr(none.str()));
}

class AGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu::count() == 0) GTEST_SKIP() << gpu::unavailable();
  }
  const Device first_{DeviceType::cuda, 0}, last_{DeviceType::cuda, std::max(0, gpu::count() - 1)};
};

TEST_F(AGpu, CopiesBothWays) {
  for (const int64_t n : {0, 1, 17, 100'000}) {
    const Tensor sent = Draw(1).normal({n});
    const Tensor there = sent.to(first_);
    EXPECT_EQ(there.device(), first_);
    EXPECT_TRUE(close(there.to(last_).to(Device{}), sent, 0));
    EXPECT_TRUE(close(there.clone(), sent, 0));
  }
}

TEST_F(AGpu, FillsUniformlyAsTheHost) {
  for (const int64_t n : {0, 1, 2, 3, 4, 5, 4097, 1'000'000})
    for (const Rng& rng : {Rng(1), Rng(2), Rng(1, uint64_t{3} << 32)}) {
      Tensor want = Tensor::full({n + 9}, 7), got = Tensor::full({n + 9}, 7, Dtype::f32, last_);
      Tensor want_part = want.flat(3, 3 + n), got_part = got.flat(3, 3 + n);
      fill_uniform(want_part, -0.3, 0.7, rng);
      fill_uniform(got_part, -0.3, 0.7, rng);
      EXPECT_TRUE(std::ranges::equal(got.to(Device{}).values<float>(), want.values<float>())) << n;
    }
}

TEST_F(AGpu, CopiesBeforeTheHostWritesAgain) {
  Tensor source = Tensor::full({1000}, 1), all = Tensor::zeros({100, 1000}, Dtype::f32, first_);
  for (int64_t row = 0; row < 100; ++row) {
    std::ranges::fill(source.mutable_values<float>(), static_cast<float>(row));
    all.rows(row, row + 1).copy_from(source);
  }
  const Tensor back = all.to(Device{});
  for (int64_t row = 0; row < 100; ++row)
    EXPECT_EQ(back.rows(row, row + 1).values<float>()[999], static_cast<float>(row));
}

// Each fetch has its own staging block, allocated for its GPU whichever GPU is current.
TEST_F(AGpu, FetchesWithoutBlocking) {
  for (const Device& device : {first_, last_}) {
    std::vector<Tensor> there;
    for (const double value : {1, 2, 3})
      there.push_back(Tensor::full({5'000}, value, Dtype::f32, device));
    std::vector<gpu::Fetch> kept;
    for (const Tensor& t : there) kept.emplace_back(t.raw(), 20'000, device.index);
    for (size_t i = 0; i < kept.size(); ++i) {
      const auto* const back = static_cast<const float*>(kept[i].wait());
      EXPECT_EQ(std::count(back, back + 5'000, static_cast<float>(i + 1)), 5'000) << device.str();
    }
  }
}

TEST_F(AGpu, FillsConvertsAndReadsOneElement) {
  EXPECT_EQ(Tensor::full({1}, 3, Dtype::f32, first_).item(), 3);
  EXPECT_EQ(Tensor::full({1}, 3, Dtype::i64, first_).to(Dtype::f32).item(), 3);
  Tensor t = Tensor::full({5}, 7, Dtype::f32, first_);
  t.zero();
  EXPECT_TRUE(close(t, Tensor::zeros({5}), 0));
}

TEST_F(AGpu, IsNotReadOnTheHost) {
  Tensor t = Tensor::zeros({2}, Dtype::f32, first_);
  EXPECT_THROW(t.values<float>(), std::invalid_argument);
  EXPECT_THROW(t.mutable_values<float>(), std::invalid_argument);
}

TEST_F(AGpu, CountsItsMemory) {
  const int64_t before = gpu::memory_use(0).in_use;
  {
    const Tensor t = Tensor::empty({1 << 20}, Dtype::f32, first_);
    EXPECT_GE(gpu::memory_use(0).in_use, before + (4 << 20));
    EXPECT_GE(gpu::memory_use(0).peak, gpu::memory_use(0).in_use);
  }
  EXPECT_EQ(gpu::memory_use(0).in_use, before);
}

TEST_F(AGpu, ReportsThatMemoryIsExhausted) {
  EXPECT_THROW(Tensor::empty({int64_t{1} << 45}, Dtype::f32, first_), Error);
  EXPECT_EQ(Tensor::full({1}, 2, Dtype::f32, first_).item(), 2);  // the GPU is still usable
}

TEST_F(AGpu, RefusesDouble) {
  const Tensor t = Tensor::zeros({2}, Dtype::f64, first_);
  EXPECT_THROW(backend_for(t), std::invalid_argument);
}

TEST_F(AGpu, RefusesInvalidIds) {
  const Tensor table = Tensor::zeros({3, 2}, Dtype::f32, first_);
  EXPECT_THROW(ops::embedding(Tensor::from<int64_t>({3}, {1}, first_), table),
               std::invalid_argument);
}

TEST_F(AGpu, RestoresTheCurrentDevice) {
  const Tensor a = Tensor::full({2}, 1, Dtype::f32, last_);
  const Tensor b = Tensor::full({2}, 1, Dtype::f32, first_);
  EXPECT_TRUE(close(ops::add(a, b.to(last_)), Tensor::full({2}, 2), 0));
  EXPECT_TRUE(close(ops::add(b, a.to(first_)), Tensor::full({2}, 2), 0));
  EXPECT_THROW(ops::add(a, Tensor::zeros({2})), std::invalid_argument);
}

TEST_F(AGpu, DropsTheElementsThatTheReferenceDrops) {
  const Tensor x = Tensor::full({1000}, 1);
  const DropoutKey key{.seed = 7, .stream = uint64_t{3} << 40, .first_element = 5};
  EXPECT_TRUE(close(ops::dropout(x.to(first_), 0.3, key), ops::dropout(x, 0.3, key), 1e-6));
}

TEST_F(AGpu, ServesManyThreads) {
  std::vector<Tensor> got(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < got.size(); ++i)
    threads.emplace_back([&, i] {
      Tensor sum = Tensor::zeros({1000}, Dtype::f32, first_);
      for (int k = 0; k < 20; ++k)
        ops::axpy(static_cast<double>(i), Tensor::full({1000}, 1, Dtype::f32, first_), sum);
      got[i] = sum;
    });
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(close(got[i], Tensor::full({1000}, 20.0 * static_cast<double>(i)), 1e-6));
}

}  // namespace
}  // namespace howmany
