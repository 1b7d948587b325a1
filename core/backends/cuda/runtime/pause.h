// SPDX-License-Identifier: Apache-2.0
// For timing kernels that are shorter than their launch: kernels enqueued behind a pause run
// without gaps. Private to core/backends/cuda.
#pragma once

#include "core/backends/cuda/runtime/runtime.h"

namespace howmany::cuda {

// Keeps the stream busy for about a millisecond. Load the kernels to be timed before, because
// loading may synchronize with the GPU.
void pause(const OnDevice& on);

}  // namespace howmany::cuda
