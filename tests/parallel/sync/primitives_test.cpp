// SPDX-License-Identifier: Apache-2.0
#include "parallel/sync/primitives.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <set>
#include <thread>

#include "core/backends/backend.h"
#include "core/backends/selection.h"
#include "core/base/error.h"
#include "core/nn/layers.h"
#include "tests/support/tensors.h"

namespace howmany {
namespace {

using testing_support::close;
using testing_support::Draw;

const std::vector<Device> kThree = {
    {DeviceType::cpu, 0}, {DeviceType::cpu, 1}, {DeviceType::cpu, 2}};

std::vector<int64_t> row_counts(const std::vector<Tensor>& parts) {
  std::vector<int64_t> rows;
  for (const Tensor& part : parts) rows.push_back(part.shape()[0]);
  return rows;
}

TEST(Scatter, DividesRowsTheFirstPartsLarger) {
  const Tensor x = Draw(1).normal({10, 2});
  const auto parts = scatter(x, kThree);
  EXPECT_EQ(row_counts(parts), (std::vector<int64_t>{4, 3, 3}));
  for (size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(parts[i].device(), kThree[i]);
  EXPECT_TRUE(close(parts[1], x.rows(4, 7), 0));
}

TEST(Scatter, FewerRowsYieldFewerParts) {
  EXPECT_EQ(row_counts(scatter(Draw(1).normal({2, 2}), kThree)), (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(row_counts(scatter(Tensor::zeros({0, 2}), kThree)), (std::vector<int64_t>{0}));
}

TEST(Scatter, GivesViewsOfWhatIsInPlace) {
  const Tensor x = Draw(1).normal({6, 2});
  const auto parts = scatter(x, kThree);
  EXPECT_TRUE(parts[0].shares_storage_with(x));
  EXPECT_FALSE(parts[1].shares_storage_with(x));
}

TEST(Scatter, RefusesWhatHasNoRows) {
  EXPECT_THROW(scatter(Tensor::zeros({}), kThree), std::invalid_argument);
  EXPECT_THROW(scatter(Tensor::zeros({2}), {}), std::invalid_argument);
}

TEST(Gather, UndoesScatter) {
  const Tensor x = Draw(2).normal({7, 3, 2});
  const Tensor whole = gather(scatter(x, kThree), kThree[1]);
  EXPECT_TRUE(close(whole, x, 0));
  EXPECT_EQ(whole.device(), kThree[1]);
}

TEST(Gather, RefusesRowsOfDifferentShapes) {
  const std::vector<Tensor> parts = {Tensor::zeros({1, 2}), Tensor::zeros({1, 3})};
  EXPECT_THROW(gather(parts, {}), std::invalid_argument);
  EXPECT_THROW(gather({}, {}), std::invalid_argument);
}

LayerPtr small_net() {
  return layers::sequential(layers::linear(4, 6), layers::batchnorm(6), layers::linear(6, 3));
}

TEST(Replicate, CopiesValuesAndBuffersToEachDevice) {
  const LayerPtr module = small_net();
  materialize(*module, {.device = kThree[0], .seed = 3});
  const auto replicas = replicate(*module, kThree);
  ASSERT_EQ(replicas.size(), 3u);
  EXPECT_EQ(replicas[0], nullptr);
  const auto want = all_params(*module);
  for (size_t r : {1, 2}) {
    const auto got = all_params(*replicas[r]);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(got[i]->value.device(), kThree[r]);
      EXPECT_TRUE(close(got[i]->value, want[i]->value, 0)) << want[i]->name;
      EXPECT_FALSE(got[i]->value.shares_storage_with(want[i]->value));
    }
  }
}

TEST(Replicate, RefusesAModuleWithoutValuesOrElsewhere) {
  const LayerPtr module = small_net();
  EXPECT_THROW(replicate(*module, kThree), std::invalid_argument);
  materialize(*module, {.device = kThree[1]});
  EXPECT_THROW(replicate(*module, kThree), std::invalid_argument);
}

TEST(Refresh, BringsReplicasUpToDate) {
  const LayerPtr module = small_net();
  materialize(*module, {.device = kThree[0], .seed = 3});
  const auto replicas = replicate(*module, kThree);
  for (Param* p : all_params(*module))
    p->value.copy_from(Tensor::full(p->shape, 7, p->value.dtype()));
  refresh(*module, replicas);
  for (const Param* p : all_params(*replicas[2]))
    EXPECT_TRUE(close(p->value, Tensor::full(p->shape, 7), 0)) << p->name;
}

TEST(ParallelApply, RunsAllAtOnceOnThreadsOfTheirOwn) {
  ParallelApply apply(kThree);
  for (int round = 0; round < 50; ++round) {
    std::latch met(3);  // would block if the bodies ran sequentially
    std::array<std::thread::id, 3> ids;
    apply(3, [&](int i) {
      met.arrive_and_wait();
      ids[static_cast<size_t>(i)] = std::this_thread::get_id();
    });
    EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), 3u);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), std::this_thread::get_id()), 0);
  }
}

