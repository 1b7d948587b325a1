// SPDX-License-Identifier: Apache-2.0
// gpu::Graph: its launches, its memory, and the calls that it rejects. Memory is counted on
// imitated GPUs as on real ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/backends/backend.h"
#include "core/backends/cuda/runtime/runtime.h"
#include "core/base/error.h"
#include "core/gpu/event.h"
#include "core/gpu/gpu.h"
#include "core/gpu/graph.h"
#include "core/gpu/stream.h"
#include "core/ops/ops.h"
#include "tests/support/message_of.h"
#include "tests/support/tensors.h"

namespace howmany {
namespace {

using testing::HasSubstr;
using testing_support::close;
using testing_support::Draw;

class AGraph : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu::count() == 0) GTEST_SKIP() << gpu::unavailable();
    one_ = of(1);
  }
  Tensor of(double value, int64_t count = 1000) const {
    return Tensor::full({count}, value, Dtype::f32, gpu_);
  }
  static double first(const Tensor& t) { return t.flat(0, 1).item(); }

  const Device gpu_{DeviceType::cuda, 0};
  Tensor one_;
};

TEST_F(AGraph, RunsOnlyWhenItIsLaunched) {
  Tensor sum = of(0);
  gpu::Graph graph(0, [&] { ops::axpy(2, one_, sum); });
  EXPECT_TRUE(close(sum, of(0), 0));
  for (int launch = 1; launch <= 3; ++launch) {
    graph.launch();
    EXPECT_TRUE(close(sum, of(2 * launch), 0));
  }
}

TEST_F(AGraph, RunsInOrderWithOtherWork) {
  Tensor sum = of(1);
  gpu::Graph graph(0, [&] { sum.copy_from(ops::add(sum, sum)); });
  graph.launch();
  ops::axpy(1, one_, sum);
  graph.launch();
  EXPECT_EQ(first(sum), 6);
}

TEST_F(AGraph, SharesItsMemoryWithNoOtherWork) {
  Tensor sum = of(0);
  const auto chain = [&] {
    Tensor t = ops::add(one_, one_);
    for (int i = 0; i < 5; ++i) t = ops::add(t, one_);
    sum.copy_from(t);
  };
  chain();
  gpu::Graph graph(0, chain);
  std::vector<Tensor> others;
  for (int i = 0; i < 200; ++i) others.push_back(of(i));
  graph.launch();
  for (int i = 0; i < 200; ++i) EXPECT_EQ(first(others[static_cast<size_t>(i)]), i);
  others.clear();
  graph.launch();
  EXPECT_EQ(first(sum), 7);
}

TEST_F(AGraph, ReusesMemoryWithinALaunch) {
  const int64_t before = gpu::memory_use(0).in_use;
  Tensor sum = of(0, 1 << 18);  // 1 MiB
  const Tensor one = of(1, 1 << 18);
  gpu::Graph graph(0, [&] {
    for (int i = 0; i < 50; ++i) sum.copy_from(ops::add(sum, one));
  });
  EXPECT_LE(gpu::memory_use(0).in_use - before, int64_t{2 << 20} + (2 << 20));
  for (int launch = 0; launch < 20; ++launch) graph.launch();
  EXPECT_EQ(first(sum), 1000);
  EXPECT_LE(gpu::memory_use(0).in_use - before, int64_t{2 << 20} + (2 << 20));
}

TEST_F(AGraph, KeepsItsInputsAlive) {
  const int64_t before = gpu::memory_use(0).in_use;
  {
    Tensor sum = of(0), read = of(5);
    gpu::Graph graph(0, [&] { ops::axpy(1, read, sum); });
    read = Tensor();
    const std::vector<Tensor> others = {of(0), of(0), of(0)};
    graph.launch();
    EXPECT_EQ(first(sum), 5);
  }
  EXPECT_EQ(gpu::memory_use(0).in_use, before);
}

TEST_F(AGraph, IsOutlivedByItsTensors) {
  const int64_t before = gpu::memory_use(0).in_use;
  {
    Tensor result;
    {
      gpu::Graph graph(0, [&] { result = ops::add(one_, one_); });
      graph.launch();
    }
    const std::vector<Tensor> others = {of(0), of(0), of(0)};
    EXPECT_TRUE(close(result, of(2), 0));
  }
  EXPECT_EQ(gpu::memory_use(0).in_use, before);
}

TEST_F(AGraph, RefusesWorkThatCannotBeCaptured) {
  Tensor sum = of(0);
  const std::pair<const char*, std::function<void()>> cases[] = {
      {"a copy from the host", [&] { sum.copy_from(Tensor::zeros({1000})); }},
      {"a copy to the host", [&] { first(sum); }},
      {"a copy to the host", [&] { gpu::Fetch(sum.raw(), 4, 0); }},
      {"waiting", [&] { gpu::synchronize(0); }},
      {"an event", [&] { gpu::record_event(0); }},
      {"an event", [&] { gpu::TimedEvent(0); }},
      {"another graph", [&] { gpu::Graph(0, [] {}); }},
  };
  for (const auto& [what, ask] : cases) {
    const auto capture = [&] {
      gpu::Graph(0, [&] {
        ops::axpy(1, one_, sum);
        ask();
      });
    };
    EXPECT_THAT(message_of<Error>(capture), HasSubstr(what));
    EXPECT_FALSE(gpu::capturing());
    gpu::Graph graph(0, [&] { ops::axpy(1, one_, sum); });
    graph.launch();
  }
  EXPECT_EQ(first(sum), static_cast<double>(std::size(cases)));
}

