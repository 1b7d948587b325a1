// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/ops/ops.h"

namespace howmany::layers {
namespace {

class Embedding final : public Layer {
 public:
  Embedding(int64_t vocabulary, int64_t width, double deviation)
      : vocabulary_(vocabulary),
        width_(width),
        params_{Param{
            .name = "weight", .shape = {vocabulary, width}, .init = {Init::normal, deviation}}} {
    HM_REQUIRE(vocabulary > 0 && width > 0, "[embedding] {} rows of {}", vocabulary, width);
  }

  Tensor forward(const Tensor& x, Tape& tape) override {
    Tensor y = ops::embedding(x, table().value);
    if (tape.training()) {
      tape.used(table());
      tape.push(x);
    }
    return y;
  }
  Tensor backward(const Tensor& dy, Tape& tape) override {
    ops::embedding_backward(tape.pop(), dy, grad_out(table()));
    tape.done(table());
    return {};  // ids have no gradient
  }
  Shape output_shape(const Shape& x) const override {
    HM_REQUIRE(x.rank() < Shape::kMaxRank, "[embedding] ids of shape {}", x.str());
    std::vector<int64_t> extents(x.extents().begin(), x.extents().end());
    extents.push_back(width_);
    return Shape(extents);
  }
  std::string describe() const override {
    return fmt::format("embedding({}, {})", vocabulary_, width_);
  }
  LayerPtr clone() const override { return embedding(vocabulary_, width_, params_[0].init.value); }
  std::span<Param> own_params() override { return params_; }

 private:
  Param& table() { return params_[0]; }

  int64_t vocabulary_, width_;
  std::array<Param, 1> params_;
};

}  // namespace

LayerPtr embedding(int64_t vocabulary, int64_t width, double deviation) {
  return std::make_unique<Embedding>(vocabulary, width, deviation);
}

}  // namespace howmany::layers