TEST(ParallelApply, RunsOnlyAsManyAsAsked) {
  ParallelApply apply(kThree);
  std::atomic<int> sum = 0;
  apply(2, [&](int i) { sum += i + 1; });
  EXPECT_EQ(sum, 3);
  apply(0, [&](int) { sum = 100; });
  EXPECT_EQ(sum, 3);
  EXPECT_THROW(apply(4, [](int) {}), std::invalid_argument);
}

TEST(ParallelApply, RethrowsWhenAllEndedAndGoesOn) {
  ParallelApply apply(kThree);
  std::atomic<int> ended = 0;
  const auto body = [&](int i) {
    if (i == 1) throw Error("one failed");
    ++ended;
  };
  EXPECT_THROW(apply(3, body), Error);
  EXPECT_EQ(ended, 2);
  apply(3, [&](int) { ++ended; });
  EXPECT_EQ(ended, 5);
}

TEST(ParallelApply, ComputesWithTheKernelsOfTheCaller) {
  ParallelApply apply(kThree);
  const Tensor t = Tensor::zeros({1});
  for (const std::string_view name : backend_names()) {
    const BackendScope kernels(backend_named(name));
    if (backend_named(name).device_type() != t.device().type) continue;
    apply(3, [&](int) { EXPECT_EQ(backend_for(t).name(), name); });
  }
}

TEST(ParallelApply, BindsEachThreadToItsDevice) {
  ParallelApply apply(kThree);
  apply(3, [&](int i) {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
    const std::vector<int> cores = cpu_slice(i);
    EXPECT_EQ(CPU_COUNT(&mask), static_cast<int>(cores.size()));
    for (const int core : cores) EXPECT_TRUE(CPU_ISSET(core, &mask)) << i;
  });
}

Tensor infer(Layer& module, const Tensor& x) {
  Tape tape({.training = false});
  return module.forward(x, tape);
}

TEST(ParallelApply, RunsEachReplicaOnItsInput) {
  const LayerPtr module = small_net();
  materialize(*module, {.device = kThree[0], .seed = 3});
  const Tensor x = Draw(1).normal({5, 4});
  const auto replicas = replicate(*module, kThree);
  const auto inputs = scatter(x, kThree);
  const auto outputs = parallel_apply(*module, replicas, inputs);
  ASSERT_EQ(outputs.size(), 3u);
  for (size_t i = 0; i < outputs.size(); ++i) EXPECT_EQ(outputs[i].device(), kThree[i]);
  EXPECT_TRUE(close(gather(outputs, {}), infer(*module, x), 1e-6));
  EXPECT_THROW(parallel_apply(*module, {}, inputs), std::invalid_argument);
}

TEST(DataParallelFunction, IsThePlainModuleOnAnyDevices) {
  const LayerPtr module = small_net();
  materialize(*module, {.device = kThree[0], .seed = 3});
  for (const int64_t rows : {1, 2, 7}) {
    const Tensor x = Draw(1).normal({rows, 4});
    const Tensor plain = infer(*module, x);
    for (size_t count = 0; count <= kThree.size(); ++count) {
      const auto devices = std::span(kThree).first(count);
      EXPECT_TRUE(close(data_parallel(*module, x, devices), plain, 1e-6)) << count;
      EXPECT_EQ(data_parallel(*module, x, devices, kThree[2]).device(), kThree[2]) << count;
    }
  }
}

struct Trained {
  Tensor y, dx;
  std::vector<Tensor> grads;
};

