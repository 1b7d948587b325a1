// SPDX-License-Identifier: Apache-2.0
// A model with a hook in the middle of its backward pass.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/nn/layers.h"
#include "core/nn/model.h"

namespace howmany::testing_support {

// Called with the device of each part when its backward begins.
using Befall = std::function<void(Device)>;

class Fragile final : public Layer {
 public:
  Fragile(int64_t width, Befall what)
      : width_(width), what_(std::move(what)), inner_(layers::linear(width, width)) {}
  Tensor forward(const Tensor& x, Tape& tape) override { return inner_->forward(x, tape); }
  Tensor backward(const Tensor& dy, Tape& tape) override {
    what_(dy.device());
    return inner_->backward(dy, tape);
  }
  Shape output_shape(const Shape& x) const override { return x; }
  std::string describe() const override { return "fragile()"; }
  LayerPtr clone() const override { return std::make_unique<Fragile>(width_, what_); }
  std::vector<Child> children() override { return {{"", inner_.get()}}; }

 private:
  int64_t width_;
  Befall what_;
  LayerPtr inner_;
};

// Four such layers.
inline ModelSpec fragile_model(int64_t width, const Befall& what) {
  std::vector<LayerPtr> parts;
  for (int i = 0; i < 4; ++i) parts.push_back(std::make_unique<Fragile>(width, what));
  return {.name = "fragile",
          .layer = layers::sequential(std::move(parts)),
          .sample = {width},
          .classes = width};
}

}  // namespace howmany::testing_support
