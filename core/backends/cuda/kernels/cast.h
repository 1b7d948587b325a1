// Matrices in bf16, for products that read their inputs so: the kernels. What is kept of them is in
// halves.h. Private to core/backends/cuda.
#pragma once

#include "core/backends/cuda/runtime/runtime.h"
#include "core/tensor/dtype.h"

namespace howmany::cuda {

// `batch` of them, the next `apart` elements on; rows `stride` apart. Of f32, or of bf16 to be laid
// otherwise.
struct Matrix {
  const void* data = nullptr;
  int64_t rows = 0, columns = 0, stride = 0, batch = 1, apart = 0;
  Dtype dtype = Dtype::f32;
};

// One after the other, rows `stride` apart.
void cast_to_halves(const Matrix& m, Bf16* to, int64_t stride, const OnDevice& on);

}  // namespace howmany::cuda
