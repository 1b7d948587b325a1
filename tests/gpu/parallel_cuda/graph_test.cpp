// SPDX-License-Identifier: Apache-2.0
// Compares graph=on with the same steps without a graph, on imitated GPUs.
// timeout: 300
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cctype>

#include "core/base/error.h"
#include "core/gpu/gpu.h"
#include "core/nn/layers.h"
#include "core/profile/recorder.h"
#include "core/tensor/precision.h"
#include "parallel/launch/launch.h"
#include "parallel/modes/step_graph.h"
#include "tests/fakes/fake_gpu.h"
#include "tests/support/message_of.h"
#include "tests/support/training.h"

namespace howmany {
namespace {

using namespace testing_support;
using testing::HasSubstr;

const Device kGpu{DeviceType::cuda, 0};
const std::string kMlp = "mlp:sizes=13-17-9-7-5";

std::unique_ptr<Mode> mode_of(const std::string& text, ModelSpec model) {
  return make_mode(text, {.model = std::move(model), .seed = 5, .devices = {kGpu}});
}

Batch sent(Batch batch) {
  batch.x = batch.x.to(kGpu);
  batch.y = batch.y.to(kGpu);
  return batch;
}

// Adam's parameters change with every step, so the test would detect a captured rule.
Curve trained(const std::string& text, const std::string& model, const std::vector<int64_t>& rows,
              bool from_gpu = false) {
  const auto mode = mode_of(text, model_named(model));
  const auto optimizer = make_optimizer("adamw", {.lr = 0.01});
  Curve curve;
  for (size_t step = 0; step < rows.size(); ++step) {
    const Batch batch = global_batch(model_named(model), rows[step], static_cast<int>(step));
    const StepLoss loss = mode->step(from_gpu ? sent(batch) : batch);
    optimizer->step(mode->params());
    curve.losses.push_back(loss.value());
  }
  curve.values = mode->gather();
  return curve;
}

void expect_same(const Curve& got, const Curve& want) {
  for (size_t step = 0; step < want.losses.size(); ++step)
    EXPECT_NEAR(got.losses[step], want.losses[step], 1e-6) << "step " << step;
  for (const auto& [name, value] : want.values)
    EXPECT_TRUE(close(got.values.at(name), value, 1e-6)) << name;
}

class AGraphOf : public testing::TestWithParam<std::string> {};

TEST_P(AGraphOf, EqualsAStepOfMicroBatches) {
  const std::vector<int64_t> rows(8, 6);
  expect_same(trained("single:graph=on,accumulate=2", GetParam(), rows),
              trained("single:accumulate=2", GetParam(), rows));
}

TEST_P(AGraphOf, EqualsStepsOfAllShapes) {
  const std::vector<int64_t> rows = {6, 6, 6, 4, 6, 7, 7, 7, 7, 6, 6, 6, 2, 6};
  expect_same(trained("single:graph=on", GetParam(), rows, true),
              trained("single", GetParam(), rows, true));
}

std::vector<std::string> models() {
  std::vector<std::string> all = kModels;
  all.push_back("batchnorm");
  all.push_back("vit_b_16:layers=1,width=8,heads=2,image=32,classes=5");
  all.push_back("bert_base:layers=1,width=8,heads=2,vocabulary=11,length=6");
  return all;
}
INSTANTIATE_TEST_SUITE_P(Models, AGraphOf, testing::ValuesIn(models()), [](const auto& model) {
  std::string name = model.param;
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

// Returns the curve of rank 0. Buckets are small, so that exchanges happen throughout backward.
Curve trained_over_ranks(const std::string& text, const std::string& model, std::string_view comm,
                         bool bucketed, const std::vector<int64_t>& rows,
                         bool sync_batchnorm = false) {
  Curve curve;
  launch_threads(
      2,
      [&](Comm& ranks) {
        const auto mode = make_mode(text, {.model = model_named(model),
                                           .seed = 5,
                                           .comm = &ranks,
                                           .devices = {{DeviceType::cuda, ranks.rank()}},
                                           .sync = {bucketed, 300, 300},
                                           .sync_batchnorm = sync_batchnorm});
        const auto optimizer = make_optimizer("adamw", {.lr = 0.01});
        Curve mine;
        for (size_t step = 0; step < rows.size(); ++step) {
          const Batch whole = global_batch(model_named(model), rows[step], static_cast<int>(step));
          const StepLoss loss = mode->step(rows_of(whole, mode->share()));
          optimizer->step(mode->params());
          mine.losses.push_back(loss.value());
        }
        mine.values = mode->gather();
        if (ranks.rank() == 0) curve = std::move(mine);
      },
      comm);
  return curve;
}

TEST_P(AGraphOf, EqualsAStepOverRanks) {
  const std::vector<int64_t> rows = {6, 6, 6, 6, 4, 6, 6};
  const Curve want = trained_over_ranks("ddp", GetParam(), "local", true, rows);
  for (const std::string_view comm : thread_comm_names(2)) {
    SCOPED_TRACE(comm);
    expect_same(trained_over_ranks("ddp:graph=on", GetParam(), comm, true, rows), want);
  }
  expect_same(trained_over_ranks("ddp:graph=on", GetParam(), "local", false, rows), want);
  const std::vector<int64_t> even(6, 8);
  expect_same(trained_over_ranks("ddp:graph=on,accumulate=2", GetParam(), "local", true, even),
              trained_over_ranks("ddp:accumulate=2", GetParam(), "local", true, even));
}

// Statistics of all rows are equal to those of one device with all rows.
TEST(AGraphOverRanks, SynchronizesBatchNorm) {
  const std::vector<int64_t> rows = {6, 6, 6, 6, 5, 6, 6};
  const Curve alone = trained("single", "batchnorm", rows),
              want = trained_over_ranks("ddp", "batchnorm", "local", true, rows, true);
  for (size_t step = 0; step < rows.size(); ++step)
    EXPECT_NEAR(want.losses[step], alone.losses[step], 1e-5) << "step " << step;
  for (const std::string_view comm : thread_comm_names(2)) {
    SCOPED_TRACE(comm);
    for (const bool bucketed : {true, false})
      expect_same(trained_over_ranks("ddp:graph=on", "batchnorm", comm, bucketed, rows, true),
                  want);
  }
}

// A model with its optimizer and one batch.
class Trained {
 public:
  explicit Trained(const std::string& text, const std::string& model = kMlp)
      : mode_(mode_of(text, model_named(model))),
        optimizer_(make_optimizer("sgd", {.lr = 0.01, .momentum = 0.9})),
        batch_(sent(global_batch(model_named(model), 6, 0))) {}
  StepLoss step() {
    StepLoss loss = mode_->step(batch_);
    optimizer_->step(mode_->params());
    return loss;
  }
  void warm_up() {
    for (int step = 0; step <= mode_->warm_ups(); ++step) this->step();
  }
  Mode& mode() { return *mode_; }

 private:
  std::unique_ptr<Mode> mode_;
  std::unique_ptr<Optimizer> optimizer_;
  Batch batch_;
};

TEST(StepGraph, DoesNotWaitForTheGpu) {
  Trained trained("single:graph=on", "dropout");
  trained.warm_up();
  const int before = hm_fake_gpu_waits();
  const StepLoss loss = trained.step();
  EXPECT_EQ(hm_fake_gpu_waits(), before);
  EXPECT_GT(loss.value(), 0);
}

TEST(StepGraph, IsOneRangeOfTheProfile) {
  Trained trained("single:graph=on");
  trained.warm_up();
  start_recording();
  trained.step();
  std::vector<std::string> names;
  for (const Span& span : stop_recording().spans) names.emplace_back(span.name);
  EXPECT_THAT(names, testing::ElementsAre("copy", "copy", "step", "graph", "sgd"));
}

TEST(StepGraph, KeepsItsMemoryConstant) {
  Trained trained("single:graph=on", "dropout");
  trained.warm_up();
  trained.step().value();
  const int64_t before = gpu::memory_use(0).in_use;
  for (int step = 0; step < 300; ++step) trained.step();
  gpu::synchronize(0);
  EXPECT_EQ(gpu::memory_use(0).in_use, before);
}

TEST(StepGraph, FreesItsMemory) {
  { Trained("single").step(); }  // warm-up: creates the state that persists
  gpu::synchronize(0);
  const int64_t before = gpu::memory_use(0).in_use;
  for (int i = 0; i < 3; ++i) Trained("single:graph=on").warm_up();
  gpu::synchronize(0);
  EXPECT_EQ(gpu::memory_use(0).in_use, before);
}

TEST(StepGraph, ChecksEveryBatch) {
  const ModelSpec model = model_named(kMlp);
  const auto mode = mode_of("single:graph=on", model_named(kMlp));
  Batch good = global_batch(model, 6, 0), bad = good;
  bad.y = good.y.clone();
  bad.y.mutable_values<int64_t>()[3] = model.classes;
  for (int step = 0; step < 4; ++step) mode->step(good);
  EXPECT_THAT(message_of<std::invalid_argument>([&] { mode->step(bad); }), HasSubstr("label 3"));
  EXPECT_THROW(mode->step(sent(bad)), std::invalid_argument);
  EXPECT_GT(mode->step(good).value(), 0);
}

TEST(StepGraph, IsCapturedAgainInAnotherPrecision) {
  const auto losses = [](const std::string& text) {
    const auto mode = mode_of(text, model_named(kMlp));
    std::vector<double> values;
    for (int step = 0; step < 8; ++step) {
      const PrecisionScope precision(step < 4 ? Precision::f32 : Precision::bf16);
      values.push_back(mode->step(global_batch(model_named(kMlp), 6, 0)).value());
    }
    return values;
  };
  const std::vector<double> got = losses("single:graph=on"), want = losses("single");
  EXPECT_EQ(got, want);
  EXPECT_NE(want[0], want[7]);
}

// A layer that reads its input on the host, which a captured step cannot do.
class Peeking : public Layer {
 public:
  Tensor forward(const Tensor& x, Tape&) override {
    return x.flat(0, 1).item() > 1e9 ? Tensor() : x;
  }
  Tensor backward(const Tensor& dy, Tape&) override { return dy; }
  Shape output_shape(const Shape& x) const override { return x; }
  std::string describe() const override { return "peeking"; }
  LayerPtr clone() const override { return std::make_unique<Peeking>(); }
};

ModelSpec peeking_model() {
  std::vector<LayerPtr> parts;
  parts.push_back(std::make_unique<Peeking>());
  parts.push_back(layers::linear(8, 4));
  return {.name = "peeking",
          .layer = layers::sequential(std::move(parts)),
          .sample = {8},
          .classes = 4};
}

TEST(StepGraph, ReportsWhyItCannotBeCaptured) {
  const auto mode = mode_of("single:graph=on", peeking_model());
  const Batch batch = global_batch(peeking_model(), 6, 0);
  for (int step = 0; step < mode->warm_ups(); ++step) mode->step(batch);
  const auto before = mode->gather();
  for (int again = 0; again < 2; ++again)
    EXPECT_THAT(message_of<Error>([&] { mode->step(batch); }),
                AllOf(HasSubstr("graph=on"), HasSubstr("a copy to the host")));
  for (const auto& [name, value] : mode->gather()) EXPECT_TRUE(close(value, before.at(name), 0));
  EXPECT_GT(mode->step(global_batch(peeking_model(), 5, 0)).value(), 0) << "not captured yet";
}

std::string layer_of(const Param& param) { return param.name.substr(0, param.name.rfind('.')); }

TEST(StepGraph, OverlapsExchangesWithBackward) {
  constexpr double kBefore = 123;
  Replica replica(model_named(kMlp), kGpu, Dtype::f32, 5);
  std::vector<const Param*> final;
  bool looks = false;
  const auto look = [&](const Param& latest) {
    EXPECT_TRUE(latest.has_grad);
    for (const Param* p : replica.params()) {
      const bool is_final = std::ranges::any_of(  // or another of its layer, which are together
          final, [&](const Param* done) { return layer_of(*done) == layer_of(*p); });
      const double first = p->grad.flat(0, 1).item();
      EXPECT_EQ(first != kBefore, is_final) << p->name << " when " << latest.name << " was";
    }
  };
  const auto ready = [&](Param& param) {
    final.push_back(&param);
    if (looks) look(param);
  };
  StepGraph graph(replica, {.ready = ready, .set_off = [](auto all) { return all.size(); }});
  const Batch batch = global_batch(model_named(kMlp), 6, 0);
  for (int step = 0; step <= StepGraph::kWarmUps; ++step) graph.step(batch);
  const auto count = static_cast<ptrdiff_t>(replica.params().size());
  const std::vector<const Param*> plain(final.begin(), final.begin() + count);
  for (Param* p : replica.params()) p->grad.copy_from(Tensor::full(p->shape, kBefore));
  final.clear();
  looks = true;
  graph.step(batch);
  EXPECT_EQ(final, plain) << "in the order of a step that is not captured";
}

TEST(StepGraph, FailsOnEachRankIfItCannotBeCaptured) {
  std::atomic<int> failed = 0;
  launch_threads(2, [&](Comm& comm) {
    const auto mode = make_mode(
        "ddp:graph=on",
        {.model = peeking_model(), .comm = &comm, .devices = {{DeviceType::cuda, comm.rank()}}});
    const Batch batch = rows_of(global_batch(peeking_model(), 6, 0), mode->share());
    for (int step = 0; step < mode->warm_ups(); ++step) mode->step(batch);
    EXPECT_THAT(message_of<Error>([&] { mode->step(batch); }), HasSubstr("graph=on"));
    ++failed;
    const Batch other = rows_of(global_batch(peeking_model(), 4, 0), mode->share());
    EXPECT_GT(mode->step(other).value(), 0) << "not captured yet";
  });
  EXPECT_EQ(failed, 2);
}

TEST(StepGraph, NeedsGpus) {
  EXPECT_THAT(message_of<std::invalid_argument>(
                  [] { make_mode("single:graph=on", {.model = model_named(kMlp)}); }),
              AllOf(HasSubstr("graph=on"), HasSubstr("cpu:0")));
  EXPECT_NO_THROW(make_mode("single:graph=off", {.model = model_named(kMlp)}));
  EXPECT_THROW(mode_traits("single:graph=perhaps"), std::invalid_argument);
  EXPECT_THROW(mode_traits("pipeline:graph=on"), std::invalid_argument);
}

}  // namespace
}  // namespace howmany
