// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/ops/ops.h"
#include "core/tensor/rng.h"

namespace howmany::layers {
namespace {

// The mask is a pure function of the tape's (seed, step), the path of this layer and the index of
// each row in the global batch. So nothing is kept for backward, and the mask does not depend on
// how the batch is divided.
class Dropout final : public Layer {
 public:
  explicit Dropout(double p) : p_(p) {
    HM_REQUIRE(p >= 0 && p < 1, "[dropout] p is {}, expected 0 <= p < 1", p);
  }

  Tensor forward(const Tensor& x, Tape& tape) override {
    output_shape(x.shape());
    return masks(tape) ? ops::dropout(x, p_, key(tape, x.shape())) : x;
  }
  Tensor backward(const Tensor& dy, Tape& tape) override {
    return masks(tape) && dy ? ops::dropout(dy, p_, key(tape, dy.shape())) : dy;
  }
  Shape output_shape(const Shape& x) const override {
    HM_REQUIRE(x.rank() >= 1, "[dropout] x is a scalar");
    return x;
  }
  std::string describe() const override { return fmt::format("dropout({})", p_); }
  LayerPtr clone() const override { return std::make_unique<Dropout>(*this); }
  void place(std::string_view path) override {
    if (!stream_) stream_ = stream_of(path);
  }

 private:
  bool masks(const Tape& tape) const { return tape.training() && p_ > 0; }
  DropoutKey key(Tape& tape, const Shape& x) const {
    return tape.draw(stream_.value_or(0), x.row_numel());
  }

  double p_;
  std::optional<uint64_t> stream_;
};

}  // namespace

LayerPtr dropout(double p) { return std::make_unique<Dropout>(p); }

}  // namespace howmany::layers
