// SPDX-License-Identifier: Apache-2.0
// A batch on a meta device (core/tensor/meta.h). Pure.
#pragma once

#include "core/data/batch.h"
#include "core/nn/model.h"
#include "parallel/mode.h"

namespace howmany::benches {

// The rows of `share` of a batch of `global_rows`, with the shapes that the model needs.
Batch meta_batch(const ModelSpec& model, int64_t global_rows, Share share, Device device);

}  // namespace howmany::benches
