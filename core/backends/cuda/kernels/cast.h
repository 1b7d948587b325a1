// SPDX-License-Identifier: Apache-2.0
// The kernel that casts matrices to bf16 for products. halves.h caches the results. Private to
// core/backends/cuda.
#pragma once

#include "core/backends/cuda/runtime/runtime.h"
#include "core/tensor/dtype.h"

namespace howmany::cuda {

// `batch` matrices, `apart` elements from each other, with rows `stride` elements apart. f32, or
// bf16 if only the layout changes.
struct Matrix {
  const void* data = nullptr;
  int64_t rows = 0, columns = 0, stride = 0, batch = 1, apart = 0;
  Dtype dtype = Dtype::f32;
};

// Writes the matrices contiguously, with rows `stride` elements apart.
void cast_to_halves(const Matrix& m, Bf16* to, int64_t stride, const OnDevice& on);

}  // namespace howmany::cuda
