// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"
#include "core/nn/layers.h"

namespace howmany::layers {
namespace {

class Recomputed final : public Layer {
 public:
  explicit Recomputed(LayerPtr layer) : layer_(std::move(layer)) {
    HM_REQUIRE(layer_, "[recomputed] the layer is null");
  }

  Tensor forward(const Tensor& x, Tape& tape) override {
    if (!tape.training()) return layer_->forward(x, tape);
    Tape inner = tape_of(x, tape, tape.options().again);
    Tensor y = layer_->forward(x, inner);
    if (inner.drew()) tape.note_drew();
    tape.push(x);
    return y;
  }
  Tensor backward(const Tensor& dy, Tape& tape) override {
    const Tensor x = tape.pop();
    Tape inner = tape_of(x, tape, true);
    layer_->forward(x, inner);
    inner.on_final(tape.hook());
    return layer_->backward(dy, inner);
  }
  Shape output_shape(const Shape& x) const override { return layer_->output_shape(x); }
  double forward_flop(const Shape& x) const override { return layer_->forward_flop(x); }
  std::string describe() const override {
    return fmt::format("recomputed({})", layer_->describe());
  }
  LayerPtr clone() const override { return recomputed(layer_->clone()); }
  std::vector<Child> children() override { return {{"", layer_.get()}}; }

 private:
  static Tape tape_of(const Tensor& x, const Tape& outer, bool again) {
    TapeOptions options = outer.options();
    options.again = again;
    Tape inner(options);
    if (!outer.wants_grad(x)) inner.set_input(x);
    return inner;
  }

  LayerPtr layer_;
};

}  // namespace

LayerPtr recomputed(LayerPtr layer) { return std::make_unique<Recomputed>(std::move(layer)); }

}  // namespace howmany::layers
