// SPDX-License-Identifier: Apache-2.0
// Compiles the kernels' source for the host. The compiler's command line includes it first. See
// fake_cuda.cpp and fake_cublaslt.cpp.
//
// Blocks. A block has kBlock threads. Each runs until it waits for the others. Blocks run one after
//   the other on the same threads.
// Scope. This tests arithmetic, indices and synchronization. It does not prove that a GPU computes
//   the same.
#pragma once

#include <cuda_runtime_api.h>
#include <math.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string_view>

#include "core/backends/cuda/kernels/grid.h"
#include "tests/fakes/fake_gpu.h"

#define HM_UNROLL
#undef __shared__
#define __shared__ static  // for the only running block

namespace howmany::testing_support {

// Makes the fake GPUs' memory accessible during its lifetime; one at a time.
struct OnFakeGpu {
  OnFakeGpu();
  ~OnFakeGpu();
};

inline constexpr unsigned kBlock = 4;      // a power of two, as kernels require
inline constexpr unsigned kMaxBlocks = 3;  // kernels are correct for any grid

}  // namespace howmany::testing_support

struct FakeIndex {
  unsigned x = 0;
};
inline thread_local FakeIndex threadIdx, blockIdx, blockDim, gridDim;

namespace howmany::testing_support {

// The threads of a block, interleaved on this thread. So a missing __syncthreads() always reads
// data that other threads have not written yet.
class Block {
 public:
  explicit Block(const std::function<void()>& body) : body_(body) {
    for (Thread& thread : threads_) {
      getcontext(&thread.context);
      thread.context.uc_stack = {thread.stack.get(), 0, kStack};
      thread.context.uc_link = &caller_;
      makecontext(
          &thread.context, [] { running_->body_(), running_->ended_++; }, 0);
    }
  }

  void run() {
    running_ = this;
    while (ended_ == 0)
      for (now_ = 0; now_ < kBlock; ++now_) {
        if (ended_ > 0 && ended_ < now_) fail();
        threadIdx = {now_};
        swapcontext(&caller_, &threads_[now_].context);
      }
    if (ended_ < kBlock) fail();
    running_ = nullptr;
  }

  static void meet() {
    if (running_ == nullptr) fail();
    swapcontext(&running_->threads_[running_->now_].context, &running_->caller_);
  }

 private:
  static constexpr size_t kStack = 64 << 10;
  struct Thread {
    ucontext_t context;
    std::unique_ptr<char[]> stack = std::make_unique_for_overwrite<char[]>(kStack);
  };

  [[noreturn]] static void fail() {
    std::fputs("a thread waits for others of its block that have ended or do not wait\n", stderr);
    std::abort();
  }

  static inline thread_local Block* running_ = nullptr;

  const std::function<void()>& body_;
  ucontext_t caller_;
  std::array<Thread, kBlock> threads_;
  unsigned now_ = 0, ended_ = 0;
};

}  // namespace howmany::testing_support

inline long long clock64() {
  static thread_local long long now = 0;
  return now += 1 << 20;
}
inline void __syncthreads() { howmany::testing_support::Block::meet(); }
inline float atomicAdd(float* to, float value) { return std::atomic_ref(*to).fetch_add(value); }

namespace howmany::testing_support {

// Returns true for kernels whose threads synchronize. Threads of other kernels run sequentially.
constexpr bool meets(std::string_view kernel) { return kernel == "each_row_kernel"; }

template <bool kMeets, typename Body>
void run_block(const Body& body) {
  if constexpr (kMeets) {
    const std::function<void()> thread = body;
    Block(thread).run();
  } else {
    for (threadIdx = {0}; threadIdx.x < kBlock; ++threadIdx.x) body();
  }
}

template <bool kMeets, typename Body>
void run_kernel(cuda::Grid grid, cudaStream_t stream, const Body& body) {
  if (hm_fake_gpu_launched(stream) != cudaSuccess) return;
  const unsigned blocks = std::min(grid.blocks, kMaxBlocks);
  hm_fake_gpu_do(stream, [=] {
    const OnFakeGpu on;
    blockDim = {kBlock};
    gridDim = {blocks};
    for (blockIdx = {0}; blockIdx.x < blocks; ++blockIdx.x) run_block<kMeets>(body);
  });
}

}  // namespace howmany::testing_support

#define HM_LAUNCH(kernel, grid, stream, ...)                                          \
  ::howmany::testing_support::run_kernel<::howmany::testing_support::meets(#kernel)>( \
      grid, stream, [=] { kernel(__VA_ARGS__); })
