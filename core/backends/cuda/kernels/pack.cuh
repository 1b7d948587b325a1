// SPDX-License-Identifier: Apache-2.0
// Loads and stores of elements: f32 or bf16 in memory, f32 in registers, rounded once by the store.
// Accesses are 16 bytes wide if the alignment permits. For .cu files, private to
// core/backends/cuda.
//
//   each_pack<kLanes<T>>(n, by_16(x, y), on, [=] __device__(int64_t i, auto lanes) {
//     const auto in = load(x + i, lanes);
//     store(y + i, each_lane(lanes, [&](int l) { return 2 * in.at[l]; }));
//   });
#pragma once

#include "core/backends/cuda/kernels/launch.cuh"
#include "core/tensor/bf16.h"

#ifndef HM_UNROLL  // tests define their own
#define HM_UNROLL _Pragma("unroll")
#endif

namespace howmany::cuda {

template <int kCount>
struct Lanes {  // the number of elements that a thread handles at a time
  static constexpr int count = kCount;
};
template <typename T>
inline constexpr int kLanes = 16 / sizeof(T);

template <typename T, int kCount>
struct Pack {
  T at[kCount];
};
template <int kCount>
using Floats = Pack<float, kCount>;

template <typename... T>
bool by_16(const T*... elements) {
  return ((reinterpret_cast<uintptr_t>(elements) % 16 == 0) && ...);
}

template <int kCount, typename F>
__device__ inline auto each_lane(Lanes<kCount>, F f) {
  Pack<decltype(f(0)), kCount> out;
  HM_UNROLL
  for (int l = 0; l < kCount; ++l) out.at[l] = f(l);
  return out;
}

// Returns the lanes per access: all if they fill less than 16 bytes, else 16 bytes' worth.
template <int kCount>
constexpr int chunk_of(size_t size) {
  return kCount * size < 16 ? kCount : static_cast<int>(16 / size);
}
template <typename T, int kCount>
struct alignas(kCount * sizeof(T)) Chunk {
  T at[kCount];
};

template <typename T, int kCount>
__device__ inline Pack<T, kCount> read(const T* from, Lanes<kCount>) {
  constexpr int kEach = chunk_of<kCount>(sizeof(T));
  Pack<T, kCount> out;
  HM_UNROLL
  for (int first = 0; first < kCount; first += kEach) {
    const auto chunk = *reinterpret_cast<const Chunk<T, kEach>*>(from + first);
    HM_UNROLL
    for (int l = 0; l < kEach; ++l) out.at[first + l] = chunk.at[l];
  }
  return out;
}

template <typename T, int kCount>
__device__ inline void write(T* to, const Pack<T, kCount>& values) {
  constexpr int kEach = chunk_of<kCount>(sizeof(T));
  HM_UNROLL
  for (int first = 0; first < kCount; first += kEach) {
    Chunk<T, kEach> chunk;
    HM_UNROLL
    for (int l = 0; l < kEach; ++l) chunk.at[l] = values.at[first + l];
    *reinterpret_cast<Chunk<T, kEach>*>(to + first) = chunk;
  }
}

template <typename T, int kCount>
__device__ inline Floats<kCount> load(const T* from, Lanes<kCount> lanes) {
  const Pack<T, kCount> in = read(from, lanes);
  return each_lane(lanes, [&](int l) { return static_cast<float>(in.at[l]); });
}

// Rounds as static_cast does, by the GPU's instruction if there is one.
template <typename T>
__device__ inline T rounded(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<T, Bf16>) {
    Bf16 half;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half.bits) : "f"(value));
    return half;
  }
#endif
  return static_cast<T>(value);
}

template <typename T, int kCount>
__device__ inline void store(T* to, const Floats<kCount>& values) {
  write(to, each_lane(Lanes<kCount>{}, [&](int l) { return rounded<T>(values.at[l]); }));
}

template <int kWide, typename F>
__global__ void each_pack_kernel(int64_t n, int64_t packed, F f) {
  for (int64_t i = first_element() * kWide; i < packed; i += element_stride() * kWide)
    f(i, Lanes<kWide>{});
  for (int64_t i = packed + first_element(); i < n; i += element_stride()) f(i, Lanes<1>{});
}

// Calls f(i, lanes) over [0, n), in any order, for the elements from i on. There are kWide lanes if
// the data of f is `together` (aligned to 16 bytes), and one lane for the rest.
template <int kWide, typename F>
void each_pack(int64_t n, bool together, const OnDevice& on, F f) {
  if (n == 0) return;
  const int64_t packed = together ? n / kWide * kWide : 0, threads = packed / kWide + n - packed;
  HM_LAUNCH(each_pack_kernel<kWide>, grid_for_elements(threads), on.stream(), n, packed, f);
  check(cudaGetLastError(), "kernel");
}

// Calls visit(column, lanes) for the columns of a row, spread over the block's threads.
template <int kWide, typename Visit>
__device__ inline void each_column(int64_t width, bool together, Visit visit) {
  if (together)
    for (int64_t c = int64_t{threadIdx.x} * kWide; c < width; c += int64_t{blockDim.x} * kWide)
      visit(c, Lanes<kWide>{});
  else
    for (int64_t c = threadIdx.x; c < width; c += blockDim.x) visit(c, Lanes<1>{});
}

// Calls f with a value of the activation type (bf16 or f32). For other dtypes, f's own access to
// its tensors throws.
template <typename F>
void by_element(Dtype dtype, F f) {
  if (dtype == Dtype::bf16)
    f(Bf16{});
  else
    f(float{});
}

}  // namespace howmany::cuda
