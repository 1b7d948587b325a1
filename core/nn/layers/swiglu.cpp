// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"
#include "core/nn/cut.h"
#include "core/nn/layers.h"
#include "core/ops/ops.h"

namespace howmany::layers {
namespace {

// Shazeer, "GLU variants improve transformer" (2020), without its projections: x [N,..,2F] holds
// gates and values, y [N,..,F] = silu(gate) value.
class Swiglu final : public Layer {
 public:
  Tensor forward(const Tensor& x, Tape& tape) override {
    output_shape(x.shape());
    if (tape.training()) tape.push(x);
    return ops::swiglu(x);
  }
  Tensor backward(const Tensor& dy, Tape& tape) override {
    const Tensor x = tape.pop();
    return tape.wants_grad(x) ? ops::swiglu_backward(x, dy) : Tensor();
  }
  Shape output_shape(const Shape& x) const override {
    HM_REQUIRE(x.rank() >= 2 && x[-1] > 0 && x[-1] % 2 == 0,
               "[swiglu] x has shape {}, expected [N,..,2 F]", x.str());
    return replace_last("swiglu", x, x[-1], x[-1] / 2);
  }
  double forward_flop(const Shape& x) const override { return 2 * static_cast<double>(x.numel()); }
  std::string describe() const override { return "swiglu()"; }
  LayerPtr clone() const override { return swiglu(); }
  bool can_cut(int place) const override { return place == Cut::between; }
  LayerPtr cut(const Cut&) const override { return clone(); }
  std::vector<int64_t> input_blocks() const override { return {1, 1}; }  // gates and values
};

}  // namespace

LayerPtr swiglu() { return std::make_unique<Swiglu>(); }

}  // namespace howmany::layers
