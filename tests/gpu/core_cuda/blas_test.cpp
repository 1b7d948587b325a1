// SPDX-License-Identifier: Apache-2.0
// The choice of cuBLASLt's algorithm for a kind of product, and the cost of the choice. Uses fake
// GPUs; the algorithms of the fake cuBLASLt have different times on their clock.
#include "core/backends/cuda/blas/blas.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <random>
#include <thread>
#include <utility>

#include "core/backends/cuda/blas/problem.h"
#include "core/backends/selection.h"
#include "core/base/error.h"
#include "core/gpu/gpu.h"
#include "core/gpu/graph.h"
#include "core/gpu/tuning.h"
#include "core/ops/ops.h"
#include "tests/fakes/fake_cublaslt.h"
#include "tests/support/message_of.h"
#include "tests/support/tensors.h"

extern "C" {  // fake_cuda.cpp
__attribute__((weak)) int hm_fake_gpu_waits();
__attribute__((weak)) void hm_fake_gpu_queue(cudaStream_t, bool (*done)(void*), void* with);
}

namespace howmany::cuda {
namespace {

using testing_support::close;

const Device kGpu{DeviceType::cuda, 0};

FakeCublasLt* fake() {
  static auto* const library_fake = [] {
    const std::string name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
    void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* const found = library ? dlsym(library, "hm_fake_cublaslt") : nullptr;
    return found ? reinterpret_cast<FakeCublasLt* (*)()>(found)() : nullptr;
  }();
  return library_fake;
}

using Runs = std::array<int, 4>;  // per algorithm

class Algorithms : public testing::Test {
 protected:
  void SetUp() override {
    if (&hm_fake_gpu_waits == nullptr || fake() == nullptr)
      GTEST_SKIP() << "runs of algorithms are counted on imitated GPUs";
    std::vector<double> seconds{-1, 500, 600, 800};  // large, so that host time is negligible
    std::ranges::shuffle(seconds, random);
    for (size_t i = 0; i < seconds.size(); ++i) {
      fake()->algorithms[i].seconds = seconds[i];
      if (seconds[i] == 500) fastest = i;
      if (seconds[i] < 0) refusing = i;
    }
    first = refusing == 0 ? 1 : 0;
    runs();
  }

  // Returns the runs since the last call.
  static Runs runs() {
    Runs all{};
    for (size_t i = 0; i < all.size(); ++i) all[i] = fake()->algorithms[i].runs.exchange(0);
    return all;
  }
  static Runs only(size_t which, int times = 1) {
    Runs all{};
    all[which] = times;
    return all;
  }
  Runs unmeasured() const {  // expected for the first call of a kind
    Runs all = only(first);
    if (refusing == 0) all[refusing] = 1;
    return all;
  }
  Runs measured() const {  // expected for the second call, with the product itself
    Runs all;
    all.fill(1 + kTimes);
    all[refusing] = refusing < first ? 0 : 1;  // 0: it was dropped in the first call
    ++all[fastest];
    return all;
  }

