// SPDX-License-Identifier: Apache-2.0
// Initial values of parameters: torch.nn's defaults, and equal on every rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/nn/layers.h"
#include "core/nn/model.h"
#include "tests/support/tensors.h"

namespace howmany {
namespace {

using testing_support::doubles;

struct Spread {
  double least, most, deviation;
};

Spread spread_of(const Tensor& t) {
  const auto v = doubles(t);
  double squares = 0;
  for (double x : v) squares += x * x / static_cast<double>(v.size());
  return {*std::ranges::min_element(v), *std::ranges::max_element(v), std::sqrt(squares)};
}

void expect_uniform(const Tensor& t, double bound) {
  const Spread s = spread_of(t);
  EXPECT_GE(s.least, -bound);
  EXPECT_LE(s.most, bound);
  EXPECT_LT(s.least, -0.9 * bound);
  EXPECT_GT(s.most, 0.9 * bound);
  EXPECT_NEAR(s.deviation, bound / std::sqrt(3), 0.1 * bound);
}

TEST(Init, LinearAndConvolutionAreUniformByFanIn) {
  const LayerPtr linear = layers::linear(64, 100), conv = layers::conv2d(8, 100, {3, 1, 1});
  for (const auto& [layer, fan_in] : {std::pair{linear.get(), 64.0}, {conv.get(), 72.0}}) {
    materialize(*layer, {});
    for (const Param& p : layer->own_params()) expect_uniform(p.value, 1 / std::sqrt(fan_in));
  }
}

TEST(Init, NormsStartAsTheIdentity) {
  const LayerPtr norm = layers::batchnorm(5);
  materialize(*norm, {});
  const double starts[] = {1, 0, 0, 1};  // weight, bias, running mean, running variance
  for (size_t i = 0; i < 4; ++i)
    for (double v : doubles(norm->own_params()[i].value)) EXPECT_EQ(v, starts[i]);
}

TEST(Init, EmbeddingIsStandardNormal) {
  const LayerPtr table = layers::embedding(100, 50);
  materialize(*table, {});
  EXPECT_NEAR(spread_of(table->own_params()[0].value).deviation, 1, 0.05);
}

TEST(Init, ResnetConvolutionsAreKaimingNormalByFanOut) {
  const ModelSpec m = make_model("resnet18:width=8");
  materialize(*m.layer, {});
  for (const Param* p : all_params(*m.layer)) {
    if (p->shape.rank() != 4 || p->shape.numel() < 5000) continue;
    const double fan_out = static_cast<double>(p->shape[0] * p->shape[1] * p->shape[2]);
    EXPECT_NEAR(spread_of(p->value).deviation * std::sqrt(fan_out / 2), 1, 0.05) << p->name;
  }
}

TEST(Init, DependsOnSeedAndPathAlone) {
  const auto value = [](std::string_view model, uint64_t seed, size_t index) {
    const ModelSpec m = make_model(model);
    materialize(*m.layer, {.seed = seed});
    return doubles(all_params(*m.layer)[index]->value);
  };
  EXPECT_EQ(value("mlp:sizes=6-5-4", 1, 0), value("mlp:sizes=6-5-4-3", 1, 0));
  EXPECT_NE(value("mlp:sizes=6-5-4", 1, 0), value("mlp:sizes=6-5-4", 2, 0));
  EXPECT_NE(value("mlp:sizes=5-5-5", 1, 0), value("mlp:sizes=5-5-5", 1, 2));
}

TEST(Init, MaterializingAgainStartsAfresh) {
  const ModelSpec m = make_model("mlp:sizes=6-5-4");
  materialize(*m.layer, {});
  const std::vector<Param*> params = all_params(*m.layer);
  const auto names = [&] {
    std::vector<std::string> list;
    for (const Param* p : params) list.push_back(p->name);
    return list;
  };
  const auto first_names = names();
  const auto first = doubles(params[0]->value);
  params[0]->value.zero();
  params[0]->has_grad = true;
  materialize(*m.layer, {.dtype = Dtype::f64});
  EXPECT_EQ(names(), first_names);
  EXPECT_EQ(doubles(params[0]->value), first);
  EXPECT_FALSE(params[0]->has_grad);
  EXPECT_EQ(params[0]->grad.dtype(), Dtype::f64);
}

}  // namespace
}  // namespace howmany
