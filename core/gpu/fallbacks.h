// SPDX-License-Identifier: Apache-2.0
// Which engine of cuDNN computes the operations of this process, and which have none. Kernels of
// howmany, which are several times slower, compute those. Thread-safe.
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

struct EngineChoice {
  std::string what;    // as in Fallback
  std::string engine;  // "engine 12, the fastest of 7"
};
// One for each operation, precision and GPU, in the order in which they were met. Empty in a build
// without cuDNN.
std::vector<EngineChoice> engines();

}  // namespace howmany::gpu
