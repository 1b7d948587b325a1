// SPDX-License-Identifier: Apache-2.0
// Launches kernels. They are grid-stride loops over elements or rows, so any grid is correct, also
// blocks of one thread. So a test can compile this source for the host. For .cu files, private to
// core/backends/cuda.
//
//   each(n, on, [=] __device__(int64_t i) { y[i] = 2 * x[i]; });
#pragma once

#include "core/backends/cuda/kernels/grid.h"
#include "core/backends/cuda/runtime/runtime.h"

#ifndef HM_LAUNCH  // tests define their own
#define HM_LAUNCH(kernel, grid, stream, ...) \
  kernel<<<(grid).blocks, (grid).threads, 0, stream>>>(__VA_ARGS__)
#endif

namespace howmany::cuda {

__device__ inline int64_t first_element() { return int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ inline int64_t element_stride() { return int64_t{gridDim.x} * blockDim.x; }

template <typename F>
__global__ void each_kernel(int64_t n, F f) {
  for (int64_t i = first_element(); i < n; i += element_stride()) f(i);
}

// Calls f(i) for i in [0, n), in any order.
template <typename F>
void each(int64_t n, const OnDevice& on, F f) {
  if (n == 0) return;
  HM_LAUNCH(each_kernel, grid_for_elements(n), on.stream(), n, f);
  check(cudaGetLastError(), "kernel");
}

// Calls f(row) for each row in [0, rows), by one block per row.
template <typename F>
__global__ void each_row_kernel(int64_t rows, F f) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) f(row);
}

template <typename F>
void each_row(int64_t rows, int64_t width, const OnDevice& on, F f) {
  if (rows == 0) return;
  HM_LAUNCH(each_row_kernel, grid_for_rows(rows, width), on.stream(), rows, f);
  check(cudaGetLastError(), "kernel");
}

// Sums in f32. Each thread sums a few terms, and a tree reduction rounds once per level. In double
// these kernels would be compute-bound: most GPUs have 1/32 or 1/64 of the f32 throughput.
struct Pair {
  float a, b;
};

// Returns the block's total to all its threads. Every thread of the block must call it.
__device__ inline Pair block_sum(Pair mine) {
  __shared__ Pair cells[kMaxThreads];
  cells[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      cells[threadIdx.x].a += cells[threadIdx.x + half].a;
      cells[threadIdx.x].b += cells[threadIdx.x + half].b;
    }
    __syncthreads();
  }
  const Pair total = cells[0];
  __syncthreads();  // before the cells are reused
  return total;
}

__device__ inline float block_max(float mine) {
  __shared__ float cells[kMaxThreads];
  cells[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half)
      cells[threadIdx.x] = fmaxf(cells[threadIdx.x], cells[threadIdx.x + half]);
    __syncthreads();
  }
  const float most = cells[0];
  __syncthreads();
  return most;
}

}  // namespace howmany::cuda
