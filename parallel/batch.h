// SPDX-License-Identifier: Apache-2.0
// Checks batches and moves tensors to devices, for modes. Pure functions; thread-safe.
#pragma once

#include "core/data/loader.h"

namespace howmany {

// Throws std::invalid_argument if x and y are not the rows from first_row on of one global batch.
void check_batch(const Batch& batch);
// Returns t on the device. Floats are converted to `dtype`; ids and labels keep theirs.
Tensor placed(const Tensor& t, Dtype dtype, Device device);
// Converts an activation or its gradient to the dtype in which `device` stores activations at the
// thread's precision. Does not move it.
Tensor stored_for(Device device, const Tensor& activation);

}  // namespace howmany
