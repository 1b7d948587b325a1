// SPDX-License-Identifier: Apache-2.0
#include "core/backends/onednn/loops.h"

namespace howmany::onednn {
namespace {

HM_SIMD void add_rows(const float* __restrict x, int64_t rows, int64_t columns,
                      float* __restrict sum) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t c = 0; c < columns; ++c) sum[c] += x[row * columns + c];
}

}  // namespace

void store(GradOut& gradient, std::span<const double> values) {
  if (!gradient.value) return;
  float* out = gradient.value.mutable_data<float>();
  for (size_t i = 0; i < values.size(); ++i)
    out[i] = (gradient.accumulate ? out[i] : 0.0F) + static_cast<float>(values[i]);
}

void store_column_sums(GradOut& gradient, const float* dz, int64_t rows, int64_t columns) {
  if (!gradient.value) return;
  store(gradient, column_sums<1>(rows, columns, [&](int64_t begin, int64_t end, float* sum) {
          add_rows(dz + begin * columns, end - begin, columns, sum);
        }));
}

}  // namespace howmany::onednn