Trained forward_and_backward(Layer& model, const Tensor& x) {
  Tape tape;
  Trained trained;
  trained.y = model.forward(x, tape);
  trained.dx =
      model.backward(Tensor::full(trained.y.shape(), 1, Dtype::f32, trained.y.device()), tape);
  EXPECT_TRUE(tape.empty());
  for (const Param* p : trainable_params(model)) trained.grads.push_back(p->grad);
  return trained;
}

TEST(OnDevice, ComputesWhatThePlainModelDoes) {
  const LayerPtr plain = layers::sequential(layers::linear(4, 6), layers::linear(6, 3));
  const LayerPtr placed =
      layers::sequential(layers::linear(4, 6), on_device(layers::linear(6, 3), kThree[1]));
  materialize(*plain, {.seed = 3});
  materialize(*placed, {.seed = 3});
  const Tensor x = Draw(1).normal({5, 4});
  const Trained want = forward_and_backward(*plain, x), got = forward_and_backward(*placed, x);
  EXPECT_EQ(got.y.device(), kThree[1]);
  EXPECT_EQ(got.dx.device(), x.device());
  EXPECT_TRUE(close(got.y, want.y, 1e-6));
  EXPECT_TRUE(close(got.dx, want.dx, 1e-6));
  ASSERT_EQ(got.grads.size(), want.grads.size());
  for (size_t i = 0; i < want.grads.size(); ++i)
    EXPECT_TRUE(close(got.grads[i], want.grads[i], 1e-6)) << i;
}

TEST(OnDevice, PlacesParametersUnderTheSamePaths) {
  const LayerPtr model =
      layers::sequential(layers::linear(4, 6), on_device(layers::linear(6, 3), kThree[1]));
  materialize(*model->clone(), {});
  materialize(*model, {.device = kThree[2]});
  const auto params = all_params(*model);
  ASSERT_EQ(params.size(), 4u);
  EXPECT_EQ(params[2]->name, "1.weight");
  EXPECT_EQ(params[0]->value.device(), kThree[2]);
  EXPECT_EQ(params[2]->value.device(), kThree[1]);
  EXPECT_EQ(params[2]->grad.device(), kThree[1]);
}

TEST(OnDevice, NeedsNoGradientOfIds) {
  const LayerPtr model =
      on_device(layers::sequential(layers::embedding(7, 4), layers::linear(4, 2)), kThree[1]);
  materialize(*model, {});
  const Tensor ids = Tensor::from<int64_t>({1, 6, 3}, {3});
  EXPECT_FALSE(forward_and_backward(*model, ids).dx);
}

TEST(DataParallelLayer, IsThePlainModuleWithoutDevices) {
  for (const auto& devices : {std::vector<Device>{}, std::vector<Device>{{DeviceType::cpu, 0}}}) {
    LayerPtr module = layers::linear(3, 2);
    const Layer* plain = module.get();
    EXPECT_EQ(data_parallel(std::move(module), devices).get(), plain);
  }
}

TEST(DataParallelLayer, RefusesADeviceTwice) {
  EXPECT_THROW(data_parallel(layers::linear(3, 2), {Device{}, Device{}}), std::invalid_argument);
}

// linear -> [linear gelu dropout linear] -> linear, the middle wrapped or not
LayerPtr model_with_middle(const std::vector<Device>& devices) {
  return layers::sequential(
      layers::linear(3, 5),
      data_parallel(layers::sequential(layers::linear(5, 8, Activation::gelu), layers::dropout(0.4),
                                       layers::linear(8, 4)),
                    devices),
      layers::linear(4, 2));
}

struct Pass {
  Tensor y, dx;
  std::vector<std::string> final_order;
};

Pass run(Layer& model, const Tensor& x, const Tensor& dy) {
  Tape tape({.training = true, .seed = 9, .step = 2, .first_row = 3});
  Pass pass;
  pass.y = model.forward(x, tape);
  tape.on_final([&](Param& p) { pass.final_order.push_back(p.name); });
  pass.dx = model.backward(dy, tape);
  EXPECT_TRUE(tape.empty());
  return pass;
}

void expect_same_grads(Layer& got, Layer& want) {
  const auto g = trainable_params(got), w = trainable_params(want);
  ASSERT_EQ(g.size(), w.size());
  for (size_t i = 0; i < w.size(); ++i) {
    EXPECT_EQ(g[i]->name, w[i]->name);
    EXPECT_TRUE(close(g[i]->grad, w[i]->grad, 1e-12)) << w[i]->name;
  }
}

