// SPDX-License-Identifier: Apache-2.0
// The products of oneDNN's primitives, with the packed weights, copies and scratch memory that they
// need. On meta devices only these are allocated, and nothing is computed. No tensor is empty.
// Private to this folder. Thread-safe.
#pragma once

#include "core/backends/backend.h"

namespace howmany::onednn {

// y [M,N] = a [M,K] op(b) + bias
void product(const Tensor& a, const Tensor& b, bool transpose_b, const Tensor& bias, Tensor& y);
// As Backend::conv2d().
void convolution(const Tensor& x, const Tensor& w, const Tensor& bias, Window window, Tensor& y);
// As Backend::conv2d_backward(), without the gradient of the bias.
void convolution_backward(const Tensor& x, const Tensor& w, const Tensor& dy, Window window,
                          Tensor& dx, GradOut& dw);

}  // namespace howmany::onednn
