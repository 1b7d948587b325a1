// SPDX-License-Identifier: Apache-2.0
// Checks batches and moves tensors to devices, for modes. Pure functions; thread-safe.
#pragma once

#include <string_view>

#include "core/data/loader.h"

namespace howmany {

// Throws std::invalid_argument if x and y are not the rows from first_row on of one global batch.
void check_batch(const Batch& batch);
// Throws std::invalid_argument if there are fewer rows than `parts` of the world, such as "ranks".
// All ranks have the same numbers, so all throw before any of them waits for another.
void check_rows(std::string_view mode, int64_t global_rows, int parts, std::string_view what);
// Returns t on the device. Floats are converted to `dtype`; ids and labels keep theirs.
Tensor placed(const Tensor& t, Dtype dtype, Device device);
// Converts an activation or its gradient to the dtype in which `device` stores activations at the
// thread's precision. Does not move it.
Tensor stored_for(Device device, const Tensor& activation);

}  // namespace howmany
