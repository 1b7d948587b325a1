// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <memory>

#include "benches/core/cases.h"
#include "core/backends/selection.h"
#include "core/base/error.h"
#include "core/nn/loss.h"
#include "core/nn/model.h"
#include "core/nn/optim.h"
#include "core/nn/units.h"
#include "core/ops/ops.h"
#include "core/tensor/precision.h"
#include "core/tensor/rng.h"

namespace howmany::benches {
namespace {

Tensor ids(const Shape& shape, int64_t bound, const char* name) {
  Tensor t = Tensor::empty(shape, Dtype::i64);
  const Rng rng(1, stream_of(name));
  uint64_t i = 0;
  for (int64_t& id : t.mutable_values<int64_t>()) id = rng.below(i++, bound);
  return t;
}

// Trains a model on one batch with SGD and momentum 0.9.
class Training {
 public:
  Training(const std::string& model, int64_t batch, Device device)
      : model_(make_model(model)),
        optimizer_(make_optimizer("sgd", {.lr = 0.01, .momentum = 0.9})) {
    materialize(*model_.layer, {.device = device});
    params_ = trainable_params(*model_.layer);
    const Shape x = with_rows_in_front(batch, model_.sample);
    x_ = model_.input == Dtype::i64 ? ids(x, model_.vocabulary, "x") : Tensor::empty(x);
    if (model_.input != Dtype::i64) fill_normal(x_, 0, 1, Rng(1, stream_of("x")));
    x_ = ops::stored(x_.to(device));
    labels_ = ids(with_rows_in_front(batch, model_.labels), model_.classes, "y").to(device);
  }

  LossResult forward_backward() {
    Tape tape({.training = true});
    tape.set_input(x_);
    LossResult loss =
        compute_loss(model_.loss, model_.layer->forward(x_, tape), labels_, x_.shape()[0]);
    zero_grads(params_);
    model_.layer->backward(loss.dy, tape);
    return loss;
  }
  void step() {
    forward_backward();
    optimizer_->step(params_);
  }

  // A short step against the gradient must lower the loss by the step length times the norm of the
  // gradient. That holds only if loss and gradient are both correct.
  void check() {
    const double loss = forward_backward().value();
    double square = 0;
    for (const Param* p : params_) {
      const Tensor grad = p->grad.to(Device{});
      for (float g : grad.values<float>())
        square += static_cast<double>(g) * static_cast<double>(g);
    }
    const bool rounded = current_precision() != Precision::f32;  // then the loss is rounded as well
    const double wanted = (rounded ? 0.03 : 0.003) * loss;
    make_optimizer("sgd", {.lr = wanted / square})->step(params_);
    const double drop = loss - forward_backward().value();
    HM_ENSURE(std::abs(drop - wanted) < 0.3 * wanted,
              "[core_bench] {}: the loss {} fell by {} along the gradient, expected {}",
              model_.name, loss, drop, wanted);
  }

 private:
  ModelSpec model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<Param*> params_;
  Tensor x_, labels_;
};

CoreCase step_case(const std::string& model, int64_t batch, Device device) {
  CoreCase c;
  c.name = fmt::format("step/{}/batch:{}", model, batch);
  const ModelSpec spec = make_model(model);
  c.flop = step_flop(*spec.layer, with_rows_in_front(batch, spec.sample));
  c.samples = static_cast<double>(batch);
  c.parameters = static_cast<double>(parameter_count(*spec.layer));
  c.make = [model, batch, device] {
    const auto training = std::make_shared<Training>(model, batch, device);
    training->check();
    return [training] { training->step(); };
  };
  return c;
}

// All parameters of a model with random gradients.
class Update {
 public:
  Update(const std::string& rule, const std::string& model, Device device)
      : model_(make_model(model)), optimizer_(make_optimizer(rule, {.lr = 1e-3, .momentum = 0.9})) {
    materialize(*model_.layer, {.device = device});
    params_ = trainable_params(*model_.layer);
    for (Param* p : params_) {
      Tensor grad = Tensor::empty(p->shape);
      fill_normal(grad, 0, 1, Rng(1, stream_of(p->name)));
      p->grad.copy_from(grad);
      p->has_grad = true;
    }
  }
  void step() { optimizer_->step(params_); }

  void check_against(const Update& other) const {
    for (size_t i = 0; i < params_.size(); ++i) {
      const Tensor value = params_[i]->value.to(Device{});
      const auto got = value.values<float>(), want = other.params_[i]->value.values<float>();
      for (size_t k = 0; k < got.size(); ++k)
        HM_ENSURE(std::abs(got[k] - want[k]) < 1e-6f + 1e-5f * std::abs(want[k]),
                  "[core_bench] {}[{}] became {}, expected {}", params_[i]->name, k, got[k],
                  want[k]);
    }
  }

 private:
  ModelSpec model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<Param*> params_;
};

// The optimizer alone. A rule with two states reads and writes the states and the parameter, and
// reads the gradient.
CoreCase update_case(const std::string& rule, const std::string& model, Device device) {
  const auto parameters = static_cast<double>(parameter_count(*make_model(model).layer));
  CoreCase c;
  c.name = fmt::format("update/{}/{}", rule, model);
  c.bytes = parameters * 4 * (rule == "sgd" ? 5 : 7);
  c.parameters = parameters;
  c.make = [rule, model, device]() -> std::function<void()> {
    const auto update = std::make_shared<Update>(rule, model, device);
    Update plain(rule, model, Device{});
    for (int step = 0; step < 2; ++step) {
      update->step();
      const BackendScope scope(backend_named("reference"));
      plain.step();
    }
    update->check_against(plain);
    return [update] { update->step(); };
  };
  return c;
}

}  // namespace

std::vector<CoreCase> step_cases(const CorePlace& place) {
  std::vector<CoreCase> cases;
  for (const auto& [model, batch] : place.steps)
    cases.push_back(step_case(model, batch, place.device));
  for (const auto& [rule, model] : place.updates)
    cases.push_back(update_case(rule, model, place.device));
  return cases;
}

}  // namespace howmany::benches
