// SPDX-License-Identifier: Apache-2.0
// Converts the samples of a dataset to those that a model takes, one sample at a time:
//   x: u8 is divided by 255, as torchvision's ToTensor does. Other numbers keep their value.
//      [C,H,W] becomes [H,W,C]. Samples of as many elements in another shape are flattened, or get
//      or lose an extent of 1.
//   y: integers become i64 or f32. f64 becomes f32. Extents of 1 are left out.
#pragma once

#include "core/data/dataset.h"

namespace howmany {

// Returns `data` itself if its samples are `wanted` ones already or cannot be converted. Else
// describe() ends in the changes:
//   "..., x u8 [3,32,32] to f32 [32,32,3]: divided by 255, channels last"
DatasetPtr fit_samples(DatasetPtr data, const SampleSpec& wanted);

}  // namespace howmany
