// Random numbers that a GPU draws into its own memory.
#pragma once

#include <cstdint>

#include "core/tensor/rng.h"

namespace howmany::gpu {

// Elements 0 .. count-1 become what howmany::fill_uniform() gives on the host, to the bit.
void fill_uniform(float* to, int64_t count, double low, double high, const Rng& rng, int index);

}  // namespace howmany::gpu
