// SPDX-License-Identifier: Apache-2.0
// The filter of core/data/images/transform.h on a GPU. Private to core/backends/cuda.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace howmany::cuda {

// image::Taps, on the GPU.
struct Axis {
  const int32_t *first, *count;
  const float* weights;
  int64_t stride;
};

// Resamples the bytes of an image to out [size,size,3].
struct Resampling {
  const uint8_t* pixels;
  int64_t pitch;  // bytes between rows
  int channels;   // per pixel: 3, or 1, which is used for all three
  Axis across, down;
  int64_t size;
  bool flip;
  float scale[3], shift[3];
};

void resample(const Resampling& r, float* out, int index, cudaStream_t stream);

}  // namespace howmany::cuda
