// SPDX-License-Identifier: Apache-2.0
// bf16 inputs of products. Thread-safe, in stream order. Private to core/backends/cuda.
//
// Copies. A bf16 tensor is read in place. An f32 tensor, or one whose rows need padding, is copied.
// Caching. A copy is cached with the tensor's storage until the values change (Tensor::version). So
//   a weight is converted once per step, or never if the optimizer writes both.
// Memory. A copy takes 2 bytes per element in addition to the tensor, for the tensor's lifetime.
// Graphs. A capture uses only copies that it makes itself, which each launch makes again, and
//   copies that the optimizer maintains between launches, which are checked before each launch.
//   Copies made before a launch are invalid after it (epoch, capture.h).
#pragma once

#include <cstdint>

#include "core/backends/cuda/kernels/cast.h"
#include "core/tensor/tensor.h"

namespace howmany::cuda {

// Rows begin at multiples of 16 bytes, which the fast algorithms require.
constexpr int64_t kPad = 8;

struct Half {
  Tensor room;  // owns the data; keep it until the work that reads the data is enqueued
  const void* data = nullptr;
  int64_t stride = 0, apart = 0;  // elements
};

// `whole` is the tensor that contains m. If it is null, the copy is not cached.
Half half_of(const Matrix& m, const Tensor* whole, Device device, const OnDevice& on);

// The elements of t in storage order.
Half half_of(const Tensor& t, const OnDevice& on);

// Returns the cached dense copy of `changed` and marks it as valid, or null if there is none. The
// caller's kernel must write the tensor, which is already marked as changed, and the whole copy.
Bf16* kept_half_of(const Tensor& changed);

}  // namespace howmany::cuda