TEST_F(AGraph, RefusesWorkOfAnotherDevice) {
  if (gpu::count() < 2) GTEST_SKIP() << gpu::count() << " GPUs are here";
  Tensor there = Tensor::zeros({10}, Dtype::f32, {DeviceType::cuda, 1});
  EXPECT_THAT(message_of<Error>([&] { gpu::Graph(0, [&] { there.zero(); }); }),
              HasSubstr("another device"));
}

TEST_F(AGraph, ReportsAnInvalidatedCapture) {
  Tensor sum = of(0);
  const auto spoil = [&] {
    gpu::Graph(0, [&] {
      const cuda::OnDevice on(0);
      cudaStreamSynchronize(on.stream());
      cudaGetLastError();
    });
  };
  EXPECT_THAT(message_of<Error>(spoil), HasSubstr("[cuda] capture"));
  ops::axpy(1, one_, sum);
  EXPECT_EQ(first(sum), 1);
}

TEST_F(AGraph, ReusesFreedBlocksOfSimilarSizes) {
  const auto bytes = [&](int64_t other) {
    const Tensor a = of(1, 4000), b = of(1, other);
    const int64_t before = gpu::memory_use(0).in_use;
    const gpu::Graph graph(0, [&] {
      for (int i = 0; i < 10; ++i) ops::add(a, a);
      ops::add(b, b);
    });
    return gpu::memory_use(0).in_use - before;
  };
  EXPECT_EQ(bytes(4000), bytes(3500));
  EXPECT_LT(bytes(4000), bytes(2000));
}

TEST_F(AGraph, KeepsNothingIfTheCaptureThrows) {
  const int64_t before = gpu::memory_use(0).in_use;
  const auto capture = [&] {
    gpu::Graph(0, [&] {
      const Tensor t = ops::add(one_, one_);
      throw std::out_of_range("of luck");
    });
  };
  EXPECT_THROW(capture(), std::out_of_range);
  EXPECT_EQ(gpu::memory_use(0).in_use, before);
}

TEST_F(AGraph, ExcludesWorkOfOtherThreads) {
  Tensor sum = of(0), theirs = of(0);
  gpu::Graph graph(0, [&] {
    std::thread([&] {
      EXPECT_FALSE(gpu::capturing());
      for (int i = 0; i < 3; ++i) ops::axpy(1, of(1), theirs);
      EXPECT_EQ(first(theirs), 3);
    }).join();
    ops::axpy(1, one_, sum);
  });
  graph.launch();
  EXPECT_EQ(first(sum), 1);
  EXPECT_EQ(first(theirs), 3);
}

TEST_F(AGraph, CallsOutsideFunctionsAtEachLaunch) {
  Tensor sum = of(0);
  std::vector<double> seen;
  gpu::Graph graph(0, [&] {
    ops::axpy(1, one_, sum);
    gpu::outside_graph([&] {
      EXPECT_FALSE(gpu::capturing());
      seen.push_back(first(sum));
      ops::axpy(10, one_, sum);
    });
    EXPECT_TRUE(gpu::capturing());
    gpu::outside_graph([&] { seen.push_back(-1); });
    ops::axpy(1, one_, sum);
  });
  EXPECT_TRUE(seen.empty());
  EXPECT_EQ(first(sum), 0);
  for (int launch = 0; launch < 2; ++launch) graph.launch();
  EXPECT_THAT(seen, testing::ElementsAre(1, -1, 13, -1));
  EXPECT_EQ(first(sum), 24);
}

TEST_F(AGraph, KeepsTensorsAcrossOutsideCalls) {
  const int64_t before = gpu::memory_use(0).in_use;
  {
    Tensor sum = of(0);
    gpu::Graph graph(0, [&] {
      Tensor t = ops::add(one_, one_);
      gpu::outside_graph([this, t]() mutable { ops::axpy(1, one_, t); });
      sum.copy_from(ops::add(t, one_));
    });
    const std::vector<Tensor> others = {of(0), of(0), of(0)};
    for (int launch = 0; launch < 2; ++launch) graph.launch();
    EXPECT_EQ(first(sum), 4);
  }
  EXPECT_EQ(gpu::memory_use(0).in_use, before);
}

TEST_F(AGraph, CanBeLaunchedAgainAfterACallThrows) {
  Tensor sum = of(0);
  bool fails = true;
  gpu::Graph graph(0, [&] {
    ops::axpy(1, one_, sum);
    gpu::outside_graph([&] {
      if (fails) throw std::out_of_range("of luck");
    });
    ops::axpy(1, one_, sum);
  });
  EXPECT_THROW(graph.launch(), std::out_of_range);
  EXPECT_EQ(first(sum), 1);
  fails = false;
  graph.launch();
  EXPECT_EQ(first(sum), 3);
}

}  // namespace
}  // namespace howmany
