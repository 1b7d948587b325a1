// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/runtime/pause.h"

#include "core/backends/cuda/kernels/launch.cuh"

namespace howmany::cuda {
namespace {

constexpr long long kTicks = 2'000'000;

__global__ void pause_kernel() {
  const long long begin = clock64();
  while (clock64() - begin < kTicks) {
  }
}

}  // namespace

void pause(const OnDevice& on) {
  const Grid one{.blocks = 1, .threads = 1};
  HM_LAUNCH(pause_kernel, one, on.stream());
  check(cudaGetLastError(), "kernel");
}

}  // namespace howmany::cuda
