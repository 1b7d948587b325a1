// SPDX-License-Identifier: Apache-2.0
// Cached bf16 copies of tensors: their number per step, and that no stale copy is read. Uses fake
// GPUs, which count kernels. Products are not counted there.
#include "core/backends/cuda/blas/halves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "core/gpu/gpu.h"
#include "core/gpu/graph.h"
#include "core/nn/model.h"
#include "core/nn/optim.h"
#include "core/ops/ops.h"
#include "core/tensor/precision.h"
#include "tests/support/op_cases.h"
#include "tests/support/tensors.h"

extern "C" __attribute__((weak)) int hm_fake_gpu_kernels();  // tests/fakes/fake_cuda.cpp

namespace howmany {
namespace {

using testing_support::Case;
using testing_support::close;
using testing_support::doubles;
using testing_support::Draw;
using testing_support::fresh_seed;
using testing_support::Tensors;

const Device kGpu{DeviceType::cuda, 0};

class Halves : public testing::Test {
 protected:
  void SetUp() override {
    if (&hm_fake_gpu_kernels == nullptr) GTEST_SKIP() << "kernels are counted on imitated GPUs";
  }

  static int kernels(Precision precision, const std::function<void()>& body) {
    const PrecisionScope scope(precision);
    const int before = hm_fake_gpu_kernels();
    body();
    return hm_fake_gpu_kernels() - before;
  }
  Tensor on_gpu(const Shape& shape) { return draw.normal(shape).to(kGpu); }
  // Returns the product by new copies.
  static Tensor fresh_product(const Tensor& a, const Tensor& b) {
    return ops::matmul(a.clone(), b.clone());
  }

  const uint64_t seed = fresh_seed();
  Draw draw{seed};
};

// Trains a model on a GPU.
struct Training {
  Training(const std::string& name, const Tensor& x, const Tensor& labels, const char* rule = "sgd")
      : model(make_model(name)),
        input(x.to(kGpu)),
        target(labels.to(kGpu)),
        optimizer(make_optimizer(rule, {.lr = 0.1})) {
    materialize(*model.layer, {.device = kGpu});
  }
  void step() {
    const Tensor x = ops::stored(input);
    Tape tape;
    tape.set_input(x);
    const Tensor y = model.layer->forward(x, tape);
    const LossResult loss = compute_loss(model.loss, y, target, target.numel());
    model.layer->backward(loss.dy, tape);
    const std::vector<Param*> params = trainable_params(*model.layer);
    optimizer->step(params);
    for (Param* p : params) p->has_grad = false;
  }
  // Returns the number of casts in a bf16 step, after two others.
  int casts() {
    const int plain = count(Precision::f32);
    count(Precision::bf16);
    count(Precision::bf16);
    input.copy_from(input.clone());  // the next batch
    return count(Precision::bf16) - plain;
  }
  int count(Precision precision) {
    const PrecisionScope scope(precision);
    const int before = hm_fake_gpu_kernels();
    step();
    return hm_fake_gpu_kernels() - before;
  }

