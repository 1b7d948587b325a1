// SPDX-License-Identifier: Apache-2.0
// The operations of this process for which cuDNN has no engine. Kernels of howmany, which are
// several times slower, compute them instead. Thread-safe.
#pragma once

#include <string>
#include <vector>

namespace howmany::gpu {

struct Fallback {
  std::string what;  // "backward_data of a convolution, [64,56,56,64] to 128 channels"
  std::string why;   // "no engine"
};
// Each operation once, in the order in which they were met. Empty in a build without CUDA.
std::vector<Fallback> fallbacks();

}  // namespace howmany::gpu
