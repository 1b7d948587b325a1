// SPDX-License-Identifier: Apache-2.0
// Activations and their gradients in bf16: which tensors are stored so, the bytes that a step
// keeps, and that a model trains as in f32. Uses fake GPUs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/gpu/gpu.h"
#include "core/nn/layers.h"
#include "core/nn/model.h"
#include "core/nn/optim.h"
#include "core/nn/units.h"
#include "core/ops/ops.h"
#include "core/tensor/precision.h"
#include "tests/support/tensors.h"

namespace howmany {
namespace {

using testing_support::doubles;
using testing_support::Draw;
using testing_support::fresh_seed;

const Device kFirstGpu{DeviceType::cuda, 0};

class Stored : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu::count() == 0) GTEST_SKIP() << gpu::unavailable();
  }
  const uint64_t seed = fresh_seed();
  Draw draw{seed};
};

ModelSpec images() {
  return {.name = "images",
          .layer = layers::sequential(
              layers::conv2d(3, 8, {3, 1, 1}), layers::relu(),
              layers::residual(
                  layers::sequential(layers::conv2d(8, 8, {3, 1, 1}, false),
                                     layers::batchnorm(8, Activation::relu),
                                     layers::conv2d(8, 8, {3, 1, 1}, false), layers::batchnorm(8)),
                  nullptr, Activation::relu),
              layers::max_pool({2, 2, 0}), layers::avg_pool({2, 1, 1}), layers::dropout(0.1),
              layers::global_avg_pool(), layers::linear(8, 5)),
          .sample = {8, 8, 3},
          .classes = 5};
}

const std::string kGpt2 = "gpt2:width=16,layers=2,heads=2,length=8,vocabulary=24";
const std::string kLlama =
    "llama:width=16,layers=2,heads=4,kv_heads=2,hidden=32,length=8,vocabulary=24";
const std::string kRnn = "embedding_rnn:vocabulary=11,length=5,width=3,hidden=7,classes=4";
const std::string kMlp = "mlp:sizes=16-32-24-8";

ModelSpec model_named(const std::string& name) {
  return name == "images" ? images() : make_model(name);
}

struct Pass {
  Tensor y, dx;
  LossResult loss;
  int64_t kept = 0;  // bytes, from forward to backward
};

// Trains on one batch repeatedly.
struct StoredTraining {
  StoredTraining(const std::string& name, Draw& draw, int64_t rows) : model(model_named(name)) {
    const Shape shape = with_rows_in_front(rows, model.sample);
    x = (model.input == Dtype::i64 ? draw.ids(shape, model.vocabulary) : draw.normal(shape))
            .to(kFirstGpu);
    labels = draw.ids(with_rows_in_front(rows, model.labels), model.classes).to(kFirstGpu);
    materialize(*model.layer, {.device = kFirstGpu});
  }

  Pass pass() {
    const Tensor in = ops::stored(x);
    Tape tape({.seed = 1});
    const int64_t before = gpu::memory_use(0).in_use;
    Pass now;
    now.y = model.layer->forward(in, tape);
    now.kept = gpu::memory_use(0).in_use - before;
    now.loss = compute_loss(model.loss, now.y, labels, x.shape()[0]);
    now.dx = model.layer->backward(now.loss.dy, tape);
    return now;
  }
  std::vector<double> losses(int steps) {
    const std::vector<Param*> params = trainable_params(*model.layer);
    std::vector<double> all;
    for (int step = 0; step < steps; ++step) {
      zero_grads(params);
      all.push_back(pass().loss.value());
      optimizer->step(params);
    }
    return all;
  }

  ModelSpec model;
  Tensor x, labels;
  std::unique_ptr<Optimizer> optimizer = make_optimizer("sgd", {.lr = 0.05, .momentum = 0.5});
};

TEST_F(Stored, InBf16AreActivationsAndTheirGradients) {
  for (const std::string& name : {kMlp, std::string("images"), kGpt2, kLlama, kRnn}) {
    SCOPED_TRACE(name);
    const PrecisionScope precision(Precision::bf16);
    StoredTraining training(name, draw, 3);
    const Pass pass = training.pass();
    EXPECT_EQ(pass.y.dtype(), Dtype::bf16);
    EXPECT_EQ(pass.loss.dy.dtype(), Dtype::bf16);
    EXPECT_EQ(pass.loss.total.dtype(), Dtype::f64);
    EXPECT_TRUE(!pass.dx || pass.dx.dtype() == Dtype::bf16);
    for (const Param* p : all_params(*training.model.layer)) {
      EXPECT_EQ(p->value.dtype(), Dtype::f32) << p->name;
      EXPECT_TRUE(!p->trainable || p->grad.dtype() == Dtype::f32) << p->name;
    }
  }
}

TEST_F(Stored, TakeHalfTheMemory) {
  for (const std::string& name :
       {std::string("mlp:sizes=256-512-256-64"), std::string("images"),
        std::string("gpt2:width=64,layers=1,heads=2,length=16,vocabulary=64")}) {
    SCOPED_TRACE(name);
    StoredTraining training(name, draw, 8);
    const auto kept = [&](Precision of) {
      const PrecisionScope precision(of);
      training.pass();  // makes the cached copies of weights
      return static_cast<double>(training.pass().kept);
    };
    // Not in bf16: statistics of rows and channels, and the indices of max_pool.
    EXPECT_NEAR(kept(Precision::bf16) / kept(Precision::f32), 0.5, 0.1);
  }
}

// Error bound. Each of `depth` activations before the logits has a relative error of at most 2^-8,
// with random sign. So logits have about sqrt(depth) times that. A loss has less, as a mean over
// rows with independent rounding. Gradients have similar errors, and a step applies a part of them.
TEST_F(Stored, TrainAsF32Does) {
  SCOPED_TRACE(seed);
  const std::pair<std::string, int> models[] = {
      {kMlp, 3}, {"images", 10}, {kGpt2, 12}, {kLlama, 16}, {kRnn, 7}};
  for (const auto& [name, depth] : models) {
    SCOPED_TRACE(name);
    constexpr int kSteps = 10;
    const uint64_t same = seed + 1;
    const auto train = [&](Precision of) {
      const PrecisionScope precision(of);
      Draw batch(same);
      return StoredTraining(name, batch, 8).losses(kSteps);
    };
    const std::vector<double> want = train(Precision::f32), got = train(Precision::bf16);
    const double bound = std::sqrt(depth) * 0x1p-8 * std::max(1.0, want[0]);
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], bound) << i;
    EXPECT_LT(got.back(), got.front());
    EXPECT_NE(got, want);
  }
}

TEST_F(Stored, FollowsThePrecisionOnGpusOnly) {
  const Tensor here = draw.normal({3}), there = here.to(kFirstGpu),
               ids = draw.ids({3}, 5).to(kFirstGpu);
  EXPECT_EQ(ops::stored(there).dtype(), Dtype::f32);
  const PrecisionScope precision(Precision::bf16);
  EXPECT_EQ(ops::stored(here).dtype(), Dtype::f32);
  EXPECT_EQ(ops::stored(ids).dtype(), Dtype::i64);
  const Tensor half = ops::stored(there);
  EXPECT_EQ(half.dtype(), Dtype::bf16);
  EXPECT_EQ(doubles(half), doubles(here.to(Dtype::bf16)));
  EXPECT_TRUE(ops::stored(half).shares_storage_with(half));
}

}  // namespace
}  // namespace howmany
