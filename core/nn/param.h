// SPDX-License-Identifier: Apache-2.0
// A Param is a tensor that training changes, with its gradient.
#pragma once

#include <span>
#include <string>

#include "core/ops/args.h"
#include "core/tensor/tensor.h"

namespace howmany {

// The initial values of a parameter: `value`, uniform in [-value, value), or normal with mean 0 and
// standard deviation `value`.
struct Init {
  enum Kind { constant, uniform, normal } kind = constant;
  double value = 0;
};

// A trained tensor, or (trainable = false) a buffer such as running statistics. Its address does
// not change while its layer lives.
struct Param {
  // The own name ("weight"); materialize() makes it the path ("layer1.0.conv1.weight").
  std::string name;
  Shape shape{};
  Init init{};
  bool trainable = true;
  // With Precision::bf16, each use rounds the value to bf16, so a value in bf16 serves as well.
  bool rounded = false;
  Tensor value{}, grad{};  // empty until materialize(); buffers have no grad
  bool has_grad = false;   // false: the next backward overwrites grad; true: adds to it
};

void zero_grads(std::span<Param* const> params);  // only sets has_grad to false; writes no memory
// Returns the target of a backward: it accumulates if the parameter already has a gradient.
GradOut grad_out(Param& param);

}  // namespace howmany
