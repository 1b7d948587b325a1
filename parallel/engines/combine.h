// SPDX-License-Identifier: Apache-2.0
// Elementwise reduction of two buffers, for every dtype and ReduceOp.
#pragma once

#include <cstddef>

#include "parallel/comm/comm.h"

namespace howmany {

// out[i] = a[i] op b[i] for i < count; out may be a or b itself.
using Combine = void (*)(void* out, const void* a, const void* b, size_t count);
Combine combine_of(Dtype dtype, ReduceOp op);

}  // namespace howmany
