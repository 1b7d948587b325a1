// SPDX-License-Identifier: Apache-2.0
// Activations on the device, equal to the reference's, in f32. For .cu files, private to
// core/backends/cuda.
#pragma once

#include <cuda_runtime_api.h>
#include <math.h>

#include "core/backends/backend.h"

namespace howmany::cuda {

constexpr float kInvSqrt2 = 0.70710678f, kInvSqrt2Pi = 0.39894228f;

__device__ inline float activate(float x, Activation act) {
  switch (act) {
    case Activation::none:
      return x;
    case Activation::relu:
      return x < 0 ? 0 : x;  // keeps NaN
    case Activation::gelu:
      return 0.5f * x * (1 + erff(x * kInvSqrt2));
    case Activation::tanh:
      return tanhf(x);
  }
  return x;
}

// Returns the derivative. `kept` is x for gelu, else y.
__device__ inline float activation_slope(float kept, Activation act) {
  switch (act) {
    case Activation::none:
      return 1;
    case Activation::relu:
      return kept > 0 ? 1 : 0;
    case Activation::gelu:
      return 0.5f * (1 + erff(kept * kInvSqrt2)) + kept * kInvSqrt2Pi * expf(-0.5f * kept * kept);
    case Activation::tanh:
      return 1 - kept * kept;
  }
  return 1;
}

}  // namespace howmany::cuda
