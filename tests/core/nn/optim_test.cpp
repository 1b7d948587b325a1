// SPDX-License-Identifier: Apache-2.0
#include "core/nn/optim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/base/error.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"

namespace howmany {
namespace {

Param make_param(const Tensor& value) {
  Param p{.name = "w", .shape = value.shape(), .value = value};
  p.grad = Tensor::zeros(value.shape(), value.dtype());
  p.has_grad = true;
  return p;
}

void check_rule(const std::string& golden_name, std::string_view rule, const OptimOptions& o) {
  Param w = make_param(golden::wave({7}, 1));
  const auto optimizer = make_optimizer(rule, o);
  Param* const params[] = {&w};
  for (int step = 0; step < 4; ++step) {
    golden::fill_wave(w.grad, 2 + step);
    const Tensor before = w.grad.clone();
    optimizer->step(params);
    EXPECT_TRUE(golden::matches(fmt::format("{}.{}", golden_name, step), w.value));
    EXPECT_TRUE(std::ranges::equal(w.grad.values<double>(), before.values<double>()));
  }
}

TEST(Optim, SgdIsPyTorchs) {
  check_rule("sgd", "sgd", {.lr = 0.1});
  check_rule("sgd_decay", "sgd", {.lr = 0.1, .weight_decay = 0.05});
  check_rule("sgd_momentum", "sgd", {.lr = 0.1, .momentum = 0.9});
  check_rule("sgd_nesterov", "sgd",
             {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.05, .nesterov = true});
  check_rule("sgd_dampening", "sgd",
             {.lr = 0.1, .momentum = 0.9, .dampening = 0.3, .weight_decay = 0.05});
}

TEST(Optim, AdamIsPyTorchs) {
  check_rule("adam", "adam", {.lr = 0.02});
  check_rule("adam_decay", "adam",
             {.lr = 0.02, .weight_decay = 0.05, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-4});
  check_rule("adamw", "adamw", {.lr = 0.02, .weight_decay = 0.05});
}

TEST(Optim, KeepsStatePerParameterAndSkipsThoseWithoutGradient) {
  Param a = make_param(Tensor::full({2}, 1)), b = make_param(Tensor::full({2}, 1));
  a.grad = Tensor::full({2}, 1);
  b.grad = Tensor::full({2}, 1);
  const auto optimizer = make_optimizer("sgd", {.lr = 1, .momentum = 0.5});
  Param* const params[] = {&a, &b};
  b.has_grad = false;
  optimizer->step(params);
  EXPECT_FLOAT_EQ(a.value.data<float>()[1], 0);
  EXPECT_FLOAT_EQ(b.value.data<float>()[1], 1);
  b.has_grad = true;
  optimizer->step(params);
  EXPECT_FLOAT_EQ(a.value.data<float>()[1], -1.5f);  // velocity 1.5
  EXPECT_FLOAT_EQ(b.value.data<float>()[1], 0);      // its first step
}

TEST(Optim, UpdatesParametersOnSeveralDevicesAndOfSeveralTypes) {
  const auto optimizer = make_optimizer("adam", {.lr = 0.5});
  std::vector<Param> params;
  for (const Device device : {Device{}, Device{DeviceType::cpu, 1}, Device{}})
    for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
      params.push_back(make_param(Tensor::full({3}, 1, dtype, device)));
      params.back().grad = Tensor::full({3}, 1, dtype, device);
    }
  std::vector<Param*> pointers;
  for (Param& p : params) pointers.push_back(&p);
  optimizer->step({});
  optimizer->step(pointers);
  for (const Param& p : params)
    EXPECT_NEAR(p.value.rows(2, 3).item(), 0.5, 1e-6) << p.value.device().str();
}

TEST(Optim, FollowsAChangedLearningRate) {
  Param a = make_param(Tensor::full({1}, 1));
  a.grad = Tensor::full({1}, 1);
  const auto optimizer = make_optimizer("sgd", {.lr = 1});
  Param* const params[] = {&a};
  optimizer->set_lr(0.25);
  optimizer->step(params);
  EXPECT_FLOAT_EQ(a.value.data<float>()[0], 0.75f);
}

std::string optimizer_refusal(std::string_view name, const OptimOptions& options) {
  return message_of<std::invalid_argument>([&] { make_optimizer(name, options); });
}

TEST(Optim, RefusesUnknownNamesAndNonsense) {
  using testing::HasSubstr;
  EXPECT_THAT(optimizer_refusal("adamm", {}), HasSubstr("did you mean 'adam'?"));
  EXPECT_THAT(optimizer_refusal("sgd", {.lr = -1}), HasSubstr("[sgd] lr is -1"));
  EXPECT_THAT(optimizer_refusal("sgd", {.lr = std::nan("")}), HasSubstr("[sgd] lr is nan"));
  EXPECT_THAT(optimizer_refusal("sgd", {.nesterov = true}), HasSubstr("momentum above 0"));
  EXPECT_THAT(optimizer_refusal("sgd", {.weight_decay = -1}), HasSubstr("weight_decay is -1"));
  EXPECT_THAT(optimizer_refusal("adam", {.beta1 = 1}), HasSubstr("betas are 1 and 0.999"));
  EXPECT_THAT(optimizer_refusal("adamw", {.epsilon = -1}), HasSubstr("epsilon is -1"));
}

}  // namespace
}  // namespace howmany
