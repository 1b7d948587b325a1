// Matrices rounded to bf16, for products that read their inputs so: the kernels. What is kept of
// them is in halves.h. Private to core/backends/cuda.
#pragma once

#include <cstdint>

#include "core/backends/cuda/runtime.h"

namespace howmany::cuda {

struct Matrix {  // `batch` of them, the next `apart` elements on; rows `stride` apart
  const float* data = nullptr;
  int64_t rows = 0, columns = 0, stride = 0, batch = 1, apart = 0;
};

// One after the other, rows `stride` apart.
void cast_to_halves(const Matrix& m, uint16_t* to, int64_t stride, const OnDevice& on);

// f32 of so many in bf16.
void cast_from_halves(const uint16_t* halves, int64_t count, float* to, const OnDevice& on);

}  // namespace howmany::cuda