  ModelSpec model;
  Tensor input, target;
  std::unique_ptr<Optimizer> optimizer;
};

TEST_F(Halves, OfAnMlpAreMadeOfTheBatchOnly) {
  Training mlp("mlp:sizes=16-24-32-8", draw.normal({5, 16}), draw.ids({5}, 8), "adamw");
  EXPECT_EQ(mlp.casts(), 1);
}

// Expected casts. Forward: the probabilities per sample. Backward: three per sample, and the summed
// gradients of the blocks.
TEST_F(Halves, OfATransformerAreMadeOfScoresOnly) {
  const int samples = 3;
  const Tensor words = draw.ids({samples, 8}, 24);
  // Heads of size 12, which cuDNN does not support.
  Training gpt2("gpt2:width=24,layers=1,heads=2,length=8,vocabulary=24", words, words, "adam");
  EXPECT_EQ(gpt2.casts(), samples + 3 * samples + 1);
}

TEST_F(Halves, AreTheTensorsThemselvesIfTheseAreBf16) {
  SCOPED_TRACE(seed);
  const Tensor a = draw.normal({5, 16}), b = draw.normal({16, 24});
  const Tensor left = a.to(Dtype::bf16).to(kGpu), right = b.to(Dtype::bf16).to(kGpu);
  Tensor y;
  EXPECT_EQ(kernels(Precision::f32, [&] { y = ops::matmul(left, right); }), 0);
  EXPECT_EQ(y.dtype(), Dtype::bf16);
  const Tensor want =
      ops::matmul(left.to(Device{}).to(Dtype::f64), right.to(Device{}).to(Dtype::f64));
  EXPECT_TRUE(close(y, want, 0x1p-8));
}

TEST_F(Halves, EqualFreshCopies) {
  SCOPED_TRACE(seed);
  const PrecisionScope scope(Precision::bf16);
  for (const char* name : {"linear", "linear_backward", "conv2d", "conv2d_backward", "attention"})
    for (const Case& c : std::ranges::find(testing_support::kFamilies, std::string_view(name),
                                           &testing_support::Family::name)
                             ->cases(draw)) {
      SCOPED_TRACE(c.name);
      Tensors in, again;
      for (const Tensor& t : c.inputs) in.push_back(t.to(kGpu));
      for (const Tensor& t : c.inputs) again.push_back(t.to(kGpu));
      const Tensors want = c.run(in);
      c.run(again);
      for (size_t i = 0; i < again.size(); ++i)  // restores only the tensors that were written
        if (doubles(again[i]) != doubles(c.inputs[i])) again[i].copy_from(c.inputs[i]);
      const Tensors got = c.run(again);
      for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(close(got[i], want[i], 0)) << i;
    }
}

TEST_F(Halves, OfViewsAreNotMixedUp) {
  SCOPED_TRACE(seed);
  const PrecisionScope scope(Precision::bf16);
  Tensor all = on_gpu({16, 24});
  const Tensor b24 = on_gpu({24, 9}), b12 = on_gpu({12, 9}), b48 = on_gpu({48, 9});
  const Tensor b16 = on_gpu({16, 9}), b3 = on_gpu({3, 9});
  const std::vector<std::function<std::pair<Tensor, Tensor>()>> views{
      [&] { return std::pair(all, b24); },
      [&] { return std::pair(all.rows(0, 5), b24); },
      [&] { return std::pair(all.rows(5, 16), b24); },
      [&] {
        return std::pair(all.view({32, 12}), b12);
      },
      [&] {
        return std::pair(all.view({8, 48}), b48);
      },
      [&] {
        return std::pair(all.flat(1, 33).view({2, 16}), b16);
      },
      [&] {
        return std::pair(all.flat(0, 33).view({11, 3}), b3);
      },
      [&] {
        return std::pair(all.view({128, 3}), b3);
      }};
  const Tensor which = draw.ids({100}, static_cast<int64_t>(views.size()));
  for (const int64_t i : which.values<int64_t>()) {
    const auto [a, b] = views[static_cast<size_t>(i)]();
    EXPECT_TRUE(close(ops::matmul(a, b), fresh_product(a, b), 0)) << i;
    if (i == 0) ops::axpy(0.5, on_gpu(a.shape()), all);
  }
}

TEST_F(Halves, AreNotReadAfterAChange) {
  SCOPED_TRACE(seed);
  const PrecisionScope scope(Precision::bf16);
  const Tensor x = on_gpu({5, 16});
  Tensor w = on_gpu({16, 24}), other = w.rows(0, 16).view({384});
  Param param{
      .name = "w", .shape = w.shape(), .value = w, .grad = on_gpu(w.shape()), .has_grad = true};
  Param* const params[] = {&param};
  const auto sgd = make_optimizer("sgd", {.lr = 0.5, .momentum = 0.9});
  const auto adamw = make_optimizer("adamw", {.lr = 0.5});
  const std::vector<std::function<void()>> changes{
      [&] { w.copy_from(draw.normal(w.shape())); },
      [&] { w.copy_from(on_gpu(w.shape())); },
      [&] { other.flat(100, 150).copy_from(draw.normal({50})); },
      [&] { ops::axpy(-0.3, on_gpu({384}), other); },
      [&] { sgd->step(params); },
      [&] { adamw->step(params); },
      [&] {
        w.rows(3, 4).copy_from(draw.normal({1, 24}));
      }};
  const Tensor which = draw.ids({60}, static_cast<int64_t>(changes.size()));
  for (const int64_t i : which.values<int64_t>()) {
    const Tensor before = ops::matmul(x, w);
    changes[static_cast<size_t>(i)]();
    EXPECT_TRUE(close(ops::matmul(x, w), fresh_product(x, w), 0)) << i;
    EXPECT_FALSE(close(ops::matmul(x, w), before, 0)) << i << " changed nothing";
    param.grad.copy_from(draw.normal(w.shape()));
  }
}

TEST_F(Halves, OfACaptureAreItsOwn) {
  const Tensor a = on_gpu({5, 16}), b = on_gpu({16, 24});
  const auto multiply = [&] { return kernels(Precision::bf16, [&] { ops::matmul(a, b); }); };
  EXPECT_EQ(multiply(), 2);
  EXPECT_EQ(multiply(), 0);
  for (int i = 0; i < 2; ++i) {
    const gpu::Graph graph(0, [&] {
      EXPECT_EQ(multiply(), 2);
      EXPECT_EQ(multiply(), 0);
    });
  }
  EXPECT_EQ(multiply(), 2);
}

TEST_F(Halves, OfTheOptimizerServeAGraph) {
  const PrecisionScope scope(Precision::bf16);
  Tensor w = on_gpu({16, 24}), x = on_gpu({5, 16}), y = ops::matmul(x, w);
  Param param{
      .name = "w", .shape = w.shape(), .value = w, .grad = on_gpu(w.shape()), .has_grad = true};
  Param* const params[] = {&param};
  const auto optimizer = make_optimizer("adam", {.lr = 0.5});
  optimizer->step(params);
  gpu::Graph graph(0, [&] {
    EXPECT_EQ(kernels(Precision::bf16, [&] { y.copy_from(ops::matmul(x, w)); }), 1);  // of x
  });
  const auto launched = [&] {
    const int made = kernels(Precision::bf16, [&] { graph.launch(); });
    EXPECT_TRUE(close(y, fresh_product(x, w), 0)) << seed;
    return made;
  };
  const int least = launched();
  for (int step = 0; step < 3; ++step) {
    param.has_grad = true;
    optimizer->step(params);
    EXPECT_EQ(launched(), least);
  }
  ops::axpy(0.5, on_gpu({16, 24}), w);
  EXPECT_EQ(launched(), least + 1) << "changed by another";
  EXPECT_EQ(launched(), least + 1) << "no call reports that it was not";
  ops::matmul(x.rows(0, 3), w.flat(0, 16 * 12).view({16, 12}));  // rows that must be padded
  launched();
}

// Tensor versions do not change when a graph writes.
TEST_F(Halves, AreNotReadAfterALaunch) {
  const PrecisionScope scope(Precision::bf16);
  const Tensor x = on_gpu({5, 16}), change = on_gpu({16, 24});
  Tensor w = on_gpu({16, 24}), y = ops::matmul(x, w), in = x.clone();
  gpu::Graph graph(0, [&] {
    ops::axpy(0.5, change, w);
    y.copy_from(ops::matmul(in, w));
  });
  for (int step = 0; step < 3; ++step) {
    in.copy_from(draw.normal(in.shape()));
    graph.launch();
    EXPECT_TRUE(close(y, fresh_product(in, w), 0)) << step;
    for (int again = 0; again < 2; ++again)
      EXPECT_TRUE(close(ops::matmul(x, w), fresh_product(x, w), 0)) << step;
  }
}

TEST_F(Halves, LiveAsLongAsTheirTensors) {
  const PrecisionScope scope(Precision::bf16);
  Training mlp("mlp:sizes=64-128-64", draw.normal({33, 64}), draw.ids({33}, 64), "adamw");
  mlp.step();
  mlp.step();
  const int64_t used = gpu::memory_use(0).in_use;
  for (int i = 0; i < 20; ++i) mlp.step();
  EXPECT_EQ(gpu::memory_use(0).in_use, used);
  {
    const Tensor x = on_gpu({100, 64}), w = on_gpu({64, 64});
    const Tensor y = ops::matmul(x, w);
    EXPECT_GT(gpu::memory_use(0).in_use, used);
  }
  EXPECT_EQ(gpu::memory_use(0).in_use, used);
}

TEST_F(Halves, ServeSeveralThreads) {
  SCOPED_TRACE(seed);
  constexpr size_t kThreads = 4;
  Tensor w = on_gpu({16, 24});
  std::vector<Tensor> xs;
  for (size_t i = 0; i < kThreads; ++i) xs.push_back(on_gpu({5, 16}));
  for (int change = 0; change < 10; ++change) {
    std::vector<Tensor> ys(kThreads);
    {
      std::vector<std::jthread> threads;
      for (size_t i = 0; i < kThreads; ++i)
        threads.emplace_back([&, i] {
          const PrecisionScope scope(Precision::bf16);
          ys[i] = ops::matmul(xs[i], w);
        });
    }
    const PrecisionScope scope(Precision::bf16);
    for (size_t i = 0; i < kThreads; ++i)
      EXPECT_TRUE(close(ys[i], fresh_product(xs[i], w), 0)) << i;
    w.copy_from(draw.normal(w.shape()));
  }
}

}  // namespace
}  // namespace howmany
