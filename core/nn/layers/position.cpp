// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/ops/ops.h"

namespace howmany::layers {
namespace {

// Adds a learned row per position: x [N,T,width] with T <= length, y = x + weight[t].
class Position final : public Layer {
 public:
  Position(int64_t length, int64_t width, double deviation)
      : length_(length),
        width_(width),
        params_{Param{.name = "weight",
                      .shape = {length, width},
                      .init = {Init::normal, deviation},
                      .rounded = true}} {
    HM_REQUIRE(length > 0 && width > 0, "[position] {} rows of {}", length, width);
  }

  Tensor forward(const Tensor& x, Tape& tape) override {
    const Shape shape = output_shape(x.shape());
    const Tensor places = places_for(shape, x.device());
    if (tape.training()) {
      tape.used(table());
      tape.push(places);
    }
    return ops::add(x, ops::embedding(places, table().value));
  }
  Tensor backward(const Tensor& dy, Tape& tape) override {
    ops::embedding_backward(tape.pop(), dy, grad_out(table()));
    tape.done(table());
    return dy;
  }
  Shape output_shape(const Shape& x) const override {
    HM_REQUIRE(x.rank() == 3 && x[1] <= length_ && x[2] == width_,
               "[position] x has shape {}, expected [N,T,{}] with T at most {}", x.str(), width_,
               length_);
    return x;
  }
  double forward_flop(const Shape& x) const override { return static_cast<double>(x.numel()); }
  std::string describe() const override { return fmt::format("position({}, {})", length_, width_); }
  LayerPtr clone() const override { return position(length_, width_, params_[0].init.value); }
  std::span<Param> own_params() override { return params_; }

 private:
  // Cached per device, because on a GPU each step would wait for the copy.
  Tensor places_for(const Shape& x, Device device) {
    const bool fit = places_ && places_.device() == device && places_.shape()[0] >= x[0] &&
                     places_.shape()[1] == x[1];
    if (!fit) places_ = places_of(x, device);
    return places_.rows(0, x[0]);
  }
  static Tensor places_of(const Shape& x, Device device) {
    Tensor places = Tensor::empty({x[0], x[1]}, Dtype::i64);
    int64_t i = 0;
    for (int64_t& place : places.mutable_values<int64_t>()) place = i++ % x[1];
    return places.to(device);
  }
  Param& table() { return params_[0]; }

  int64_t length_, width_;
  std::array<Param, 1> params_;
  Tensor places_;
};

}  // namespace

LayerPtr position(int64_t length, int64_t width, double deviation) {
  return std::make_unique<Position>(length, width, deviation);
}

}  // namespace howmany::layers
