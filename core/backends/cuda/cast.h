// Copies of matrices in bf16, for products that read their inputs so. What is asked for is done in
// the stream's order, like all else. Private to core/backends/cuda.
#pragma once

#include <cstdint>

#include "core/backends/cuda/runtime.h"
#include "core/precision.h"
#include "core/tensor.h"

namespace howmany::cuda {

struct Matrix {  // `batch` of them, the next `apart` elements on; rows `stride` apart
  const float* data = nullptr;
  int64_t rows = 0, columns = 0, stride = 0, batch = 1, apart = 0;
};

// Rows begin at 16 bytes, as the fast algorithms want.
constexpr int64_t kPad = 8;

struct Half {
  Tensor room;  // of as many bytes
  int64_t stride = 0, apart = 0;
};
Half half_of(const Matrix& m, Device device, const OnDevice& on);

}  // namespace howmany::cuda
