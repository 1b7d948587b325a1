// SPDX-License-Identifier: Apache-2.0
// Properties of every layer of HM_LAYERS and of the containers.
#include "core/nn/layer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <ostream>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "tests/support/message_of.h"
#include "tests/support/tensors.h"

namespace howmany {
namespace {

using testing_support::close;
using testing_support::doubles;
using testing_support::Draw;

struct Example {
  const char* name;
  LayerPtr (*make)();
  Shape x;
};

void PrintTo(const Example& example, std::ostream* out) { *out << example.name; }

LayerPtr block(LayerPtr shortcut) {
  std::vector<layers::Named> main;
  main.push_back({"conv1", layers::conv2d(2, 2, {3, 1, 1}, false)});
  main.push_back({"bn1", layers::batchnorm(2, Activation::relu)});
  return layers::residual(layers::sequential(std::move(main)), std::move(shortcut),
                          Activation::relu);
}
LayerPtr identity_residual() { return block(nullptr); }
LayerPtr projected_residual() { return block(layers::conv2d(2, 2, {1, 1, 0})); }
LayerPtr chain() {
  return layers::sequential(layers::flatten(), layers::linear(8, 6, Activation::gelu, false),
                            layers::dropout(0.3), layers::layernorm(6),
                            layers::linear(6, 3, Activation::relu));
}
LayerPtr attention_both_ways() { return layers::attention({.count = 1, .causal = false}); }
LayerPtr nothing() { return layers::sequential(std::vector<LayerPtr>{}); }

#define HM_EXTENTS(...) \
  { __VA_ARGS__ }
const Example kExamples[] = {
#define X(name, parameters, arguments, input) \
  {#name, [] { return layers::name arguments; }, HM_EXTENTS input},
    HM_LAYERS(X)
#undef X
        {"identity_residual", identity_residual, {3, 3, 3, 2}},
    {"projected_residual", projected_residual, {3, 3, 3, 2}},
    {"sequential", chain, {3, 2, 4}},
    {"attention_both_ways", attention_both_ways, {2, 3, 6}},
    {"empty_sequential", nothing, {2, 2}},
};

class EveryLayer : public testing::TestWithParam<Example> {
 protected:
  static constexpr uint64_t kSeed = 11;

  LayerPtr make(Dtype dtype = Dtype::f64, uint64_t seed = 1) const {
    LayerPtr layer = GetParam().make();
    materialize(*layer, {.dtype = dtype, .seed = seed});
    return layer;
  }
  bool takes_ids() const { return std::string_view(GetParam().name) == "embedding"; }
  Tensor input(uint64_t seed, Dtype dtype = Dtype::f64) const {
    Draw draw(seed, dtype);
    return takes_ids() ? draw.ids(GetParam().x, 7) : draw.normal(GetParam().x);
  }
  static TapeOptions options() { return {.training = true, .seed = 5, .step = 3}; }
};
INSTANTIATE_TEST_SUITE_P(, EveryLayer, testing::ValuesIn(kExamples),
                         [](const auto& instance) { return std::string(instance.param.name); });

double dot(const Tensor& a, const Tensor& b) {
  const auto x = doubles(a), y = doubles(b);
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

std::vector<Tensor> grads(Layer& layer) {
  std::vector<Tensor> list;
  for (const Param* p : trainable_params(layer)) list.push_back(p->grad.clone());
  return list;
}

void expect_same(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(close(got[i], want[i], 1e-12)) << i;
}

TEST_P(EveryLayer, OutputShapeAgreesWithForward) {
  const LayerPtr layer = make(Dtype::f32);
  Tape tape(options());
  const Tensor y = layer->forward(input(1, Dtype::f32), tape);
  EXPECT_EQ(y.shape(), layer->output_shape(GetParam().x));
  EXPECT_EQ(y.dtype(), Dtype::f32);
  EXPECT_GE(layer->forward_flop(GetParam().x), 0);
  EXPECT_FALSE(layer->describe().empty());
}

// Compares the gradient with (f(v + h) - f(v - h)) / 2h, for every element of `t`.
void check_gradient(const std::string& what, Tensor t, const Tensor& grad,
                    const std::function<double()>& loss) {
  ASSERT_TRUE(grad) << what;
  const std::vector<double> wanted = doubles(grad);
  constexpr double kStep = 1e-5;
  for (size_t i = 0; i < wanted.size(); ++i) {
    double& v = t.mutable_values<double>()[i];
    const double at = v;
    v = at + kStep;
    const double above = loss();
    v = at - kStep;
    const double below = loss();
    v = at;
    EXPECT_NEAR(wanted[i], (above - below) / (2 * kStep), 1e-7) << what << " " << i;
  }
}

TEST_P(EveryLayer, GradientsAreTheSlopes) {
  const LayerPtr layer = make();
  const Tensor x = input(kSeed);
  const Tensor dy = Draw(2, Dtype::f64).normal(layer->output_shape(x.shape()));
  const auto loss = [&] {
    Tape tape(options());
    return dot(layer->forward(x, tape), dy);
  };
  Tape tape(options());
  layer->forward(x, tape);
  const Tensor dx = layer->backward(dy, tape);
  EXPECT_TRUE(tape.empty());
  if (takes_ids())
    EXPECT_FALSE(dx);
  else
    check_gradient("x", x, dx, loss);
  for (const Param* p : trainable_params(*layer)) check_gradient(p->name, p->value, p->grad, loss);
}

TEST_P(EveryLayer, ClonesBehaveAlike) {
  const LayerPtr layer = make();
  const LayerPtr copy = layer->clone();
  materialize(*copy, {.dtype = Dtype::f64});
  EXPECT_EQ(copy->describe(), layer->describe());
  const Tensor x = input(kSeed), dy = Draw(2, Dtype::f64).normal(layer->output_shape(x.shape()));
  std::vector<Tensor> results[2];
  for (Layer* l : {layer.get(), copy.get()}) {
    Tape tape(options());
    auto& out = results[l == copy.get()];
    out.push_back(l->forward(x, tape));
    if (const Tensor dx = l->backward(dy, tape)) out.push_back(dx);
    for (const Tensor& g : grads(*l)) out.push_back(g);
    for (const Param* p : all_params(*l)) out.push_back(p->value);
  }
  expect_same(results[1], results[0]);
}

TEST_P(EveryLayer, ServesSeveralTapesInFlight) {
  const LayerPtr layer = make();
  const Tensor xs[] = {input(3), input(4)};
  const Tensor dy = Draw(5, Dtype::f64).normal(layer->output_shape(xs[0].shape()));
  std::vector<Tensor> alone, together;
  for (const Tensor& x : xs) {
    Tape tape(options());
    layer->forward(x, tape);
    if (const Tensor dx = layer->backward(dy, tape)) alone.push_back(dx);
  }
  for (const Tensor& g : grads(*layer)) alone.push_back(g);
  zero_grads(trainable_params(*layer));
  Tape tapes[] = {Tape(options()), Tape(options())};
  for (int i : {0, 1}) layer->forward(xs[i], tapes[i]);
  for (int i : {0, 1})
    if (const Tensor dx = layer->backward(dy, tapes[i])) together.push_back(dx);
  for (const Tensor& g : grads(*layer)) together.push_back(g);
  expect_same(together, alone);
}

TEST_P(EveryLayer, GradientsAddUpUntilZeroed) {
  const LayerPtr layer = make();
  const Tensor x = input(kSeed), dy = Draw(2, Dtype::f64).normal(layer->output_shape(x.shape()));
  const auto pass = [&] {
    Tape tape(options());
    layer->forward(x, tape);
    layer->backward(dy, tape);
    return grads(*layer);
  };
  const std::vector<Tensor> once = pass(), twice = pass();
  zero_grads(trainable_params(*layer));
  expect_same(pass(), once);
  for (size_t i = 0; i < once.size(); ++i) {
    Tensor rest = twice[i].clone();
    for (int k = 0; k < 2; ++k)
      for (size_t e = 0; e < rest.values<double>().size(); ++e)
        rest.mutable_values<double>()[e] -= once[i].values<double>()[e];
    for (double v : doubles(rest)) EXPECT_NEAR(v, 0, 1e-12);
  }
}

TEST_P(EveryLayer, AnnouncesEachParameterOnceWhenFinal) {
  const LayerPtr layer = make();
  Tape tape(options());
  const Tensor y = layer->forward(input(kSeed), tape);
  std::vector<Param*> announced;
  tape.on_final([&](Param& p) {
    EXPECT_TRUE(p.has_grad);
    announced.push_back(&p);
  });
  layer->backward(Tensor::full(y.shape(), 1, Dtype::f64), tape);
  EXPECT_THAT(announced, testing::UnorderedElementsAreArray(trainable_params(*layer)));
}

TEST_P(EveryLayer, InferenceKeepsNothing) {
  const LayerPtr layer = make();
  std::vector<Tensor> before, after;
  for (const Param* p : all_params(*layer)) before.push_back(p->value.clone());
  Tape tape({.training = false});
  layer->forward(input(kSeed), tape);
  EXPECT_TRUE(tape.empty());
  for (const Param* p : all_params(*layer)) after.push_back(p->value.clone());
  expect_same(after, before);
}

TEST_P(EveryLayer, NoRowsGiveNoGradient) {
  const LayerPtr layer = make();
  const Tensor x = input(kSeed).rows(0, 0);
  std::vector<Tensor> before, after;
  for (Param* p : all_params(*layer)) {
    before.push_back(p->value.clone());
    if (p->grad) p->grad.copy_from(Tensor::full(p->shape, std::nan(""), Dtype::f64));
  }
  Tape tape(options());
  const Tensor y = layer->forward(x, tape);
  EXPECT_EQ(y.shape(), layer->output_shape(GetParam().x.with_rows(0)));
  layer->backward(y, tape);
  for (const Tensor& g : grads(*layer))
    for (double v : doubles(g)) EXPECT_EQ(v, 0);
  for (const Param* p : all_params(*layer)) after.push_back(p->value.clone());
  expect_same(after, before);
}

struct Misfit {
  LayerPtr layer;
  Shape x;
  const char* message;
};

std::vector<Misfit> misfits() {
  std::vector<Misfit> list;
  const auto add = [&](LayerPtr layer, const Shape& x, const char* message) {
    list.push_back({std::move(layer), x, message});
  };
  add(layers::linear(4, 3), {2, 5}, "[linear] x has shape [2,5], expected [..,4]");
  add(layers::linear(4, 3), {4}, "[linear] x has shape [4], expected [..,4]");
  add(layers::conv2d(2, 3, {3, 1, 1}), {2, 5, 5, 3}, "x has shape [2,5,5,3], expected [N,H,W,2]");
  add(layers::conv2d(2, 3, {7, 1, 0}), {2, 5, 5, 2}, "a window of 7 (padding 0) does not fit x");
  add(layers::batchnorm(3), {4, 2}, "[batchnorm] x has shape [4,2], expected [N,..,3]");
  add(layers::layernorm(6), {4, 2}, "[layernorm] x has shape [4,2], expected [N,..,6]");
  add(layers::position(6, 4), {2, 7, 4}, "[2,7,4], expected [N,T,4] with T at most 6");
  add(layers::attention({.count = 2}), {2, 5, 9}, "[2,5,9], expected [N,T,3 D] with D a multiple");
  add(layers::max_pool({2, 2, 0}), {4, 2}, "[max_pool] x has shape [4,2], expected [N,H,W,C]");
  add(layers::max_pool({3, 2, 2}), {1, 4, 4, 1}, "padding 2 is more than half of window 3");
  add(layers::avg_pool({2, 0, 0}), {1, 4, 4, 1}, "window size 2, stride 0, padding 0");
  add(layers::global_avg_pool(), {1, 4, 5, 1}, "[1,4,5,1], expected square images");
  add(layers::dropout(0.5), {}, "[dropout] x is a scalar");
  add(layers::flatten(), {}, "[flatten] x is a scalar");
  add(chain(), {3, 2, 5}, "[linear] x has shape [3,10], expected [..,8]");
  add(layers::residual(layers::linear(4, 3), nullptr, Activation::none), {2, 4},
      "[residual] main gives [2,3], the shortcut [2,4]");
  return list;
}

TEST(Layer, RefusesAMisfitBeforeAnySideEffect) {
  for (const Misfit& m : misfits()) {
    materialize(*m.layer, {});
    Tape tape;
    const auto refuses = [&](const std::function<void()>& call) {
      EXPECT_THAT(message_of<std::invalid_argument>(call), testing::HasSubstr(m.message))
          << m.layer->describe() << " takes " << m.x.str();
    };
    refuses([&] { m.layer->output_shape(m.x); });
    refuses([&] { m.layer->forward(Tensor::zeros(m.x), tape); });
    EXPECT_TRUE(tape.empty()) << m.layer->describe();
  }
}

TEST(Layer, RefusesNonsenseWhenMade) {
  EXPECT_THROW(layers::linear(0, 3), std::invalid_argument);
  EXPECT_THROW(layers::conv2d(3, 3, {0, 1, 0}), std::invalid_argument);
  EXPECT_THROW(layers::batchnorm(3, Activation::gelu), std::invalid_argument);
  EXPECT_THROW(layers::layernorm(3, 0), std::invalid_argument);
  EXPECT_THROW(layers::embedding(0, 3), std::invalid_argument);
  EXPECT_THROW(layers::position(0, 3), std::invalid_argument);
  EXPECT_THROW(layers::attention({.count = 0}), std::invalid_argument);
  EXPECT_THROW(layers::dropout(1), std::invalid_argument);
  EXPECT_THROW(layers::residual(nullptr, nullptr, Activation::none), std::invalid_argument);
  EXPECT_THROW(layers::sequential(std::vector<layers::Named>(1)), std::invalid_argument);
}

}  // namespace
}  // namespace howmany
