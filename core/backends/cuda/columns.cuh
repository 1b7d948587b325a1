// Sums over the rows of [rows, columns], for bias gradients and norms: every thread sums a stretch
// of one column (neighbours read neighbours), then one thread a column sums the stretches. A
// stretch may have thousands of rows: kRowBlock at a time are summed in f32, and these sums in
// double, as on CPUs. The order is fixed, so the result is the same each time. For .cu files,
// private to core/backends/cuda.
#pragma once

#include "core/backend.h"
#include "core/backends/cuda/launch.cuh"

namespace howmany::cuda {

// A parameter's gradient on the device: overwritten, added to, or absent.
struct Slot {
  float* out;
  bool accumulate;
  __device__ void put(int64_t i, double value) const {
    if (out != nullptr) out[i] = static_cast<float>(accumulate ? out[i] + value : value);
  }
};
inline Slot slot_of(GradOut& g) {
  return {g.value ? g.value.mutable_data<float>() : nullptr, g.accumulate};
}

constexpr int64_t kRowBlock = 32;

struct Sums {
  double a, b;
};

template <typename F>
__global__ void column_partials(F f, int64_t rows, int64_t columns, ColumnPlan plan, Sums* out) {
  for (int64_t i = first_element(); i < plan.chunks * columns; i += element_stride()) {
    const int64_t begin = i / columns * plan.chunk;
    const int64_t end = begin + plan.chunk < rows ? begin + plan.chunk : rows;
    const int64_t column = i % columns;
    Sums sum{0, 0};
    for (int64_t first = begin; first < end; first += kRowBlock) {
      const int64_t last = first + kRowBlock < end ? first + kRowBlock : end;
      Pair some{0, 0};
      for (int64_t row = first; row < last; ++row) {
        const Pair term = f(row, column);
        some.a += term.a;
        some.b += term.b;
      }
      sum.a += some.a;
      sum.b += some.b;
    }
    out[i] = sum;
  }
}

template <typename G>
__global__ void column_totals(G g, int64_t columns, int64_t chunks, const Sums* partial) {
  for (int64_t c = first_element(); c < columns; c += element_stride()) {
    Sums sum{0, 0};
    for (int64_t k = 0; k < chunks; ++k) {
      sum.a += partial[k * columns + c].a;
      sum.b += partial[k * columns + c].b;
    }
    g(c, sum);
  }
}

// g(column, sum over rows of f(row, column)) for every column.
template <typename F, typename G>
void reduce_columns(int64_t rows, int64_t columns, Device device, const OnDevice& on, F f, G g) {
  if (columns == 0) return;
  const ColumnPlan plan = plan_columns(rows, columns);
  Tensor partial = Tensor::empty({plan.chunks, columns, 2}, Dtype::f64, device);
  auto* const sums = static_cast<Sums*>(partial.mutable_raw());
  HM_LAUNCH(column_partials, grid_for_elements(plan.chunks * columns), on.stream(), f, rows,
            columns, plan, sums);
  HM_LAUNCH(column_totals, grid_for_elements(columns), on.stream(), g, columns, plan.chunks, sums);
  check(cudaGetLastError(), "column sums");
}

}  // namespace howmany::cuda
