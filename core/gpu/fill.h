// SPDX-License-Identifier: Apache-2.0
// Random numbers that a GPU generates in its own memory.
#pragma once

#include <cstdint>

#include "core/tensor/rng.h"

namespace howmany::gpu {

// Writes `count` elements, bitwise equal to those of howmany::fill_uniform() on the host.
void fill_uniform(float* to, int64_t count, double low, double high, const Rng& rng, int index);

}  // namespace howmany::gpu
