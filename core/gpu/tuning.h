// SPDX-License-Identifier: Apache-2.0
// The algorithms that were chosen by measurement on the GPUs of this process.
//
// Choice. The position of an algorithm in the list that cuBLASLt or cuDNN proposes for a problem on
//   a kind of GPU. So it holds in every process of a job with the same libraries and GPUs.
// Agreement. Algorithms may differ in the last bit of a sum. The first choice for a problem and a
//   kind of GPU serves all GPUs of this process. use_tuning() makes processes agree.
// Thread safety. Thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace howmany::gpu {

// Returns the choices so far, for use_tuning(). Empty in a build without CUDA.
std::vector<int64_t> tuning();

// Makes the choices those of this process, from the next call of each problem on. They replace its
// own for the same problems. Several lists may be joined: the last choice of a problem counts. A
// choice that is no algorithm here is ignored. Throws
// std::invalid_argument if the list was not made by tuning().
void use_tuning(std::span<const int64_t> choices);

// Returns the libraries that choices depend on, "cuBLASLt 13.0.2, cuDNN 9.19.0". Empty in a build
// without CUDA.
std::string tuning_libraries();

}  // namespace howmany::gpu
