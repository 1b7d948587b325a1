#include <cmath>
#include <memory>

#include "benches/core_cases.h"
#include "core/error.h"
#include "core/loss.h"
#include "core/model.h"
#include "core/optim.h"
#include "core/rng.h"
#include "core/units.h"

namespace howmany::benches {
namespace {

Tensor ids(const Shape& shape, int64_t bound, const char* name) {
  Tensor t = Tensor::empty(shape, Dtype::i64);
  const Rng rng(1, stream_of(name));
  uint64_t i = 0;
  for (int64_t& id : t.mutable_values<int64_t>()) id = rng.below(i++, bound);
  return t;
}

// A model that trains on one batch with SGD, momentum 0.9.
class Training {
 public:
  Training(const std::string& model, int64_t batch)
      : model_(make_model(model)),
        optimizer_(make_optimizer("sgd", {.lr = 0.01, .momentum = 0.9})) {
    materialize(*model_.layer, {});
    params_ = trainable_params(*model_.layer);
    const Shape x = with_rows_in_front(batch, model_.sample);
    x_ = model_.input == Dtype::i64 ? ids(x, model_.vocabulary, "x") : Tensor::empty(x);
    if (model_.input != Dtype::i64) fill_normal(x_, 0, 1, Rng(1, stream_of("x")));
    labels_ = ids(with_rows_in_front(batch, model_.labels), model_.classes, "y");
  }

  double forward_backward() {
    Tape tape({.training = true});
    tape.set_input(x_);
    const LossResult loss =
        compute_loss(model_.loss, model_.layer->forward(x_, tape), labels_, x_.shape()[0]);
    zero_grads(params_);
    model_.layer->backward(loss.dy, tape);
    return loss.value;
  }
  void step() {
    forward_backward();
    optimizer_->step(params_);
  }

  // A short step down the gradient must lower the loss by its length times the gradient's: right
  // only when both are.
  void check() {
    const double loss = forward_backward();
    double square = 0;
    for (const Param* p : params_)
      for (float g : p->grad.values<float>())
        square += static_cast<double>(g) * static_cast<double>(g);
    const double wanted = 0.003 * loss;
    make_optimizer("sgd", {.lr = wanted / square})->step(params_);
    const double drop = loss - forward_backward();
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

// Forward once and backward twice, but for the gradient of the input, which nobody wants.
double step_flop(const std::string& model, int64_t batch) {
  const ModelSpec spec = make_model(model);
  const Shape x = with_rows_in_front(batch, spec.sample);
  Layer* first = spec.layer.get();
  while (!first->children().empty()) first = first->children().front().layer;
  return 3 * spec.layer->forward_flop(x) - first->forward_flop(x);
}

CoreCase step_case(const std::string& model, int64_t batch) {
  CoreCase c;
  c.name = fmt::format("step/{}/batch:{}", model, batch);
  c.flop = step_flop(model, batch);
  c.samples = static_cast<double>(batch);
  c.parameters = static_cast<double>(parameter_count(*make_model(model).layer));
  c.make = [model, batch] {
    const auto training = std::make_shared<Training>(model, batch);
    training->check();
    return [training] { training->step(); };
  };
  return c;
}

}  // namespace

std::vector<CoreCase> step_cases() {
  return {step_case("mlp", 128), step_case("mlp", 512), step_case("resnet18", 32),
          step_case("gpt2", 8)};
}

}  // namespace howmany::benches
