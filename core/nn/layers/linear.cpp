// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/base/error.h"
#include "core/nn/cut.h"
#include "core/nn/deferred_grads.h"
#include "core/nn/layers.h"
#include "core/ops/ops.h"

namespace howmany::layers {
namespace {

class Linear final : public Layer {
 public:
  Linear(int64_t in, int64_t out, Activation act, bool bias, std::optional<double> deviation,
         std::optional<Cut> cut = {})
      : in_(in), out_(out), act_(act), deviation_(deviation), cut_(std::move(cut)) {
    HM_REQUIRE(in > 0 && out > 0, "[linear] sizes {} -> {}", in, out);
    // The initialization of torch.nn.Linear.
    const Init init{Init::uniform, 1 / std::sqrt(static_cast<double>(in))};
    const Init drawn{Init::normal, deviation.value_or(0)};
    params_.push_back(
        {.name = "weight", .shape = {out, in}, .init = deviation ? drawn : init, .rounded = true});
    if (bias)
      params_.push_back({.name = "bias", .shape = {out}, .init = deviation ? Init{} : init});
  }

  Tensor forward(const Tensor& x, Tape& tape) override {
    const Shape shape = output_shape(x.shape());
    const Tensor whole = joins(Cut::outputs) ? cut_->positions->join(x) : x;
    if (!tape.training()) return product(whole, act_).view(shape);
    for (Param& p : params_) tape.used(p);
    tape.push(rows_of(whole));
    const bool gelu = act_ == Activation::gelu;  // backward of gelu needs its input
    Tensor kept = product(whole, gelu ? Activation::none : act_);
    tape.push(kept);
    return (gelu ? ops::activation(kept, act_) : kept).view(shape);
  }

  Tensor backward(const Tensor& dy, Tape& tape) override {
    Tensor kept = tape.pop();
    const Tensor x = tape.pop();
    Tensor d = dy.view(kept.shape());
    Activation act = act_;
    if (joins(Cut::inputs)) {
      if (act != Activation::none) d = ops::activation_backward(kept, d, act);
      kept = d = cut_->positions->join(d.view(dy.shape())).view({x.shape()[0], out_});
      act = Activation::none;
    }
    DeferredGrads* const later = tape.options().later;
    if (later) later->add(*this, {x, kept, d});
    const auto back = [&](bool want_dx, bool want_grads) {
      if (!want_dx && !want_grads) return Tensor();
      Tensor dx = ops::linear_backward(x, weight().value, kept, d, act, want_dx,
                                       want_grads ? grad_out(weight()) : GradOut{},
                                       want_grads ? bias_grad() : GradOut{});
      if (want_grads)
        for (Param& p : params_) tape.done(p);
      return dx ? summed(dx, dy.shape()) : dx;
    };
    if (later || !tape.awaited()) return back(tape.wants_grad(x), !later);
    back(false, true);  // its gradients are communicated while the rest is computed
    return back(tape.wants_grad(x), false);
  }

  void add_grads(std::span<const Tensor> rows) override {
    ops::linear_backward(rows[0], weight().value, rows[1], rows[2], act_, false, grad_out(weight()),
                         bias_grad());
  }

  Shape output_shape(const Shape& x) const override {
    const Shape y = replace_last("linear", x, in_, out_);
    if (joins(Cut::outputs)) return joined_positions(y, cut_->count);
    return joins(Cut::inputs) ? part_of_positions(y, cut_->count) : y;
  }
  double forward_flop(const Shape& x) const override {
    const int parts = joins(Cut::outputs) ? cut_->count : 1;
    return 2 * static_cast<double>(x.numel()) * static_cast<double>(parts * out_);
  }
  bool is_per_position() const override { return true; }
  std::string describe() const override {
    return fmt::format("linear({}, {}{}{})", in_, out_,
                       act_ == Activation::none ? "" : fmt::format(", {}", name_of(act_)),
                       params_.size() > 1 ? "" : ", no bias");
  }
  LayerPtr clone() const override { return of_size(in_, out_, cut_); }
  bool can_cut(int place) const override {
    return (place == Cut::outputs || place == Cut::inputs) && !cut_;
  }
  LayerPtr cut(const Cut& cut) const override {
    const bool outputs = cut.place == Cut::outputs;
    const int64_t in = outputs ? in_ : part_of(in_, cut);
    int64_t out = outputs ? 0 : out_;
    if (outputs)
      for (const int64_t block : block_sizes(cut, out_)) out += part_of(block, cut);
    return of_size(in, out, cut);
  }
  std::span<Param> own_params() override { return params_; }

 private:
  // The initial values stay those of the whole.
  LayerPtr of_size(int64_t in, int64_t out, const std::optional<Cut>& cut) const {
    auto layer = std::make_unique<Linear>(in, out, act_, params_.size() > 1, deviation_, cut);
    for (size_t i = 0; i < params_.size(); ++i) layer->params_[i].init = params_[i].init;
    return layer;
  }
  bool is_cut(Cut::Place place) const { return cut_ && cut_->place == place; }
  // The other side of the layer has a part of the positions.
  bool joins(Cut::Place place) const { return is_cut(place) && cut_->positions; }
  Tensor rows_of(const Tensor& x) const { return x.view({x.numel() / in_, in_}); }
  static int64_t part_of(int64_t whole, const Cut& cut) {
    HM_REQUIRE(whole >= cut.count, "[linear] {} features cannot be divided over {} ranks: take {}",
               whole, cut.count, whole);
    return begin_of_part(whole, cut.index + 1, cut.count) -
           begin_of_part(whole, cut.index, cut.count);
  }
  // If each rank has a part of the inputs, the products are summed. One rank adds the bias.
  // Returns rows.
  Tensor product(const Tensor& x, Activation act) {
    const Tensor rows = rows_of(x);
    if (!is_cut(Cut::inputs)) return ops::linear(rows, weight().value, bias(), act);
    Tensor y =
        ops::linear(rows, weight().value, cut_->index == 0 ? bias() : Tensor(), Activation::none);
    if (joins(Cut::inputs)) {
      y = cut_->positions->sum(y.view(replace_last("linear", x.shape(), in_, out_)));
      y = y.view({y.numel() / out_, out_});
    } else {
      cut_->sum(y);
    }
    return act == Activation::none ? y : ops::activation(y, act);
  }
  // Returns the gradient of the input from that of this rank's outputs. y: the shape of dy.
  Tensor summed(Tensor dx, const Shape& y) {
    if (joins(Cut::outputs))
      return cut_->positions->sum(dx.view(replace_last("linear", y, out_, in_)));
    if (is_cut(Cut::outputs)) cut_->sum(dx);
    return dx.view(input_shape(y));
  }
  Shape input_shape(const Shape& y) const {
    const Shape x = replace_last("linear", y, out_, in_);
    if (joins(Cut::outputs)) return part_of_positions(x, cut_->count);
    return joins(Cut::inputs) ? joined_positions(x, cut_->count) : x;
  }
  Param& weight() { return params_[0]; }
  GradOut bias_grad() { return params_.size() > 1 ? grad_out(params_[1]) : GradOut{}; }
  Tensor bias() const { return params_.size() > 1 ? params_[1].value : Tensor(); }

  int64_t in_, out_;
  Activation act_;
  std::optional<double> deviation_;
  std::optional<Cut> cut_;
  std::vector<Param> params_;
};

}  // namespace

LayerPtr linear(int64_t in, int64_t out, Activation act, bool bias,
                std::optional<double> deviation) {
  return std::make_unique<Linear>(in, out, act, bias, deviation);
}

}  // namespace howmany::layers
