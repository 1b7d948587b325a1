// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/ops/ops.h"

namespace howmany::layers {
namespace {

// Adds a row of a learned table to every token of x [N,T,width]: row t, or always row 0.
class TokenTable final : public Layer {
 public:
  enum class Row { kOfPosition, kFirst };

  TokenTable(Row row, int64_t rows, int64_t width, double deviation)
      : row_(row),
        rows_(rows),
        width_(width),
        params_{Param{.name = "weight",
                      .shape = {rows, width},
                      .init = {Init::normal, deviation},
                      .rounded = true}} {
    HM_REQUIRE(rows > 0 && width > 0, "[{}] {} rows of {}", name(), rows, width);
  }

  Tensor forward(const Tensor& x, Tape& tape) override {
    const Shape shape = output_shape(x.shape());
    const Tensor ids = ids_for(shape, x.device());
    if (tape.training()) {
      tape.used(table());
      tape.push(ids);
    }
    return ops::add(x, ops::embedding(ids, table().value));
  }
  Tensor backward(const Tensor& dy, Tape& tape) override {
    ops::embedding_backward(tape.pop(), dy, grad_out(table()));
    tape.done(table());
    return dy;
  }
  Shape output_shape(const Shape& x) const override {
    const bool fits = x.rank() == 3 && x[2] == width_ && (row_ == Row::kFirst || x[1] <= rows_);
    HM_REQUIRE(fits, "[{}] x has shape {}, expected [N,T,{}]{}", name(), x.str(), width_,
               row_ == Row::kFirst ? "" : fmt::format(" with T at most {}", rows_));
    return x;
  }
  double forward_flop(const Shape& x) const override { return static_cast<double>(x.numel()); }
  std::string describe() const override { return fmt::format("{}({}, {})", name(), rows_, width_); }
  LayerPtr clone() const override {
    return std::make_unique<TokenTable>(row_, rows_, width_, params_[0].init.value);
  }
  std::span<Param> own_params() override { return params_; }

 private:
  const char* name() const { return row_ == Row::kFirst ? "segment" : "position"; }
  // Cached per device, because on a GPU each step would wait for the copy.
  Tensor ids_for(const Shape& x, Device device) {
    const bool fit =
        ids_ && ids_.device() == device && ids_.shape()[0] >= x[0] && ids_.shape()[1] == x[1];
    if (!fit) ids_ = ids_of(x).to(device);
    return ids_.rows(0, x[0]);
  }
  Tensor ids_of(const Shape& x) const {
    Tensor ids = Tensor::zeros({x[0], x[1]}, Dtype::i64);
    int64_t i = 0;
    if (row_ == Row::kOfPosition)
      for (int64_t& id : ids.mutable_values<int64_t>()) id = i++ % x[1];
    return ids;
  }
  Param& table() { return params_[0]; }

  const Row row_;
  const int64_t rows_, width_;
  std::array<Param, 1> params_;
  Tensor ids_;
};

}  // namespace

LayerPtr position(int64_t length, int64_t width, double deviation) {
  return std::make_unique<TokenTable>(TokenTable::Row::kOfPosition, length, width, deviation);
}
// BERT's segment embedding, for samples of one segment.
LayerPtr segment(int64_t count, int64_t width, double deviation) {
  return std::make_unique<TokenTable>(TokenTable::Row::kFirst, count, width, deviation);
}

}  // namespace howmany::layers
