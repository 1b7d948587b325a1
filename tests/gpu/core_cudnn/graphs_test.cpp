// SPDX-License-Identifier: Apache-2.0
// Tests that cuDNN accepts every graph, and that the chosen engine is the fastest with the
// requested precision. NVIDIA's library checks descriptors and graphs without a GPU. It also
// proposes engines for a GPU that is described by its properties.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/backends/cuda/dnn/graphs.h"
#include "core/backends/cuda/dnn/library.h"
#include "core/backends/cuda/dnn/plan.h"
#include "core/backends/cuda/runtime/runtime.h"
#include "core/base/error.h"
#include "core/gpu/fallbacks.h"
#include "core/gpu/gpu.h"
#include "core/gpu/graph.h"
#include "core/gpu/tuning.h"
#include "core/ops/ops.h"
#include "core/tensor/precision.h"
#include "tests/fakes/fake_cudnn.h"
#include "tests/support/tensors.h"

extern "C" {  // of tests/fakes/fake_cuda.cpp
__attribute__((weak)) void hm_fake_gpu_queue(cudaStream_t, bool (*done)(void*), void* with);
__attribute__((weak)) int hm_fake_gpu_waits();
}

namespace howmany::cuda::dnn {
namespace {

using testing_support::close;
using testing_support::Draw;
using testing_support::fresh_seed;

int (*fake_runs())(int) {
  static void* const fake = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_NOLOAD);
  return fake == nullptr ? nullptr
                         : reinterpret_cast<int (*)(int)>(dlsym(fake, "hm_fake_cudnn_runs"));
}

class TheLibrary : public testing::Test {
 protected:
  void SetUp() override {
    try {
      library();
    } catch (const Error& e) {
      GTEST_SKIP() << e.what();
    }
#ifdef HM_SANITIZED  // libraries that NVIDIA's library opens are not sanitized, and it leaks
    if (fake_runs() == nullptr) GTEST_SKIP() << "NVIDIA's library is not run by a sanitizer";
#endif
  }
};

// Odd sizes, and those of a ResNet.
const Convolution kSizes[] = {
    {2, 9, 7, 3, 17, 9, 7, {3, 1, 1}},           {1, 17, 17, 3, 33, 9, 9, {7, 2, 3}},
    {3, 5, 6, 17, 3, 3, 3, {1, 2, 0}},           {1, 4, 4, 2, 3, 2, 2, {2, 3, 1}},
    {256, 224, 224, 3, 64, 112, 112, {7, 2, 3}}, {256, 56, 56, 64, 64, 56, 56, {3, 1, 1}},
    {256, 56, 56, 64, 128, 28, 28, {3, 2, 1}},   {256, 56, 56, 64, 128, 28, 28, {1, 2, 0}}};

std::vector<ConvolutionProblem> problems() {
  std::vector<ConvolutionProblem> all;
  for (const Convolution& sizes : kSizes)
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_filter})
      for (const auto& [halves, half_result] :
           {std::pair{false, false}, {true, false}, {true, true}})
        for (const bool bias : {false, true})
          for (const int64_t alignment : {4, 16})
            if (!bias || pass == Pass::forward)
              all.push_back(
                  {pass, sizes, halves, half_result, bias, {16, 16, alignment}, alignment});
  return all;
}

std::string name_of(const ConvolutionProblem& p) {
  const Convolution& s = p.sizes;
  return fmt::format(
      "pass {} of {}x{}x{}x{} -> {}, window {}/{}/{}, halves {} to {} bias {} aligned {}",
      static_cast<int>(p.pass), s.images, s.height, s.width, s.channels, s.out, s.window.size,
      s.window.stride, s.window.padding, p.halves, p.half_result, p.bias, p.alignments[2]);
}

TEST_F(TheLibrary, AcceptsEveryConvolution) {
  for (const ConvolutionProblem& p : problems()) {
    SCOPED_TRACE(name_of(p));
    Graph graph = graph_of(p);
    EXPECT_NO_THROW(graph.finish(nullptr));
    EXPECT_EQ(graph.ids().size(), p.bias ? 4U : 3U);
  }
}

