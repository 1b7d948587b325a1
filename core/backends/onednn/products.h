// SPDX-License-Identifier: Apache-2.0
// The products of oneDNN's primitives, with the packed weights, copies and scratch memory that they
// need. On meta devices only these are allocated, and nothing is computed. Tensors of
// convolutions are not empty. Private to this folder. Thread-safe.
#pragma once

#include "core/backends/backend.h"

namespace howmany::onednn {

// An operand of a product: op(t), where op transposes if requested.
struct Operand {
  const Tensor& t;  // [rows,columns], f32 or rounded()
  bool transpose = false;
  bool is_weight = false;  // then its rounded copy is kept until it changes
};

// Returns t in product_type().
Tensor rounded(const Tensor& t, bool is_weight = false);

// y [M,N] = op(a) [M,K] op(b) + bias. Adds to y if `accumulate`.
void product(const Operand& a, const Operand& b, const Tensor& bias, bool accumulate, Tensor& y);
// dx = dz w and dw = dz^T x, as in Backend::linear_backward().
void linear_gradients(const Tensor& x, const Tensor& w, const Tensor& dz, Tensor& dx, GradOut& dw);
// As Backend::conv2d().
void convolution(const Tensor& x, const Tensor& w, const Tensor& bias, Window window, Tensor& y);
// As Backend::conv2d_backward(), without the gradient of the bias.
void convolution_backward(const Tensor& x, const Tensor& w, const Tensor& dy, Window window,
                          Tensor& dx, GradOut& dw);

}  // namespace howmany::onednn
