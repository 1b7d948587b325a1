// SPDX-License-Identifier: Apache-2.0
// Meta devices (core/tensor/meta.h) and a batch on one. Pure.
#pragma once

#include <vector>

#include "core/data/batch.h"
#include "core/nn/model.h"
#include "parallel/modes/mode.h"

namespace howmany::benches {

std::vector<Device> meta_devices(int first, int count);
// Returns the rows of `share` of a batch of `global_rows`, with the shapes that the model needs.
Batch meta_batch(const ModelSpec& model, int64_t global_rows, Share share, Device device);

}  // namespace howmany::benches