// {samples, times, heads, size}: short, odd, and those of GPT-2.
const Attention kAttention[] = {
    {2, 1, 1, 8, true}, {2, 33, 2, 8, false}, {1, 65, 3, 24, true}, {8, 1024, 16, 64, true}};

TEST_F(TheLibrary, AcceptsEveryAttention) {
  for (const Attention& a : kAttention) {
    SCOPED_TRACE(fmt::format("{}x{} {} heads of {}", a.samples, a.times, a.heads, a.size));
    Graph forward = attention_graph(a), backward = attention_backward_graph(a);
    EXPECT_NO_THROW(forward.finish(nullptr));
    EXPECT_NO_THROW(backward.finish(nullptr));
    EXPECT_EQ(forward.ids().size(), a.causal ? 7U : 6U);
    EXPECT_EQ(backward.ids().size(), a.causal ? 13U : 12U);
  }
}

// GPU properties in the format of cuDNN 9.19.
constexpr std::string_view kH100 = R"({"maxGridSize": [2147483647, 65535, 65535],
  "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536, "multiProcessorCount": 132,
  "warpSize": 32, "deviceVer": 900, "driverVer": 13000, "smClockRateKHz": 1980000,
  "memClockRateKHz": 2619000, "l2CacheSize": 52428800, "maxSharedMemoryPerBlock": 49152,
  "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024,
  "maxRegistersPerSM": 65536, "pciDeviceId": 0, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024,
  "maxThreadsPerSM": 2048, "isTccDriver": 0, "supportCoopLaunch": 1, "cudaDeviceId": 0,
  "totalGlobalMem": 85520809984, "deviceName": "NVIDIA H100 80GB HBM3"})";

std::optional<Descriptor> an_h100() try {
  Descriptor gpu(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  gpu.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, std::span(kH100.data(), kH100.size()));
  gpu.finish("properties");
  return gpu;
} catch (const Error&) {
  return std::nullopt;
}

TEST_F(TheLibrary, HasEnginesForF32ConvolutionsOnAnH100) {
  const auto gpu = an_h100();
  if (!gpu) GTEST_SKIP() << "this cuDNN takes no description of a GPU as 9.19 does";
  for (const ConvolutionProblem& p : problems()) {
    if (p.halves) continue;  // compiled at run time, which requires a driver
    SCOPED_TRACE(name_of(p));
    Graph graph = graph_of(p);
    graph.finish(nullptr);
    EXPECT_FALSE(engines_for(graph, false, 1, &*gpu).empty());
    const bool has = !engines_for(graph, true, 1, &*gpu).empty();
    EXPECT_TRUE(has || p.alignments[2] < 16 || (p.bias && p.sizes.out % 2 != 0));
  }
}

// For ResNet's sizes on an H100. With f32 results there is one engine, which must be compiled; for
// three channels there is none.
TEST_F(TheLibrary, HasManyEnginesForBf16WeightGradients) {
  const auto gpu = an_h100();
  if (!gpu) GTEST_SKIP() << "this cuDNN takes no description of a GPU as 9.19 does";
  for (const Convolution& sizes : kSizes) {
    if (sizes.images != 256) continue;
    const ConvolutionProblem p{.pass = Pass::backward_filter,
                               .sizes = sizes,
                               .halves = true,
                               .half_result = true,
                               .alignments = {16, 16, 16}};
    SCOPED_TRACE(name_of(p));
    Graph graph = graph_of(p);
    graph.finish(nullptr);
    EXPECT_GE(advised(graph, CUDNN_HEUR_MODE_A, &*gpu).size(), 10U);
  }
}