  const uint64_t seed = testing_support::fresh_seed();
  std::mt19937_64 random{seed};
  testing_support::Draw draw{seed};
  size_t fastest = 0, refusing = 0, first = 0;
};

// A new kind of product, with integer values, so that every sum is exact.
struct Kind {
  explicit Kind(testing_support::Draw& draw, int64_t n = 96)
      : a(draw.ids({fresh(), 120}, 9).to(Dtype::f32)), b(draw.ids({120, n}, 9).to(Dtype::f32)) {}
  static int64_t fresh() {
    static int64_t last = kWorthMeasuring / (96 * 120);
    return ++last;
  }
  Tensor a, b, on_gpu_a = a.to(kGpu), on_gpu_b = b.to(kGpu);
};

// y += a b
struct Sum {
  explicit Sum(const Kind& of) : kind(of), y(ops::matmul(of.on_gpu_a, of.on_gpu_b)) { y.zero(); }
  void multiply() {
    backend_for(y).matmul(kind.on_gpu_a, false, kind.on_gpu_b, false, true, y);
    ++times;
  }
  bool exact() const {
    Tensor want = ops::matmul(kind.a, kind.b);
    for (float& v : want.mutable_values<float>()) v *= static_cast<float>(times);
    return static_cast<bool>(close(y, want, 0));
  }
  const Kind& kind;
  Tensor y;
  int times = 0;
};

TEST_F(Algorithms, AreMeasuredOnTheSecondCall) {
  SCOPED_TRACE(seed);
  const Kind kind(draw);
  const auto multiply = [&] { return ops::matmul(kind.on_gpu_a, kind.on_gpu_b); };
  multiply();
  EXPECT_EQ(runs(), unmeasured());
  multiply();
  EXPECT_EQ(runs(), measured());
  for (int i = 0; i < 5; ++i) multiply();
  EXPECT_EQ(runs(), only(fastest, 5));
}

// A key of the list and the choice behind it: [length, key ..., choice].
std::vector<int64_t> with_choice(std::vector<int64_t> list, int64_t choice) {
  for (size_t at = 0; at < list.size(); at += static_cast<size_t>(list[at]) + 2)
    list[at + static_cast<size_t>(list[at]) + 1] = choice;
  return list;
}

TEST_F(Algorithms, OfUseTuningReplaceTheOwnOnes) {
  SCOPED_TRACE(seed);
  const Kind kind(draw);
  const auto multiply = [&] { return ops::matmul(kind.on_gpu_a, kind.on_gpu_b); };
  multiply(), multiply();
  size_t other = 0;
  while (other == fastest || other == refusing) ++other;
  const std::vector<int64_t> before = gpu::tuning();
  gpu::use_tuning(with_choice(before, static_cast<int64_t>(other)));
  runs();
  multiply();
  EXPECT_EQ(runs(), only(other));
  gpu::use_tuning(with_choice(before, 1000));  // no algorithm: ignored
  multiply();
  EXPECT_EQ(runs(), only(other));
  gpu::use_tuning(before);
  multiply();
  EXPECT_EQ(runs(), only(fastest));
}

TEST_F(Algorithms, ServeOtherGpusOfTheKind) {
  SCOPED_TRACE(seed);
  if (gpu::count() < 2) GTEST_SKIP() << "needs two GPUs";
  const Kind kind(draw);
  const Device second{DeviceType::cuda, 1};
  const Tensor a = kind.a.to(second), b = kind.b.to(second);
  for (int i = 0; i < 2; ++i) ops::matmul(kind.on_gpu_a, kind.on_gpu_b);
  runs();
  ops::matmul(a, b);
  EXPECT_EQ(runs(), only(fastest));
}

TEST_F(Algorithms, AreMeasuredOnceByAllThreads) {
  SCOPED_TRACE(seed);
  constexpr int kThreads = 4, kCalls = 5;
  const Kind kind(draw);
  std::vector<Sum> sums(kThreads, Sum(kind));
  for (Sum& s : sums) s.y = s.y.clone();
  runs();
  {
    std::vector<std::jthread> threads;
    for (Sum& s : sums)
      threads.emplace_back([&] {
        for (int i = 0; i < kCalls; ++i) s.multiply();
      });
  }
  // The other threads do not wait for the trial: they use the first algorithm meanwhile.
  Runs want = measured(), got = runs();
  for (size_t i = 0; i < want.size(); ++i) want[i] += unmeasured()[i];
  want[fastest] += kThreads * kCalls - 2;
  got[fastest] += std::exchange(got[first], 0);
  want[fastest] += std::exchange(want[first], 0);
  EXPECT_EQ(got, want);
  for (const Sum& s : sums) EXPECT_TRUE(s.exact());
}

// As if ranks shared a GPU: it waits for work that another thread has yet to enqueue.
TEST_F(Algorithms, AreMeasuredWithoutBlockingOtherThreads) {
  static std::atomic<bool> go;
  go = false;
  const Kind kind(draw);
  const auto multiply = [&] { ops::matmul(kind.on_gpu_a, kind.on_gpu_b); };
  multiply();
  hm_fake_gpu_queue(
      stream_of(0), [](void*) { return go.load(); }, nullptr);
  const int before = hm_fake_gpu_waits();
  auto trial = std::async(std::launch::async, multiply);
  while (hm_fake_gpu_waits() == before) std::this_thread::yield();
  auto other = std::async(std::launch::async, multiply);
  EXPECT_EQ(other.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  go = true;
}

TEST_F(Algorithms, AreNotMeasuredDuringACapture) {
  SCOPED_TRACE(seed);
  const Kind kind(draw), whatever(draw);
  const auto multiply = [&] { return ops::matmul(kind.on_gpu_a, kind.on_gpu_b); };
  ops::matmul(whatever.on_gpu_a, whatever.on_gpu_b);  // warm-up: creates the shared state
  runs();
  const int waits = hm_fake_gpu_waits();
  const gpu::Graph graph(0, [&] {
    for (int i = 0; i < 3; ++i) multiply();
  });
  Runs want = unmeasured();
  want[first] += 2;
  EXPECT_EQ(runs(), want);
  EXPECT_EQ(hm_fake_gpu_waits(), waits);
  multiply();
  EXPECT_EQ(runs(), measured());
}

TEST_F(Algorithms, OfSmallProductsAreNotMeasured) {
  SCOPED_TRACE(seed);
  const Kind small(draw, 8);
  for (int i = 0; i < 3; ++i) ops::matmul(small.on_gpu_a, small.on_gpu_b);
  EXPECT_EQ(runs()[first], 3);
}

TEST_F(Algorithms, AreDescribedOnce) {
  const Kind kind(draw);
  const Tensor x = Tensor::zeros({5, 120}, Dtype::f32, kGpu), w = kind.on_gpu_a;
  const Tensor bias = draw.normal({w.shape()[0]}).to(kGpu), other = draw.normal(bias.shape());
  const Tensor other_on_gpu = other.to(kGpu);
  ops::linear(x, w, bias, Activation::none);
  const int made = fake()->made, asked = fake()->heuristics;
  const Tensor y = ops::linear(x, w, other_on_gpu, Activation::none);
  EXPECT_EQ(fake()->made, made);
  EXPECT_EQ(fake()->heuristics, asked);
  for (int64_t row = 0; row < 5; ++row)
    EXPECT_TRUE(close(y.rows(row, row + 1).view(other.shape()), other, 0))
        << "not this call's bias";
}

TEST_F(Algorithms, AddABiasAtAnyAddress) {
  const Kind kind(draw);
  const Tensor x = Tensor::zeros({5, 120}, Dtype::f32, kGpu), w = kind.on_gpu_a;
  const int64_t n = w.shape()[0];
  const Tensor all = draw.normal({n + 1});
  const Tensor y = ops::linear(x, w, all.to(kGpu).flat(1, n + 1), Activation::none);
  for (int64_t row = 0; row < 5; ++row)
    EXPECT_TRUE(close(y.rows(row, row + 1).view({n}), all.flat(1, n + 1), 0));
}

TEST_F(Algorithms, ReportTheProductThatAllRefuse) {
  for (FakeAlgorithm& a : fake()->algorithms) a.seconds = -1;
  const Kind kind(draw);
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(message_of<Error>([&] { ops::matmul(kind.on_gpu_a, kind.on_gpu_b); }),
                testing::HasSubstr(",120] x [120,96]"));
}

}  // namespace
}  // namespace howmany::cuda
