// SPDX-License-Identifier: Apache-2.0
// A layer that returns its input and calls a hook.
#pragma once

#include <functional>

#include "core/nn/layers.h"
#include "core/nn/model.h"

namespace howmany::testing_support {

class Through final : public Layer {
 public:
  using Act = std::function<void(const Tensor&)>;
  explicit Through(Act forward, Act backward)
      : forward_(std::move(forward)), backward_(std::move(backward)) {}

  Tensor forward(const Tensor& x, Tape&) override { return forward_(x), x; }
  Tensor backward(const Tensor& dy, Tape&) override { return backward_(dy), dy; }
  Shape output_shape(const Shape& x) const override { return x; }
  std::string describe() const override { return "through()"; }
  LayerPtr clone() const override { return std::make_unique<Through>(forward_, backward_); }

 private:
  const Act forward_, backward_;
};

// Three units, one of which is a Through: the second or the last.
inline ModelSpec model_through(const Through::Act& forward, const Through::Act& backward,
                               bool last = false) {
  std::vector<LayerPtr> parts;
  parts.push_back(layers::linear(6, 6));
  if (last) parts.push_back(layers::linear(6, 6));
  parts.push_back(std::make_unique<Through>(forward, backward));
  if (!last) parts.push_back(layers::linear(6, 6));
  return {.name = "through",
          .layer = layers::sequential(std::move(parts)),
          .sample = {6},
          .classes = 6};
}

}  // namespace howmany::testing_support
