// SPDX-License-Identifier: Apache-2.0
// The guarantees of Tape: parameters shared between uses, no gradient for the input, and dropout
// that does not depend on how a batch is divided.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "core/backends/selection.h"
#include "core/nn/layers.h"
#include "tests/support/tensors.h"

namespace howmany {
namespace {

using testing_support::close;
using testing_support::doubles;
using testing_support::Draw;

TEST(Tape, IsLastInFirstOutAndRefusesToPopNothing) {
  Tape tape;
  tape.push(Tensor::full({1}, 1));
  tape.push_shape({2, 3, 4});
  tape.push_shape({});
  EXPECT_EQ(tape.pop_shape(), Shape());
  EXPECT_EQ(tape.pop_shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(tape.pop().item(), 1);
  EXPECT_TRUE(tape.empty());
  EXPECT_THROW(tape.pop(), std::invalid_argument);
}

TEST(Tape, AnnouncesATiedWeightOnceAfterItsLastUse) {
  const LayerPtr tied = layers::linear(3, 3);
  materialize(*tied, {.dtype = Dtype::f64});
  const Tensor x = Draw(1, Dtype::f64).normal({4, 3}), dy = Draw(2, Dtype::f64).normal({4, 3});
  Tape tape;
  int announced = 0;
  tape.on_final([&](Param&) { ++announced; });
  tied->forward(tied->forward(x, tape), tape);
  const Tensor between = tied->backward(dy, tape);
  EXPECT_EQ(announced, 0);
  const Tensor second_use = tied->own_params()[0].grad.clone();
  tied->backward(between, tape);
  EXPECT_EQ(announced, 2);  // weight and bias

  // Untied layers have separate gradients; those of tied layers add up.
  const LayerPtr first = layers::linear(3, 3);
  materialize(*first, {.dtype = Dtype::f64});
  Tape apart;
  first->forward(x, apart);
  first->backward(between, apart);
  const auto sum = doubles(tied->own_params()[0].grad);
  const auto a = doubles(first->own_params()[0].grad), b = doubles(second_use);
  for (size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(sum[i], a[i] + b[i], 1e-12);
}

TEST(Tape, AnnouncesParametersFromTheBackOfTheModel) {
  std::vector<LayerPtr> parts;
  for (int i = 0; i < 3; ++i) parts.push_back(layers::linear(2, 2, Activation::none, false));
  const LayerPtr model = layers::sequential(std::move(parts));
  materialize(*model, {});
  Tape tape;
  std::vector<std::string> order;
  tape.on_final([&](Param& p) { order.push_back(p.name); });
  model->backward(model->forward(Tensor::zeros({1, 2}), tape), tape);
  EXPECT_THAT(order, testing::ElementsAre("2.weight", "1.weight", "0.weight"));
}

// Computes nothing. Records the calls that it receives.
class Listener final : public Backend {
 public:
  std::string_view name() const override { return "listener"; }
  DeviceType device_type() const override { return DeviceType::cpu; }
  bool supports(Dtype) const override { return true; }
  void linear(const Tensor&, const Tensor&, const Tensor&, Activation, Tensor&) const override {}
  void linear_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, Activation,
                       Tensor& dx, GradOut& dw, GradOut&) const override {
    if (dw.value) heard.emplace_back("dw");
    if (dx) heard.emplace_back("dx");
  }
  mutable std::vector<std::string> heard;
};

// So that the gradients can be communicated while the rest of backward runs.
TEST(Tape, GetsTheGradientsOfALinearLayerBeforeTheLayerBelowGetsItsOwn) {
  const LayerPtr layer = layers::linear(3, 3);
  materialize(*layer, {});
  const Listener listener;
  const BackendScope kernels(listener);
  const Tensor x = Tensor::zeros({4, 3});
  Tape awaited, alone;
  awaited.on_final([&](Param& p) { listener.heard.push_back(p.name); });
  layer->backward(layer->forward(x, awaited), awaited);
  EXPECT_THAT(listener.heard, testing::ElementsAre("dw", "weight", "bias", "dx"));
  listener.heard.clear();
  layer->backward(layer->forward(x, alone), alone);
  EXPECT_THAT(listener.heard, testing::ElementsAre("dw", "dx")) << "in one call";
}

TEST(Tape, ComputesNoGradientForTheInput) {
  std::vector<LayerPtr> models;
  models.push_back(layers::linear(12, 3));
  models.push_back(layers::conv2d(3, 2, {1, 1, 0}));
  models.push_back(
      layers::sequential(layers::dropout(0), layers::flatten(), layers::linear(12, 3)));
  models.push_back(layers::residual(layers::conv2d(3, 3, {1, 1, 0}), nullptr, Activation::relu));
  const Shape shapes[] = {{2, 12}, {2, 2, 2, 3}, {2, 2, 2, 3}, {2, 2, 2, 3}};
  for (size_t i = 0; i < models.size(); ++i) {
    materialize(*models[i], {});
    const Tensor x = Draw(1).normal(shapes[i]);
    for (bool is_input : {true, false}) {
      Tape tape;
      if (is_input) tape.set_input(x);
      const Tensor y = models[i]->forward(x, tape);
      const Tensor dx = models[i]->backward(y, tape);
      EXPECT_EQ(static_cast<bool>(dx), !is_input) << models[i]->describe();
      EXPECT_TRUE(!dx || dx.shape() == x.shape());
      EXPECT_TRUE(tape.empty());
    }
  }
}

LayerPtr two_dropouts() { return layers::sequential(layers::dropout(0.4), layers::dropout(0.4)); }

Tensor mask(Layer& layer, const TapeOptions& options, int64_t rows) {
  Tape tape(options);
  return layer.forward(Tensor::full({rows, 6}, 1), tape);
}

bool same(const Tensor& a, const Tensor& b) { return static_cast<bool>(close(a, b, 0)); }

TEST(Dropout, DrawsTheSameHoweverTheBatchIsDivided) {
  const LayerPtr layer = two_dropouts();
  materialize(*layer, {});
  const Tensor whole = mask(*layer, {.seed = 3, .step = 9}, 7);
  for (int64_t cut : {0, 1, 4, 7}) {
    const Tensor head = mask(*layer, {.seed = 3, .step = 9}, cut);
    const Tensor tail = mask(*layer, {.seed = 3, .step = 9, .first_row = cut}, 7 - cut);
    EXPECT_TRUE(same(head, whole.rows(0, cut)));
    EXPECT_TRUE(same(tail, whole.rows(cut, 7)));
  }
}

TEST(Dropout, DiffersBySeedStepAndPlace) {
  const LayerPtr layer = layers::dropout(0.4), both = two_dropouts();
  materialize(*layer, {});
  materialize(*both, {});
  const Tensor one = mask(*layer, {.seed = 3}, 50);
  EXPECT_FALSE(same(one, mask(*layer, {.seed = 4}, 50)));
  EXPECT_FALSE(same(one, mask(*layer, {.seed = 3, .step = 1}, 50)));
  Layer& first = *both->children()[0].layer;
  Layer& second = *both->children()[1].layer;
  EXPECT_FALSE(same(mask(first, {.seed = 3}, 50), mask(second, {.seed = 3}, 50)));
}

TEST(Dropout, AReplicaOfAPartDrawsAsTheOriginal) {
  const LayerPtr model = two_dropouts();
  materialize(*model, {});
  Layer& part = *model->children()[1].layer;
  const LayerPtr replica = part.clone();
  materialize(*replica, {.seed = 77});
  EXPECT_TRUE(same(mask(*replica, {.seed = 3}, 50), mask(part, {.seed = 3}, 50)));
}

TEST(Dropout, KeepsTheMeanAndLeavesInferenceAlone) {
  const LayerPtr layer = layers::dropout(0.4);
  materialize(*layer, {});
  double sum = 0;
  for (double v : doubles(mask(*layer, {.seed = 3}, 10'000))) {
    EXPECT_TRUE(v == 0 || std::abs(v - 1 / 0.6) < 1e-6);
    sum += v;
  }
  EXPECT_NEAR(sum / 60'000, 1, 0.02);  // 6 standard deviations
  EXPECT_TRUE(same(mask(*layer, {.training = false}, 50), Tensor::full({50, 6}, 1)));
}

}  // namespace
}  // namespace howmany
