// SPDX-License-Identifier: Apache-2.0
// Helpers of core/ops: outputs that match an input, and the profiler range of an operation.
#pragma once

#include "core/ops/args.h"
#include "core/ops/flop_observer.h"
#include "core/profile/range.h"
#include "core/tensor/dtype.h"
#include "core/tensor/tensor.h"

namespace howmany::ops {

// Returns an uninitialized tensor with the dtype and device of `x`.
inline Tensor like(const Tensor& x, const Shape& shape) {
  return Tensor::empty(shape, x.dtype(), x.device());
}
inline Tensor like(const Tensor& x) { return like(x, x.shape()); }
// The same, with the dtype of parameters and statistics: f32 if x is stored in bf16.
inline Tensor like_beside(const Tensor& x, const Shape& shape) {
  return Tensor::empty(shape, beside(x.dtype()), x.device());
}

// Returns how many products a backward pass computes.
inline double products(bool want_dx, const GradOut& dw) {
  return (want_dx ? 1 : 0) + (dw.value ? 1 : 0);
}

inline Range compute(const char* name, double flop, double operations = 1) {
  FlopObserver::notify(flop, operations);
  return {Category::compute, name, static_cast<uint64_t>(flop)};
}

}  // namespace howmany::ops
