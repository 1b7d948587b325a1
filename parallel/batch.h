// What every mode does with a batch before it trains on it. Pure; any thread.
#pragma once

#include "core/data/loader.h"

namespace howmany {

// Throws std::invalid_argument for x and y that are not the rows [first_row, ...) of one batch.
void check_batch(const Batch& batch);
// On the device; floats in `dtype`, ids and labels as they are.
Tensor placed(const Tensor& t, Dtype dtype, Device device);

}  // namespace howmany
