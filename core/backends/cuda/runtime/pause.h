// For measurements of kernels that take less than the host needs to ask for them: what is asked for
// behind a pause runs without gaps. Private to core/backends/cuda.
#pragma once

#include "core/backends/cuda/runtime/runtime.h"

namespace howmany::cuda {

// Keeps the stream busy for about a millisecond. Kernels have to be loaded before: that may wait
// for the GPU.
void pause(const OnDevice& on);

}  // namespace howmany::cuda
