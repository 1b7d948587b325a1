// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/nn/cut.h"
#include "core/nn/layers.h"
#include "core/ops/ops.h"

namespace howmany::layers {
namespace {

// Parts that begin with an embedding, then logits = y weight^T with the table of that embedding.
// Not a chain: the model cannot be cut between the table's two uses.
class TiedHead final : public Layer {
 public:
  // With `cut`, the embedding has a part of its rows, and this makes their logits.
  explicit TiedHead(LayerPtr body, std::optional<Cut> cut = {})
      : body_(std::move(body)), cut_(std::move(cut)) {
    HM_REQUIRE(body_, "[tied_head] the body is null");
    Layer* first = body_.get();
    while (first->own_params().empty() && !first->children().empty())
      first = first->children().front().layer;
    const std::span<Param> params = first->own_params();
    HM_REQUIRE(params.size() == 1 && params[0].shape.rank() == 2,
               "[tied_head] the first part is no embedding");
    table_ = &params[0];
  }

  Tensor forward(const Tensor& x, Tape& tape) override {
    const Shape shape = output_shape(x.shape());
    const Tensor rows = rows_of(joined(body_->forward(x, tape)));
    if (tape.training()) {
      tape.used(*table_);
      tape.push(rows);
    }
    return ops::linear(rows, table_->value, {}, Activation::none).view(shape);
  }

  Tensor backward(const Tensor& dy, Tape& tape) override {
    const Tensor rows = tape.pop();
    const Tensor d = dy.view({rows.shape()[0], vocabulary()});
    const Tensor dx = ops::linear_backward(rows, table_->value, d, d, Activation::none, true,
                                           grad_out(*table_), {});
    tape.done(*table_);
    const Tensor whole = dx.view(replace_last("tied_head", dy.shape(), vocabulary(), width()));
    if (joins()) return body_->backward(cut_->positions->sum(whole), tape);
    if (cut_) cut_->sum(dx);
    return body_->backward(whole, tape);
  }

  Shape output_shape(const Shape& x) const override {
    return replace_last("tied_head", of_whole(x), width(), vocabulary());
  }
  double forward_flop(const Shape& x) const override {
    const Shape y = of_whole(x);
    return body_->forward_flop(x) +
           2 * static_cast<double>(y.numel()) * static_cast<double>(vocabulary());
  }
  std::string describe() const override { return fmt::format("tied_head({})", body_->describe()); }
  LayerPtr clone() const override { return over(body_->clone()); }
  std::vector<Child> children() override { return {{"", body_.get()}}; }
  LayerPtr with_children(std::vector<LayerPtr> others) const override {
    return over(std::move(others[0]));
  }
  bool can_cut(int place) const override { return place == Cut::vocabulary && !cut_; }
  LayerPtr cut(const Cut& cut) const override {
    return std::make_unique<TiedHead>(body_->clone(), cut);
  }
  Layer* inner_chain() override { return body_.get(); }
  LayerPtr over(LayerPtr chain) const override {
    return std::make_unique<TiedHead>(std::move(chain), cut_);
  }

 private:
  // The body's output has a part of the positions.
  bool joins() const { return cut_ && cut_->positions; }
  Tensor joined(const Tensor& y) const { return joins() ? cut_->positions->join(y) : y; }
  Shape of_whole(const Shape& x) const {
    const Shape y = body_->output_shape(x);
    return joins() ? joined_positions(y, cut_->count) : y;
  }
  Tensor rows_of(const Tensor& y) const { return y.view({y.numel() / width(), width()}); }
  int64_t vocabulary() const { return table_->shape[0]; }
  int64_t width() const { return table_->shape[1]; }

  LayerPtr body_;
  std::optional<Cut> cut_;
  Param* table_;  // in body_
};

}  // namespace

LayerPtr tied_head(LayerPtr body) { return std::make_unique<TiedHead>(std::move(body)); }

}  // namespace howmany::layers
