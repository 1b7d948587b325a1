// SPDX-License-Identifier: Apache-2.0
// The gradient of a bias. Private to core/backends/cuda.
#pragma once

#include "core/backends/backend.h"
#include "core/backends/cuda/runtime/runtime.h"

namespace howmany::cuda {

// Computes dbias [C], f32, from dy [..,C] in f32 or bf16. Does nothing if dbias is absent.
void bias_gradient(const Tensor& dy, GradOut& dbias, const OnDevice& on);

}  // namespace howmany::cuda
