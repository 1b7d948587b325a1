// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"
#include "core/nn/attention_memory.h"
#include "core/nn/cut.h"
#include "core/nn/layers.h"
#include "core/ops/ops.h"

namespace howmany::layers {
namespace {

// Multi-head attention without its projections: x [N,T,3D] (rows of q, k and v) -> y [N,T,D]. It
// has no parameters. As in GPT-2, the qkv and proj projections are linear layers around it.
class Attention final : public Layer {
 public:
  explicit Attention(Heads heads) : heads_(heads) {
    HM_REQUIRE(heads.count > 0, "[attention] {} heads", heads.count);
  }

  Tensor forward(const Tensor& x, Tape& tape) override {
    output_shape(x.shape());
    const ops::Attended out = ops::attention(x, heads_);
    if (!tape.training()) return out.y;
    for (const Tensor& t : kept_by_attention(x, heads_)) tape.push(t);
    for (const Tensor& t : {x, out.y, out.lse}) tape.push(t);
    return out.y;
  }

  Tensor backward(const Tensor& dy, Tape& tape) override {
    ops::Attended kept;
    kept.lse = tape.pop();
    kept.y = tape.pop();
    const Tensor x = tape.pop();
    std::vector<Tensor> eager = needed_by_attention(x, heads_);
    for (size_t i = kept_by_attention(x, heads_).size(); i > 0; --i) eager.push_back(tape.pop());
    return tape.wants_grad(x) ? ops::attention_backward(x, kept, dy, heads_) : Tensor();
  }

  Shape output_shape(const Shape& x) const override {
    HM_REQUIRE(x.rank() == 3 && x[2] > 0 && x[2] % (3 * heads_.count) == 0,
               "[attention] x has shape {}, expected [N,T,3 D] with D a multiple of {} heads",
               x.str(), heads_.count);
    return {x[0], x[1], x[2] / 3};
  }
  double forward_flop(const Shape& x) const override { return ops::attention_flop(x, heads_); }
  std::string describe() const override {
    return fmt::format("attention({} heads{})", heads_.count, heads_.causal ? ", causal" : "");
  }
  LayerPtr clone() const override { return attention(heads_); }
  bool can_cut(int place) const override { return place == Cut::between; }
  LayerPtr cut(const Cut& cut) const override {
    HM_REQUIRE(heads_.count % cut.count == 0,
               "[attention] {} heads cannot be divided over {} ranks: take {}", heads_.count,
               cut.count, nearest_divisor(heads_.count, cut.count));
    return attention({.count = heads_.count / cut.count, .causal = heads_.causal});
  }
  std::vector<int64_t> input_blocks() const override { return {1, 1, 1}; }  // q, k and v

 private:
  Heads heads_;
};

}  // namespace

LayerPtr attention(Heads heads) { return std::make_unique<Attention>(heads); }

}  // namespace howmany::layers
