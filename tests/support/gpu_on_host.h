// Runs the kernels' own text on the host, included before anything else by the compiler's command
// line: a block is kBlock threads that meet at a barrier, and its threads go on to the next one.
// What this proves is the arithmetic, the indices and that threads wait where they must; not that a
// GPU does the same. Beside it stand fake_cuda.cpp and fake_cublaslt.cpp.
#pragma once

#include <cuda_runtime_api.h>
#include <math.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <string_view>
#include <thread>
#include <vector>

#include "core/backends/cuda/grid.h"
#include "tests/support/fake_gpu.h"

#undef __shared__
#define __shared__ static  // of the one block that runs

namespace howmany::testing_support {

// Makes the fake GPUs' memory reachable while it lives; one at a time.
struct OnFakeGpu {
  OnFakeGpu();
  ~OnFakeGpu();
};

inline constexpr unsigned kBlock = 4;       // a power of two, as kernels want
inline constexpr unsigned kMostBlocks = 3;  // a kernel is right for any grid
inline thread_local std::barrier<>* block_barrier = nullptr;

}  // namespace howmany::testing_support

struct FakeIndex {
  unsigned x = 0;
};
inline thread_local FakeIndex threadIdx, blockIdx, blockDim, gridDim;

inline void __syncthreads() { howmany::testing_support::block_barrier->arrive_and_wait(); }
inline float atomicAdd(float* to, float value) { return std::atomic_ref(*to).fetch_add(value); }

namespace howmany::testing_support {

template <typename Body>
void run_thread(unsigned thread, unsigned blocks, std::barrier<>* barrier, const Body& body) {
  block_barrier = barrier;
  threadIdx = {thread};
  blockDim = {kBlock};
  gridDim = {blocks};
  for (unsigned block = 0; block < blocks; ++block) {
    blockIdx = {block};
    body();
  }
}

// Kernels whose threads meet run in as many threads; any other would fall over its null barrier.
constexpr bool meets(std::string_view kernel) { return kernel == "each_row_kernel"; }

template <bool kMeets, typename Body>
void run_kernel(cuda::Grid grid, cudaStream_t stream, const Body& body) {
  hm_fake_gpu_launched();
  const unsigned blocks = std::min(grid.blocks, kMostBlocks);
  hm_fake_gpu_do(stream, [=] {
    const OnFakeGpu on;
    if constexpr (kMeets) {
      std::barrier<> barrier(kBlock);
      std::vector<std::jthread> threads;
      for (unsigned t = 0; t < kBlock; ++t)
        threads.emplace_back([&, t] { run_thread(t, blocks, &barrier, body); });
    } else {
      for (unsigned t = 0; t < kBlock; ++t) run_thread(t, blocks, nullptr, body);
    }
  });
}

}  // namespace howmany::testing_support

#define HM_LAUNCH(kernel, grid, stream, ...)                                          \
  ::howmany::testing_support::run_kernel<::howmany::testing_support::meets(#kernel)>( \
      grid, stream, [=] { kernel(__VA_ARGS__); })
