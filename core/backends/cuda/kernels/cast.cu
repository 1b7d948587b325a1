// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/kernels/cast.h"

#include "core/backends/cuda/kernels/pack.cuh"

namespace howmany::cuda {
namespace {

bool dense(const Matrix& m, int64_t stride) {
  const bool rows = m.rows == 1 || (m.stride == m.columns && stride == m.columns);
  return rows && (m.batch == 1 || m.apart == m.rows * stride);
}

template <typename T>
void cast(const Matrix& m, Bf16* to, int64_t stride, const OnDevice& on) {
  const T* const from = static_cast<const T*>(m.data);
  const int64_t rows = m.rows, columns = m.columns, before = m.stride, apart = m.apart;
  if (dense(m, stride))
    return each_pack<kLanes<Bf16>>(
        m.batch * rows * columns, by_16(from, to), on,
        [=] __device__(int64_t i, auto lanes) { store(to + i, load(from + i, lanes)); });
  each_row(m.batch * rows, columns, on, [=] __device__(int64_t r) {
    const T* const in = from + r / rows * apart + r % rows * before;
    for (int64_t c = threadIdx.x; c < columns; c += blockDim.x)
      to[r * stride + c] = rounded<Bf16>(static_cast<float>(in[c]));
  });
}

}  // namespace

void cast_to_halves(const Matrix& m, Bf16* to, int64_t stride, const OnDevice& on) {
  by_element(m.dtype, [&](auto e) { cast<decltype(e)>(m, to, stride, on); });
}

}  // namespace howmany::cuda
