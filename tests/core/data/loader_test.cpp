// SPDX-License-Identifier: Apache-2.0
// labels: threads
#include "core/data/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <latch>
#include <numeric>
#include <set>
#include <thread>

#include "core/base/error.h"
#include "core/gpu/gpu.h"
#include "tests/support/message_of.h"

namespace howmany {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Sample i is {i, part of the key}, so that a batch shows its samples.
class Numbers : public Dataset {
 public:
  explicit Numbers(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  SampleSpec spec() const override {
    return {.x = {2}, .x_dtype = Dtype::i64, .y_dtype = Dtype::i64};
  }
  void get(int64_t index, uint64_t key, void* x, void* y) const override {
    ++reads;
    if (on_get) on_get(index);
    static_cast<int64_t*>(x)[0] = index;
    static_cast<int64_t*>(x)[1] = static_cast<int64_t>(key >> 1);
    *static_cast<int64_t*>(y) = -index;
  }
  std::string describe() const override { return "numbers"; }

  std::function<void(int64_t)> on_get;
  mutable std::atomic<int64_t> reads = 0;

 private:
  int64_t size_;
};

struct Seen {
  std::vector<int64_t> x, y;
  int64_t global_rows, first_row;
  bool operator==(const Seen&) const = default;
};

std::vector<Seen> read_epoch(Loader& loader, int64_t epoch) {
  std::vector<Seen> batches;
  loader.start_epoch(epoch);
  while (auto batch = loader.next()) {
    const auto x = batch->x.values<int64_t>();
    const auto y = batch->y.values<int64_t>();
    batches.push_back(
        {{x.begin(), x.end()}, {y.begin(), y.end()}, batch->global_rows, batch->first_row});
  }
  return batches;
}

class Workers : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Count, Workers, ::testing::Values(0, 1, 2, 4));

TEST_P(Workers, SharesTogetherAreTheGlobalBatch) {
  const Numbers data(103);
  Loader whole(data, {.global_batch = 8, .workers = GetParam(), .seed = 3});
  const auto expected = read_epoch(whole, 2);
  for (int count : {1, 2, 3}) {
    std::vector<Seen> joined(expected.size(), Seen{{}, {}, 0, 0});
    for (int index = 0; index < count; ++index) {
      Loader loader(data,
                    {.global_batch = 8, .workers = GetParam(), .seed = 3, .share = {index, count}});
      const auto part = read_epoch(loader, 2);
      ASSERT_EQ(part.size(), expected.size());
      for (size_t b = 0; b < part.size(); ++b) {
        EXPECT_EQ(part[b].first_row, static_cast<int64_t>(joined[b].y.size()));
        joined[b].global_rows = part[b].global_rows;
        joined[b].x.insert(joined[b].x.end(), part[b].x.begin(), part[b].x.end());
        joined[b].y.insert(joined[b].y.end(), part[b].y.begin(), part[b].y.end());
      }
    }
    EXPECT_EQ(joined, expected) << count << " shares";
  }
}

TEST_P(Workers, AnEpochIsEverySampleOnce) {
  const Numbers data(50);
  Loader loader(data, {.global_batch = 7, .workers = GetParam()});
  std::vector<std::vector<int64_t>> orders;
  std::set<int64_t> keys;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t> order;
    for (const Seen& batch : read_epoch(loader, epoch)) {
      for (int64_t y : batch.y) order.push_back(-y);
      keys.insert(batch.x[1]);
    }
    orders.push_back(order);
    std::ranges::sort(order);
    std::vector<int64_t> all(50);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(order, all);
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_EQ(keys.size(), 3u);  // augmentation differs between epochs
}

TEST_P(Workers, UnshuffledIsInOrder) {
  const Numbers data(5);
  Loader loader(data, {.global_batch = 2, .workers = GetParam(), .shuffle = false});
  const auto batches = read_epoch(loader, 0);
  ASSERT_EQ(batches.size(), 3u);
  EXPECT_THAT(batches[0].y, ElementsAre(0, -1));
  EXPECT_THAT(batches[2].y, ElementsAre(-4));
  EXPECT_EQ(batches[2].global_rows, 1);
}

TEST(Loader, LastBatchIsDroppedOnAllRanksAlike) {
  const Numbers data(10);
  const auto batches = [&](bool drop_last, Share share) {
    return Loader(data, {.global_batch = 4, .drop_last = drop_last, .share = share})
        .batches_per_epoch();
  };
  EXPECT_EQ(batches(false, {0, 1}), 3);
  EXPECT_EQ(batches(true, {0, 1}), 2);
  for (int index = 0; index < 2; ++index) EXPECT_EQ(batches(false, {index, 2}), 3);
  for (int index = 0; index < 3; ++index) EXPECT_EQ(batches(false, {index, 3}), 2);
}

TEST(Loader, ReadsAheadNoFurtherThanTheWindow) {
  const Numbers data(1000);
  Loader loader(data, {.global_batch = 5, .workers = 2, .prefetch = 3, .shuffle = false});
  loader.start_epoch(0);
  const auto settles_at = [&](int64_t reads) {
    while (data.reads < reads) std::this_thread::yield();
    // Yields often, so that workers that are not idle have time to increase the count.
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    return data.reads == reads;
  };
  EXPECT_TRUE(settles_at(2 * 3 * 5));
  loader.next();
  EXPECT_TRUE(settles_at(2 * 3 * 5 + 5));
}

TEST(Loader, WorkersLoadAtTheSameTime) {
  Numbers data(8);
  std::latch both(2);  // the first two samples are only loaded if they are loaded concurrently
  data.on_get = [&](int64_t) {
    if (data.reads <= 2) both.arrive_and_wait();
  };
  Loader loader(data, {.global_batch = 1, .workers = 2, .prefetch = 1});
  loader.start_epoch(0);
  EXPECT_TRUE(loader.next());
}

TEST(Loader, WaitingIsCounted) {
  const Numbers data(8);
  Loader loader(data, {.global_batch = 1, .workers = 1});
  EXPECT_EQ(loader.wait_seconds(), 0);
  loader.start_epoch(0);
  loader.next();
  EXPECT_GT(loader.wait_seconds(), 0);
}

TEST(Loader, BatchesAreOnTheirDevice) {
  const Numbers data(8);
  for (int workers : {0, 2}) {
    Loader loader(data, {.global_batch = 2, .workers = workers, .device = Device::parse("cpu:1")});
    loader.start_epoch(0);
    const auto batch = loader.next();
    EXPECT_EQ(batch->x.device(), Device::parse("cpu:1"));
    EXPECT_EQ(batch->y.device(), Device::parse("cpu:1"));
    EXPECT_EQ(batch->x.shape(), Shape({2, 2}));
    EXPECT_EQ(batch->y.shape(), Shape({2}));
  }
}

TEST(Loader, RefusesAGpuThatIsNotThere) {
  const Numbers data(8);
  EXPECT_THAT(message_of<std::invalid_argument>([&] {
                Loader loader(data, {.device = {DeviceType::cuda, gpu::count()}});
              }),
              HasSubstr(fmt::format("cuda:{}", gpu::count())));
}

TEST(Loader, RefusesOptionsThatMakeNoBatch) {
  const Numbers data(10), none(0);
  const auto refused = [&](const Dataset& dataset, const LoaderOptions& options) {
    return message_of<std::invalid_argument>([&] { Loader loader(dataset, options); });
  };
  EXPECT_THAT(refused(data, {.global_batch = 0}), HasSubstr("global batch 0"));
  EXPECT_THAT(refused(data, {.workers = -1}), HasSubstr("-1 workers"));
  EXPECT_THAT(refused(data, {.workers = 10'000}), HasSubstr("10000 workers, at most 1024"));
  EXPECT_THAT(refused(data, {.prefetch = 0}), HasSubstr("prefetch 0"));
  EXPECT_THAT(refused(data, {.share = {2, 2}}), HasSubstr("share 2 of 2"));
  EXPECT_THAT(refused(data, {.global_batch = 2, .share = {0, 3}}),
              HasSubstr("batch of 2 has no row for some of 3 ranks"));
  EXPECT_THAT(refused(data, {.global_batch = 16, .drop_last = true}),
              HasSubstr("10 samples make no batch of 16"));
  EXPECT_THAT(refused(none, {}), HasSubstr("0 samples make no batch"));
  Loader loader(data, {});
  EXPECT_THROW(loader.next(), std::invalid_argument);
}

std::vector<int64_t> samples_of(const std::vector<Seen>& batches) {
  std::vector<int64_t> samples;
  for (const Seen& batch : batches)
    for (const int64_t y : batch.y) samples.push_back(-y);
  return samples;
}

TEST(LoaderSampler, YieldsTheSamplersOrderOfEachEpoch) {
  const Numbers data(11);
  for (const auto as : {WorkersAs::threads, WorkersAs::processes})
    for (const int workers : {0, 2})
      for (const int rank : {0, 1, 2}) {
        DistributedSampler sampler({.size = 11, .rank = rank, .world = 3, .seed = 5});
        Loader loader(data, {.global_batch = 6, .workers = workers, .sampler = sampler, .as = as});
        for (const int64_t epoch : {0, 4}) {
          sampler.set_epoch(epoch);
          EXPECT_EQ(samples_of(read_epoch(loader, epoch)), sampler.indices());
        }
      }
}

TEST(LoaderSampler, RanksTogetherHaveGlobalBatches) {
  const Numbers data(11);
  for (const int rank : {0, 1, 2}) {
    const DistributedSampler sampler({.size = 11, .rank = rank, .world = 3});
    Loader loader(data, {.global_batch = 6, .sampler = sampler});
    const auto batches = read_epoch(loader, 0);
    ASSERT_EQ(batches.size(), 2u);
    for (const Seen& batch : batches) {
      EXPECT_EQ(batch.global_rows, 6);  // 12 samples with padding
      EXPECT_EQ(batch.first_row, 2 * rank);
      EXPECT_EQ(batch.y.size(), 2u);
    }
  }
}

TEST(LoaderSampler, RefusesASamplerThatDoesNotFit) {
  const Numbers data(11);
  const DistributedSampler three({.size = 11, .world = 3}), other({.size = 10});
  EXPECT_THROW(Loader(data, {.global_batch = 4, .sampler = three}), std::invalid_argument);
  EXPECT_THROW(Loader(data, {.global_batch = 4, .sampler = other}), std::invalid_argument);
  EXPECT_THROW(Loader(data, {.global_batch = 6, .share = {0, 2}, .sampler = three}),
               std::invalid_argument);
}

}  // namespace
}  // namespace howmany
