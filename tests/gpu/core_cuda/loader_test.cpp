// SPDX-License-Identifier: Apache-2.0
// labels: process
// Copies batches to a GPU: a real one, or (on_fake_gpus) imitated ones. The latter copy from pinned
// memory only when the host waits, and the host cannot access their memory.
#include "core/data/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "core/backends/cuda/runtime/runtime.h"
#include "core/base/error.h"
#include "core/gpu/blocks.h"
#include "core/gpu/gpu.h"
#include "core/tensor/id_range.h"
#include "core/tensor/rng.h"
#include "tests/fakes/fake_gpu.h"
#include "tests/support/message_of.h"

extern "C" __attribute__((weak)) int hm_fake_gpu_waits();  // tests/fakes/fake_cuda.cpp
extern "C" __attribute__((weak)) int64_t hm_fake_gpu_pinned();
extern "C" __attribute__((weak)) void hm_fake_gpu_lazy(bool);
extern "C" __attribute__((weak)) void hm_fake_gpu_queue(cudaStream_t, bool (*)(void*), void*);

namespace howmany {
namespace {

using testing::HasSubstr;

constexpr int64_t kWidth = 300;

// Samples drawn from (key, index), labels the index.
class Drawn final : public Dataset {
 public:
  explicit Drawn(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  SampleSpec spec() const override { return {.x = {kWidth}}; }
  void get(int64_t index, uint64_t key, void* x, void* y) const override {
    if (on_get) on_get(index);
    const Rng rng(key, static_cast<uint64_t>(index));
    for (int64_t i = 0; i < kWidth; ++i)
      static_cast<float*>(x)[i] = static_cast<float>(rng.uniform(static_cast<uint64_t>(i)));
    *static_cast<int64_t*>(y) = index;
  }
  std::string describe() const override { return "drawn"; }

  std::function<void(int64_t)> on_get;

 private:
  int64_t size_;
};

struct Seen {
  std::vector<float> x;
  std::vector<int64_t> y;
  int64_t number, first_row;
  bool operator==(const Seen&) const = default;
};

Seen seen(const Batch& batch) {
  const Tensor x = batch.x.to(Device{}), y = batch.y.to(Device{});
  return {{x.values<float>().begin(), x.values<float>().end()},
          {y.values<int64_t>().begin(), y.values<int64_t>().end()},
          batch.number,
          batch.first_row};
}

std::vector<Seen> read_epoch(Loader& loader, int64_t epoch) {
  std::vector<Seen> batches;
  loader.start_epoch(epoch);
  while (const auto batch = loader.next()) batches.push_back(seen(*batch));
  return batches;
}

struct LoaderCase {
  int workers;
  WorkersAs as = WorkersAs::threads;
};

class ToAGpu : public testing::TestWithParam<LoaderCase> {
 protected:
  void SetUp() override {
    if (gpu::count() == 0) GTEST_SKIP() << gpu::unavailable();
    if (&hm_fake_gpu_lazy != nullptr) hm_fake_gpu_lazy(true);
  }
  LoaderOptions options(Device device) const {
    return {.global_batch = 8,
            .workers = GetParam().workers,
            .seed = 3,
            .device = device,
            .as = GetParam().as};
  }
  const Device last_{DeviceType::cuda, std::max(0, gpu::count() - 1)};
};
INSTANTIATE_TEST_SUITE_P(Workers, ToAGpu,
                         testing::Values(LoaderCase{0}, LoaderCase{1}, LoaderCase{3},
                                         LoaderCase{2, WorkersAs::processes}),
                         [](const auto& one) {
                           return std::to_string(one.param.workers) + "_of_kind_" +
                                  std::to_string(static_cast<int>(one.param.as));
                         });

TEST_P(ToAGpu, BatchesEqualThoseOfTheHost) {
  const Drawn data(99);
  Loader on_host(data, options({})), loader(data, options(last_));
  for (const int64_t epoch : {0, 4})
    EXPECT_EQ(read_epoch(loader, epoch), read_epoch(on_host, epoch)) << epoch;
}

TEST_P(ToAGpu, HeldBatchesAreNotOverwritten) {
  const Drawn data(60);
  Loader on_host(data, options({})), loader(data, options(last_));
  const std::vector<Seen> expected = read_epoch(on_host, 1);
  std::vector<Batch> held;
  loader.start_epoch(1);
  while (auto batch = loader.next()) held.push_back(std::move(*batch));
  ASSERT_EQ(held.size(), expected.size());
  for (size_t i = 0; i < held.size(); ++i) {
    EXPECT_EQ(held[i].x.device(), last_);
    EXPECT_EQ(held[i].y.device(), last_);
    EXPECT_EQ(seen(held[i]), expected[i]);
  }
}

TEST_P(ToAGpu, RangesOfLabelsAreKnown) {
  const Drawn data(64);
  LoaderOptions in_order = options(last_);
  in_order.shuffle = false;
  Loader loader(data, in_order);
  loader.start_epoch(0);
  loader.next();
  const auto known = known_range(loader.next()->y);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->least, 8);
  EXPECT_EQ(known->most, 15);
}

TEST_P(ToAGpu, UsesTheMemoryOfTwoBatches) {
  const Drawn data(64);
  const int64_t before = gpu::memory_use(last_.index).in_use;
  {
    Loader loader(data, options(last_));
    read_epoch(loader, 0);
    for (int64_t epoch = 1; epoch < 20; ++epoch) {
      read_epoch(loader, epoch);
      const int64_t used = gpu::memory_use(last_.index).in_use - before;
      EXPECT_GE(used, int64_t{8} * kWidth * 4);
      EXPECT_LE(used, int64_t{2} * 2 * 8 * kWidth * 4) << epoch;  // rounding may double it
    }
  }
  gpu::synchronize(last_.index);
  EXPECT_EQ(gpu::memory_use(last_.index).in_use, before);
}

TEST_P(ToAGpu, PinnedMemoryIsBounded) {
  if (&hm_fake_gpu_pinned == nullptr) GTEST_SKIP() << "counted on imitated GPUs";
  const Drawn data(64);
  const int64_t before = hm_fake_gpu_pinned();
  for (int round = 0; round < 3; ++round) {
    Loader loader(data, options(last_));
    for (int64_t epoch = 0; epoch < 10; ++epoch) read_epoch(loader, epoch);
    const int64_t window = std::max(1, 2 * GetParam().workers) + GetParam().workers + 2;
    EXPECT_LE(hm_fake_gpu_pinned() - before, window * (8 * kWidth * 4 + 512));
  }
  EXPECT_EQ(hm_fake_gpu_pinned(), before);
}

TEST_P(ToAGpu, AnAbandonedEpochFreesItsMemory) {
  const Drawn data(1000);
  Loader on_host(data, options({}));
  const int64_t before = gpu::memory_use(last_.index).in_use;
  {
    Loader loader(data, options(last_));
    for (int64_t epoch = 0; epoch < 12; ++epoch) {
      loader.start_epoch(epoch);
      for (int64_t i = 0; i < epoch % 4; ++i) loader.next();
    }
    EXPECT_EQ(read_epoch(loader, 7), read_epoch(on_host, 7));
    loader.start_epoch(8);
    loader.next();
  }
  gpu::synchronize(last_.index);
  EXPECT_EQ(gpu::memory_use(last_.index).in_use, before);
}

TEST_P(ToAGpu, ContinuesAfterAFailedBatch) {
  Drawn data(32);
  data.on_get = [](int64_t index) {
    if (index == 9) throw Error("sample 9 is broken");
  };
  LoaderOptions in_order = options(last_);
  in_order.shuffle = false;
  Loader loader(data, in_order);
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    loader.start_epoch(epoch);
    EXPECT_EQ(seen(*loader.next()).y[0], 0);
    EXPECT_THAT(message_of<Error>([&] { loader.next(); }), HasSubstr("sample 9"));
    EXPECT_EQ(seen(*loader.next()).y[0], 16);
    EXPECT_EQ(seen(*loader.next()).y[0], 24);
    EXPECT_FALSE(loader.next());
  }
}

class OneGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu::count() == 0) GTEST_SKIP() << gpu::unavailable();
  }
};

