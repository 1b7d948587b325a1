#include "core/backends/cuda/cast.h"
#include "core/backends/cuda/launch.cuh"

namespace howmany::cuda {
namespace {

bool dense(const Matrix& m) {
  const bool rows = m.stride == m.columns && m.columns % kPad == 0;
  return rows && (m.batch == 1 || m.apart == m.rows * m.columns);
}

void fill(const Matrix& m, uint16_t* to, int64_t stride, const OnDevice& on) {
  const float* const from = m.data;
  const int64_t rows = m.rows, columns = m.columns, before = m.stride, apart = m.apart;
  each_row(m.batch * rows, columns, on, [=] __device__(int64_t r) {
    const float* const in = from + r / rows * apart + r % rows * before;
    for (int64_t c = threadIdx.x; c < columns; c += blockDim.x) to[r * stride + c] = to_bf16(in[c]);
  });
}

}  // namespace

Half half_of(const Matrix& m, Device device, const OnDevice& on) {
  const int64_t stride = (m.columns + kPad - 1) / kPad * kPad;
  Half half{Tensor::empty({m.batch * m.rows * stride, 2}, Dtype::u8, device), stride,
            m.rows * stride};
  auto* const to = static_cast<uint16_t*>(half.room.mutable_raw());
  if (dense(m)) {
    const float* const from = m.data;
    each(m.batch * m.rows * stride, on, [=] __device__(int64_t i) { to[i] = to_bf16(from[i]); });
  } else {
    fill(m, to, stride, on);
  }
  return half;
}

}  // namespace howmany::cuda
