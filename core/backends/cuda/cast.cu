#include "core/backends/cuda/cast.h"
#include "core/backends/cuda/launch.cuh"
#include "core/precision.h"

namespace howmany::cuda {
namespace {

bool dense(const Matrix& m, int64_t stride) {
  const bool rows = m.rows == 1 || (m.stride == m.columns && stride == m.columns);
  return rows && (m.batch == 1 || m.apart == m.rows * stride);
}

}  // namespace

void cast_to_halves(const Matrix& m, uint16_t* to, int64_t stride, const OnDevice& on) {
  const float* const from = m.data;
  const int64_t rows = m.rows, columns = m.columns, before = m.stride, apart = m.apart;
  if (dense(m, stride))
    return each(m.batch * rows * columns, on,
                [=] __device__(int64_t i) { to[i] = to_bf16(from[i]); });
  each_row(m.batch * rows, columns, on, [=] __device__(int64_t r) {
    const float* const in = from + r / rows * apart + r % rows * before;
    for (int64_t c = threadIdx.x; c < columns; c += blockDim.x) to[r * stride + c] = to_bf16(in[c]);
  });
}

void cast_from_halves(const uint16_t* halves, int64_t count, float* to, const OnDevice& on) {
  each(count, on, [=] __device__(int64_t i) { to[i] = from_bf16(halves[i]); });
}

}  // namespace howmany::cuda