TEST_F(OneGpu, CopiesOneBatchAhead) {
  Drawn data(6);
  std::atomic<int64_t> begun = -1;
  data.on_get = [&](int64_t index) { begun = std::max(begun.load(), index); };
  Loader loader(data, {.global_batch = 1,
                       .workers = 1,
                       .prefetch = 1,
                       .shuffle = false,
                       .device = Device::parse("cuda:0")});
  loader.start_epoch(0);
  const auto first = loader.next();
  // The second batch was taken, so the only worker could begin the third.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (begun < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  EXPECT_EQ(begun, 2);  // but no more
  EXPECT_EQ(seen(*first).y[0], 0);
}

TEST_F(OneGpu, ReusesABlockOnlyAfterTheGpuHasReadIt) {
  if (&hm_fake_gpu_queue == nullptr) GTEST_SKIP() << "only imitated GPUs can be stopped";
  static std::atomic<bool> go_on;
  go_on = false;
  const auto blocks = Blocks::on_gpu(0, 1000);
  std::shared_ptr<void> block = blocks->take();
  hm_fake_gpu_queue(
      cuda::stream_of(0), [](void*) { return go_on.load(); }, nullptr);
  block.reset();
  std::atomic<bool> taken = false;
  std::thread writer([&] {
    blocks->take();
    taken = true;
  });
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  EXPECT_FALSE(taken);
  go_on = true;
  writer.join();
  EXPECT_EQ(blocks->made(), 1);
}

TEST_F(OneGpu, BlocksOutliveTheirMaker) {
  const int64_t before = gpu::memory_use(0).in_use;
  auto blocks = Blocks::on_gpu(0, 1000);
  std::shared_ptr<void> one = blocks->take(), other = blocks->take();
  EXPECT_NE(one, other);
  blocks.reset();
  one.reset();
  EXPECT_GT(gpu::memory_use(0).in_use, before);
  other.reset();
  gpu::synchronize(0);
  EXPECT_EQ(gpu::memory_use(0).in_use, before);
}

TEST_F(OneGpu, WorksWithoutPersistentWorkers) {
  const Drawn data(40);
  LoaderOptions options{.global_batch = 8, .workers = 2, .seed = 5, .persistent_workers = false};
  Loader on_host(data, options);
  options.device = Device::parse("cuda:0");
  Loader loader(data, options);
  for (int64_t epoch = 0; epoch < 5; ++epoch)
    EXPECT_EQ(read_epoch(loader, epoch), read_epoch(on_host, epoch));
}

}  // namespace
}  // namespace howmany
