// What modes do with batches, and with activations of other devices, before they train on them.
// Pure; any thread.
#pragma once

#include "core/data/loader.h"

namespace howmany {

// Throws std::invalid_argument for x and y that are not the rows [first_row, ...) of one batch.
void check_batch(const Batch& batch);
// On the device; floats in `dtype`, ids and labels as they are.
Tensor placed(const Tensor& t, Dtype dtype, Device device);
// An activation, or the gradient of one, as `device` stores it in the thread's precision, whoever
// computed it; where it is.
Tensor stored_for(Device device, const Tensor& activation);

}  // namespace howmany