TEST(DataParallelLayer, LeavesTheRestOfAModelUntouched) {
  const LayerPtr plain = model_with_middle({}), wrapped = model_with_middle(kThree);
  for (Layer* model : {plain.get(), wrapped.get()})
    materialize(*model, {.device = kThree[0], .dtype = Dtype::f64, .seed = 4});
  for (const int64_t rows : {7, 2, 9}) {
    Draw draw(static_cast<uint64_t>(rows), Dtype::f64);
    const Tensor x = draw.normal({rows, 3}), dy = draw.normal({rows, 2});
    for (Layer* model : {plain.get(), wrapped.get()}) zero_grads(trainable_params(*model));
    const Pass want = run(*plain, x, dy), got = run(*wrapped, x, dy);
    EXPECT_TRUE(close(got.y, want.y, 1e-12));
    EXPECT_TRUE(close(got.dx, want.dx, 1e-12));
    EXPECT_EQ(got.final_order.size(), want.final_order.size());
    EXPECT_EQ(std::set(got.final_order.begin(), got.final_order.end()),
              std::set(want.final_order.begin(), want.final_order.end()));
    expect_same_grads(*wrapped, *plain);
  }
}

TEST(DataParallelLayer, AddsToGradientsThatAreThere) {
  const LayerPtr plain = model_with_middle({}), wrapped = model_with_middle(kThree);
  Draw draw(8, Dtype::f64);
  const Tensor x = draw.normal({7, 3}), dy = draw.normal({7, 2});
  for (Layer* model : {plain.get(), wrapped.get()}) {
    materialize(*model, {.device = kThree[0], .dtype = Dtype::f64, .seed = 4});
    run(*model, x, dy);
    run(*model, x, dy);
  }
  expect_same_grads(*wrapped, *plain);
}

TEST(DataParallelLayer, SeveralTapesMayBeInFlight) {
  const LayerPtr plain = model_with_middle({}), wrapped = model_with_middle(kThree);
  Draw draw(8, Dtype::f64);
  const Tensor x1 = draw.normal({7, 3}), x2 = draw.normal({2, 3});
  const Tensor dy1 = draw.normal({7, 2}), dy2 = draw.normal({2, 2});
  for (Layer* model : {plain.get(), wrapped.get()}) {
    materialize(*model, {.device = kThree[0], .dtype = Dtype::f64, .seed = 4});
    Tape first, second;
    model->forward(x1, first);
    model->forward(x2, second);
    model->backward(dy1, first);
    model->backward(dy2, second);
  }
  expect_same_grads(*wrapped, *plain);
}

TEST(DataParallelLayer, ComputesNoGradientOfTheModelsInput) {
  const LayerPtr model = data_parallel(layers::linear(3, 2), kThree);
  materialize(*model, {.device = kThree[0]});
  const Tensor x = Draw(1).normal({6, 3});
  Tape tape;
  tape.set_input(x);
  const Tensor y = model->forward(x, tape);
  EXPECT_FALSE(model->backward(y, tape));
}

TEST(DataParallelLayer, InfersWithoutKeepingAnything) {
  const LayerPtr plain = model_with_middle({}), wrapped = model_with_middle(kThree);
  const Tensor x = Draw(1, Dtype::f64).normal({6, 3});
  std::vector<Tensor> y;
  for (Layer* model : {plain.get(), wrapped.get()}) {
    materialize(*model, {.device = kThree[0], .dtype = Dtype::f64, .seed = 4});
    Tape tape({.training = false});
    y.push_back(model->forward(x, tape));
    EXPECT_TRUE(tape.empty());
  }
  EXPECT_TRUE(close(y[1], y[0], 1e-12));
}

TEST(DataParallelLayer, SeesChangedParameters) {
  const LayerPtr model = data_parallel(layers::linear(3, 1, Activation::none, false), kThree);
  materialize(*model, {.device = kThree[0]});
  Param& w = *trainable_params(*model)[0];
  for (const double value : {1.0, 2.0}) {
    w.value.copy_from(Tensor::full(w.shape, value));
    Tape tape({.training = false});
    const Tensor y = model->forward(Tensor::full({6, 3}, 1), tape);
    EXPECT_TRUE(close(y, Tensor::full({6, 1}, 3 * value), 1e-6));
  }
}

}  // namespace
}  // namespace howmany
