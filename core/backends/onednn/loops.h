// SPDX-License-Identifier: Apache-2.0
// Helpers for memory-bound operations, which are our own loops: one pass where a chain of
// primitives would take several. A loop over a range is a plain function marked HM_SIMD.
// parallel_for() and column_sums() divide the work over the calling thread's OpenMP team.
#pragma once

#include <omp.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "core/backends/backend.h"

// Compiles the function for several instruction sets; the program chooses one when it starts. The
// function must not contain OpenMP parallel regions: the compiler would move their bodies to
// functions for the default set only.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !HM_SANITIZED
#define HM_SIMD __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define HM_SIMD
#endif

namespace howmany::onednn {

// exp(x) for x <= 0.5, within about one ulp. A NaN stays a NaN. The library's exp is vectorized
// only under -ffast-math, and took longer than the products. After Cephes: 2^n e^r with integer n.
[[gnu::always_inline]] inline float exp_of(float x) {
  constexpr float kWhole = 12582912;  // adding it leaves the rounded integer in the low bits
  const float bounded = std::max(x, -87.0F);
  const float shifted = bounded * 1.44269504F + kWhole, n = shifted - kWhole;
  const float r = bounded - n * 0.693359375F - n * -2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1;
  return p * std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) + 127) << 23);
}

constexpr int64_t kGrain = 16384;  // elements per thread that justify a parallel region

// Calls body(begin, end) on equal parts of [0, n), one per thread. `cost` is elements per index.
template <class Body>
void parallel_for(int64_t n, int64_t cost, Body&& body) {
  if (omp_get_max_threads() == 1 || n < 2 || n * cost < 2 * kGrain) return body(int64_t{0}, n);
#pragma omp parallel
  {
    const int64_t index = omp_get_thread_num(), count = omp_get_num_threads();
    body(n * index / count, n * (index + 1) / count);
  }
}

// Rows that are summed in f32 before the sums are added in f64.
constexpr int64_t kRowBlock = 32;

// body(first_row, end_row, sums) adds a block of rows to `Sums` consecutive f32 arrays of `columns`
// elements. Returns their totals over all rows, in f64. Deterministic for a given team size.
template <int Sums, class Body>
std::vector<double> column_sums(int64_t rows, int64_t columns, Body&& body) {
  const int team = rows * columns < 2 * kGrain ? 1 : omp_get_max_threads();
  const size_t width = static_cast<size_t>(Sums * columns);
  std::vector<double> total(width * static_cast<size_t>(team));
  const auto part = [&](int64_t index) {
    const std::span<double> mine(total.data() + static_cast<size_t>(index) * width, width);
    std::vector<float> block(width);
    const int64_t end = rows * (index + 1) / team;
    for (int64_t row = rows * index / team; row < end; row += kRowBlock) {
      std::ranges::fill(block, 0.0F);
      body(row, std::min(end, row + kRowBlock), block.data());
      for (size_t i = 0; i < width; ++i) mine[i] += static_cast<double>(block[i]);
    }
  };
  if (team == 1) {
    part(0);
  } else {
#pragma omp parallel for num_threads(team) schedule(static, 1)
    for (int index = 0; index < team; ++index) part(index);
  }
  for (size_t thread = 1; thread < static_cast<size_t>(team); ++thread)
    for (size_t i = 0; i < width; ++i) total[i] += total[thread * width + i];
  total.resize(width);
  return total;
}

// Writes or adds `values` to a parameter's gradient. Does nothing if the gradient is absent.
void store(GradOut& gradient, std::span<const double> values);
// Stores the sums over rows of dz [rows, columns] in a bias gradient.
void store_column_sums(GradOut& gradient, const float* dz, int64_t rows, int64_t columns);

}  // namespace howmany::onednn
