// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/kernels/launch.cuh"
#include "core/gpu/fill.h"

namespace howmany {
namespace cuda {
namespace {

// Rounds as the host does: a GPU would fuse the product and the sum and round once instead of
// twice.
__device__ float between(double low, double width, uint32_t word) {
#ifdef __CUDA_ARCH__
  return static_cast<float>(__dadd_rn(low, __dmul_rn(width, word * 0x1p-32)));
#else
  return static_cast<float>(low + width * (word * 0x1p-32));
#endif
}

// Fills elements 4b to 4b+3 from one block of random bits.
struct Uniform {
  float* to;
  int64_t count;
  double low, width;
  Rng rng;

  __device__ void operator()(int64_t b) const {
    const std::array<uint32_t, 4> words = rng.bits4(static_cast<uint64_t>(b));
    for (int64_t k = 0; k < 4; ++k)
      if (4 * b + k < count) to[4 * b + k] = between(low, width, words[static_cast<size_t>(k)]);
  }
};

}  // namespace
}  // namespace cuda

void gpu::fill_uniform(float* to, int64_t count, double low, double high, const Rng& rng,
                       int index) {
  const cuda::OnDevice on(index);
  cuda::each((count + 3) / 4, on,
             cuda::Uniform{.to = to, .count = count, .low = low, .width = high - low, .rng = rng});
}

}  // namespace howmany
