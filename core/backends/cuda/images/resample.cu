// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/images/resample.h"
#include "core/backends/cuda/kernels/launch.cuh"

namespace howmany::cuda {

// Sums in the order of image::Resampler::run: vertically first, then horizontally.
void resample(const Resampling& r, float* out, int index, cudaStream_t stream) {
  const OnDevice on(index, stream);
  const Divisor by_size(r.size);
  each(r.size * r.size, on, [=] __device__(int64_t i) {
    const int64_t row = by_size(i),
                  column = r.flip ? r.size - 1 - by_size.rest(i) : by_size.rest(i);
    const float* const across = r.across.weights + column * r.across.stride;
    const float* const down = r.down.weights + row * r.down.stride;
    const int64_t red = 0, green = r.channels == 3 ? 1 : 0, blue = r.channels == 3 ? 2 : 0;
    float sums[3] = {0, 0, 0};
    for (int32_t k = 0; k < r.across.count[column]; ++k) {
      const uint8_t* at =
          r.pixels + r.down.first[row] * r.pitch + int64_t{r.across.first[column] + k} * r.channels;
      float line[3] = {0, 0, 0};
      for (int32_t l = 0; l < r.down.count[row]; ++l, at += r.pitch) {
        line[0] += down[l] * static_cast<float>(at[red]);
        line[1] += down[l] * static_cast<float>(at[green]);
        line[2] += down[l] * static_cast<float>(at[blue]);
      }
      for (int c = 0; c < 3; ++c) sums[c] += across[k] * line[c];
    }
    for (int c = 0; c < 3; ++c) out[3 * i + c] = sums[c] * r.scale[c] + r.shift[c];
  });
}

}  // namespace howmany::cuda
