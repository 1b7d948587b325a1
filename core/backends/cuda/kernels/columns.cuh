// SPDX-License-Identifier: Apache-2.0
// Sums over the rows of [rows, columns], for bias gradients and norms. For .cu files, private to
// core/backends/cuda.
//
// Method. Each thread sums one chunk of rows of a few columns, with coalesced reads. Then one
//   thread per column sums the chunks, in two passes if there are many.
// Precision. A chunk may have thousands of rows. Blocks of kRowBlock rows are summed in f32, the
//   sums of blocks in double, as on CPUs.
// Determinism. The order is fixed, so results are reproducible.
#pragma once

#include "core/backends/backend.h"
#include "core/backends/cuda/kernels/pack.cuh"

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

constexpr int64_t kRowBlock = 32, kFewChunks = 64;

struct Sums {
  double a, b;
  __device__ void add(Sums more) {
    a += more.a;
    b += more.b;
  }
};
template <int kCount>
using Pairs = Pack<Pair, kCount>;

template <typename F>
struct Plain {  // for reduce_columns(): close() returns the sums of the block unchanged
  F f;
  template <int kWide>
  __device__ Pairs<kWide> term(int64_t row, int64_t, int64_t column, Lanes<kWide> lanes) const {
    return f(row, column, lanes);
  }
  template <int kWide>
  __device__ Pack<Sums, kWide> close(const Pairs<kWide>& some, int64_t, int64_t, int64_t,
                                     Lanes<kWide> lanes) const {
    return each_lane(lanes, [&](int l) { return Sums{some.at[l].a, some.at[l].b}; });
  }
};

template <int kWide, typename F>
__global__ void column_partials(F f, int64_t rows, int64_t columns, ColumnPlan plan, Sums* out) {
  const int64_t packs = columns / kWide;
  for (int64_t i = first_element(); i < plan.chunks * packs; i += element_stride()) {
    const int64_t chunk = i / packs, column = i % packs * kWide, begin = chunk * plan.chunk;
    const int64_t end = begin + plan.chunk < rows ? begin + plan.chunk : rows;
    Pack<Sums, kWide> sum{};
    for (int64_t first = begin; first < end; first += kRowBlock) {
      const int64_t last = first + kRowBlock < end ? first + kRowBlock : end;
      Pairs<kWide> some{};
      for (int64_t row = first; row < last; ++row) {
        const Pairs<kWide> term = f.term(row, first, column, Lanes<kWide>{});
        HM_UNROLL
        for (int l = 0; l < kWide; ++l) {
          some.at[l].a += term.at[l].a;
          some.at[l].b += term.at[l].b;
        }
      }
      const Pack<Sums, kWide> block = f.close(some, first, last - first, column, Lanes<kWide>{});
      HM_UNROLL
      for (int l = 0; l < kWide; ++l) sum.at[l].add(block.at[l]);
    }
    HM_UNROLL
    for (int l = 0; l < kWide; ++l) out[chunk * columns + column + l] = sum.at[l];
  }
}

// Reduces every kFewChunks of the `chunks` partial sums of a column to one.
template <typename Sum>
__global__ void fewer_partials(const Sum* from, int64_t chunks, int64_t columns, Sum* to) {
  const int64_t left = (chunks + kFewChunks - 1) / kFewChunks;
  for (int64_t i = first_element(); i < left * columns; i += element_stride()) {
    const int64_t begin = i / columns * kFewChunks;
    const int64_t end = begin + kFewChunks < chunks ? begin + kFewChunks : chunks;
    Sum sum{0, 0};
    for (int64_t k = begin; k < end; ++k) sum.add(from[k * columns + i % columns]);
    to[i] = sum;
  }
}

template <typename G>
__global__ void column_totals(G g, int64_t columns, int64_t chunks, const Sums* partial) {
  for (int64_t c = first_element(); c < columns; c += element_stride()) {
    Sums sum{0, 0};
    for (int64_t k = 0; k < chunks; ++k) sum.add(partial[k * columns + c]);
    g(c, sum);
  }
}

// Calls g(column, sum over blocks of rows of f.close()) for every column.
// f.term(row, first, column, lanes) returns the Pairs of adjacent columns: kWide of them if the
// data is `together`, which requires columns to be a multiple of kWide, else one.
// f.close(sums, first, rows, column, lanes) finishes the block that begins with row `first`.
template <int kWide, typename F, typename G>
void reduce_blocks(int64_t rows, int64_t columns, bool together, Device device, const OnDevice& on,
                   F f, G g) {
  if (columns == 0) return;
  const bool packs = together && columns % kWide == 0;
  const ColumnPlan plan = plan_columns(rows, packs ? columns / kWide : columns);
  const auto room = [&](int64_t chunks) {
    return Tensor::empty({chunks, columns, 2}, Dtype::f64, device);
  };
  Tensor partial = room(plan.chunks), fewer;
  auto* sums = static_cast<Sums*>(partial.mutable_raw());
  int64_t chunks = plan.chunks;
  if (packs)
    HM_LAUNCH(column_partials<kWide>, grid_for_elements(chunks * columns / kWide), on.stream(), f,
              rows, columns, plan, sums);
  else
    HM_LAUNCH(column_partials<1>, grid_for_elements(chunks * columns), on.stream(), f, rows,
              columns, plan, sums);
  if (chunks > kFewChunks) {
    const int64_t left = (chunks + kFewChunks - 1) / kFewChunks;
    fewer = room(left);
    auto* const to = static_cast<Sums*>(fewer.mutable_raw());
    HM_LAUNCH(fewer_partials, grid_for_elements(left * columns), on.stream(), sums, chunks, columns,
              to);
    sums = to;
    chunks = left;
  }
  HM_LAUNCH(column_totals, grid_for_elements(columns), on.stream(), g, columns, chunks, sums);
  check(cudaGetLastError(), "column sums");
}

// Calls g(column, sum over rows of f(row, column, lanes)) for every column.
template <int kWide, typename F, typename G>
void reduce_columns(int64_t rows, int64_t columns, bool together, Device device, const OnDevice& on,
                    F f, G g) {
  reduce_blocks<kWide>(rows, columns, together, device, on, Plain<F>{f}, g);
}

}  // namespace howmany::cuda
