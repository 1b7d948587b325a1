// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/kernels/bias.h"

#include "core/backends/cuda/kernels/columns.cuh"

namespace howmany::cuda {
namespace {

template <typename T>
void sum_rows(const Tensor& dy, GradOut& dbias, const OnDevice& on) {
  const int64_t columns = dbias.value.numel();
  const T* const d = dy.data<T>();
  const Slot slot = slot_of(dbias);
  reduce_columns<kLanes<T>>(
      columns == 0 ? 0 : dy.numel() / columns, columns, by_16(d), dy.device(), on,
      [=] __device__(int64_t row, int64_t c, auto lanes) {
        const auto v = load(d + row * columns + c, lanes);
        return each_lane(lanes, [&](int l) { return Pair{v.at[l], 0}; });
      },
      [=] __device__(int64_t c, Sums sum) { slot.put(c, sum.a); });
}

}  // namespace

void bias_gradient(const Tensor& dy, GradOut& dbias, const OnDevice& on) {
  if (!dbias.value) return;
  by_element(dy.dtype(), [&](auto e) { sum_rows<decltype(e)>(dy, dbias, on); });
}

}  // namespace howmany::cuda