// cuDNN proposes engines that must be compiled only if there is a driver library; a stub suffices.
TEST_F(TheLibrary, AdvisesEnginesForAttentionOnAnH100) {
  const auto gpu = an_h100();
  if (!gpu) GTEST_SKIP() << "this cuDNN takes no description of a GPU as 9.19 does";
  if (std::getenv("HM_STUB_DRIVER") == nullptr) GTEST_SKIP() << "not beside a stub of the driver";
  for (const Attention& a : kAttention) {
    SCOPED_TRACE(fmt::format("{}x{} {} heads of {}", a.samples, a.times, a.heads, a.size));
    for (const bool backward : {false, true}) {
      Graph graph = backward ? attention_backward_graph(a) : attention_graph(a);
      graph.finish(nullptr);
      const auto all = advised(graph, CUDNN_HEUR_MODE_A, &*gpu);
      const bool wanted =
          std::ranges::any_of(all, [](const Descriptor& one) { return is_wanted(one, true); });
      EXPECT_TRUE(wanted || a.times == 1) << "of " << all.size() << ", backward " << backward;
    }
  }
}

TEST(Engines, ThatLoseBitsOrVaryAreRejected) {
  using Notes = std::vector<cudnnBackendNumericalNote_t>;
  const Notes cores{CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, strict{CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP};
  EXPECT_TRUE(is_wanted({}, false));
  EXPECT_TRUE(is_wanted(strict, false));
  EXPECT_FALSE(is_wanted(cores, false));
  EXPECT_TRUE(is_wanted(cores, true));
  EXPECT_FALSE(is_wanted({}, true));
  EXPECT_FALSE(is_wanted(strict, true));
  for (const auto note :
       {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION,
        CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, CUDNN_NUMERICAL_NOTE_FFT,
        CUDNN_NUMERICAL_NOTE_WINOGRAD})
    EXPECT_FALSE(is_wanted(Notes{CUDNN_NUMERICAL_NOTE_TENSOR_CORE, note}, true)) << note;
}

// On fake GPUs: checks which of the fake's engines ran.
class OnAGpu : public TheLibrary {
 protected:
  void SetUp() override {
    TheLibrary::SetUp();
    if (gpu::count() == 0) GTEST_SKIP() << gpu::unavailable();
    if (fake_runs() == nullptr) GTEST_SKIP() << "engines are counted of an imitated cuDNN";
  }
  static int runs(testing_support::fake_cudnn::Engine engine) {
    return fake_runs()(static_cast<int>(engine));
  }
  static int all() {
    int n = 0;
    for (int i = 0; i < static_cast<int>(testing_support::fake_cudnn::Engine::count); ++i)
      n += fake_runs()(i);
    return n;
  }
};
using testing_support::fake_cudnn::Engine;

TEST_F(OnAGpu, TheFastestPreciseEngineComputes) {
  Draw draw(fresh_seed());
  const Device device{DeviceType::cuda, 0};
  const Window window{3, 1, 1};
  const Tensor x = draw.normal({2, 5, 6, 8}), w = draw.normal({16, 3, 3, 8});
  const Tensor on_gpu = x.to(device), weights = w.to(device);
  const auto once = [&] { return ops::conv2d(on_gpu, weights, {}, window); };
  EXPECT_TRUE(close(once(), ops::conv2d(x, w, {}, window), 2e-5));
  EXPECT_EQ(runs(Engine::chancy), 0);
  EXPECT_EQ(runs(Engine::rounding), 0);
  const int slow = runs(Engine::slow), fast = runs(Engine::fast);
  EXPECT_GT(slow, 0);
  once();
  EXPECT_EQ(runs(Engine::slow), slow);
  EXPECT_EQ(runs(Engine::fast), fast + 1);
  const PrecisionScope precision(Precision::tf32);
  once();
  EXPECT_GT(runs(Engine::rounding), 0);
}

TEST_F(OnAGpu, UseTuningReplacesTheEngineOnAllGpus) {
  Draw draw(fresh_seed());
  const Tensor x = draw.normal({2, 7, 6, 8}), w = draw.normal({16, 3, 3, 8});
  const auto once = [&](int gpu) {
    const Device device{DeviceType::cuda, gpu};
    ops::conv2d(x.to(device), w.to(device), {}, {3, 1, 1});
  };
  once(0);
  std::vector<int64_t> list = gpu::tuning();  // [length, key ..., place] ...
  const std::vector<int64_t> own = list;
  for (size_t at = 0; at < list.size(); at += static_cast<size_t>(list[at]) + 2)
    list[at + static_cast<size_t>(list[at]) + 1] = 0;  // Engine::slow is the first that has a plan
  gpu::use_tuning(list);
  const int slow = runs(Engine::slow), fast = runs(Engine::fast);
  once(0);
  EXPECT_EQ(runs(Engine::slow), slow + 1);
  once(1);  // untried there
  EXPECT_EQ(runs(Engine::slow), slow + 2);
  EXPECT_EQ(runs(Engine::fast), fast);
  gpu::use_tuning(own);
  once(1);
  EXPECT_EQ(runs(Engine::fast), fast + 1);
}

TEST_F(OnAGpu, AFallbackIsNamedOnce) {
  Draw draw(fresh_seed());
  const Device device{DeviceType::cuda, 0};
  const PrecisionScope precision(Precision::bf16);
  // The imitation has no engine for bf16 gradients of 12 channels.
  const Tensor x = draw.normal({2, 5, 6, 12}).to(device),
               w = draw.normal({16, 3, 3, 12}).to(device);
  const Tensor y = ops::conv2d(x, w, {}, {3, 1, 1});
  for (int i = 0; i < 3; ++i) {
    Tensor dw = Tensor::empty(w.shape(), Dtype::f32, device);
    ops::conv2d_backward(x, w, y, {3, 1, 1}, false, {dw}, {});
  }
  int named = 0;
  for (const gpu::Fallback& one : gpu::fallbacks())
    if (one.what.starts_with("backward_filter of a convolution in bf16, [2,5,6,12] to 16")) {
      ++named;
      EXPECT_EQ(one.why, "no engine");
    }
  EXPECT_EQ(named, 1);
}

TEST_F(OnAGpu, AtMostOneEngineIsCompiled) {
  Draw draw(fresh_seed());
  const Device device{DeviceType::cuda, 0};
  const PrecisionScope precision(Precision::bf16);
  const int before = runs(Engine::compiled);
  ops::conv2d(draw.normal({2, 5, 5, 8}).to(device), draw.normal({8, 3, 3, 8}).to(device), {},
              {3, 1, 1});
  EXPECT_GT(runs(Engine::compiled), before);
  EXPECT_EQ(runs(Engine::compiled_too), 0);
}

TEST_F(OnAGpu, AttentionUsesCudnnInBf16Only) {
  Draw draw(fresh_seed());
  const Tensor qkv = draw.normal({2, 5, 48}).to(Device{DeviceType::cuda, 0});
  const int before = all();
  ops::attention(qkv, {2, true});
  EXPECT_EQ(all(), before);
  const PrecisionScope precision(Precision::bf16);
  const ops::Attended out = ops::attention(qkv, {2, true});
  const int forward = all();
  EXPECT_GT(forward, before);
  ops::attention_backward(qkv, out, out.y, {2, true});
  EXPECT_GT(all(), forward);
}

TEST(Attention, DividesTheSamplesByTheirScores) {
  EXPECT_EQ(samples_at_once({8, 1024, 16, 64, true}), 8);  // 32 MiB each
  EXPECT_EQ(samples_at_once({32, 1024, 16, 64, true}), 16);
  EXPECT_EQ(samples_at_once({33, 1024, 16, 64, true}), 11);
  EXPECT_EQ(samples_at_once({3, 8192, 16, 64, true}), 1);
  EXPECT_EQ(samples_at_once({33, 1023, 25, 64, true}), 8);  // each part is aligned to 16 bytes
}

TEST_F(OnAGpu, AttentionBackwardRunsInParts) {
  Draw draw(fresh_seed());
  const PrecisionScope precision(Precision::bf16);
  const Device device{DeviceType::cuda, 0};
  const Tensor qkv = draw.normal({5, 6, 48}).to(device), dy = draw.normal({5, 6, 16}).to(device);
  const ops::Attended out = ops::attention(qkv, {2, true});
  const auto gradient = [&] { return ops::attention_backward(qkv, out, dy, {2, true}); };
  const Tensor whole = gradient();
  set_room_for_scores(2 * (2 * 2 * 64 * 128));
  const Tensor in_parts = gradient();
  const int before = all();
  EXPECT_TRUE(close(gradient(), in_parts, 0));
  set_room_for_scores(int64_t{512} << 20);
  EXPECT_EQ(all(), before + 3);
  EXPECT_TRUE(close(in_parts, whole, 0));
}

TEST_F(TheLibrary, HasEnginesForAttentionOnARealGpu) {
  if (gpu::count() == 0) GTEST_SKIP() << gpu::unavailable();
  if (fake_runs() != nullptr) GTEST_SKIP() << "imitated";
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  cudnnHandle_t handle = nullptr;
  ASSERT_EQ(library().cudnnCreate(&handle), CUDNN_STATUS_SUCCESS);
  for (const Attention& a : {Attention{8, 1024, 16, 64, true}, Attention{2, 33, 2, 8, false}}) {
    Graph forward = attention_graph(a), backward = attention_backward_graph(a);
    forward.finish(handle);
    backward.finish(handle);
    EXPECT_FALSE(engines_for(forward, true, 1).empty()) << a.times;
    EXPECT_FALSE(engines_for(backward, true, 1).empty()) << a.times;
  }
}

TEST_F(OnAGpu, ACaptureTriesNoEngines) {
  Draw draw(fresh_seed());
  const Device device{DeviceType::cuda, 0};
  const Window window{3, 1, 1};
  const Tensor x = draw.normal({1, 7, 6, 8}).to(device), w = draw.normal({4, 3, 3, 8}).to(device);
  Tensor y = ops::conv2d(x, w, {}, window);
  const Tensor want = y.clone();
  for (const int64_t images : {1, 2}) {
    Tensor doubled = Tensor::empty({images, 7, 6, 8}, Dtype::f32, device);
    for (int64_t i = 0; i < images; ++i) doubled.rows(i, i + 1).copy_from(x);
    Tensor out = Tensor::zeros({images, 7, 6, 4}, Dtype::f32, device);
    const int before = all();
    gpu::Graph graph(0, [&] { out.copy_from(ops::conv2d(doubled, w, {}, window)); });
    EXPECT_EQ(all(), images == 1 ? before + 1 : before);
    for (int launch = 0; launch < 2; ++launch) graph.launch();
    for (int64_t i = 0; i < images; ++i) EXPECT_TRUE(close(out.rows(i, i + 1), want, 2e-5)) << i;
  }
}

// As if ranks share a GPU: one waits for work that another has yet to enqueue.
TEST_F(OnAGpu, TryingEnginesDoesNotBlockOtherThreads) {
  static std::atomic<bool> go = false;
  Draw draw(fresh_seed());
  const Device device{DeviceType::cuda, 0};
  const Tensor w = draw.normal({4, 3, 3, 8}).to(device),
               known = draw.normal({3, 4, 5, 8}).to(device);
  const Tensor fresh = draw.normal({3, 5, 4, 8}).to(device);
  const auto convolve = [&](const Tensor& x) { ops::conv2d(x, w, {}, {3, 1, 1}); };
  convolve(known);
  hm_fake_gpu_queue(
      stream_of(0), [](void*) { return go.load(); }, nullptr);
  const int before = hm_fake_gpu_waits();
  std::thread tries(convolve, fresh);
  while (hm_fake_gpu_waits() == before) std::this_thread::yield();
  convolve(known);
  go = true;
  tries.join();
}

}  // namespace
}  // namespace howmany::cuda::dnn
