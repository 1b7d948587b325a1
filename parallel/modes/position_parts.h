// SPDX-License-Identifier: Apache-2.0
// Layouts of activations [N,T,K] if ranks divide the positions T. Collectives need the part of each
// rank in one piece: [ranks,N,T/ranks,K]. Copies are on the tensor's device. Thread-safe.
#pragma once

#include "core/tensor/tensor.h"

namespace howmany {

// [N,T,K] -> [ranks,N,T/ranks,K], and back. They copy unless N is 1.
Tensor in_parts(const Tensor& whole, int ranks);
Tensor from_parts(const Tensor& parts);
// Returns a copy of the part [N,T/ranks,K] of one rank.
Tensor part_of(const Tensor& whole, int rank, int ranks);

}  // namespace howmany
