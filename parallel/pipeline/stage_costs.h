// SPDX-License-Identifier: Apache-2.0
// The costs of a model's units in each pipeline stage, for balance(). Stages may be on devices of
// different types.
#pragma once

#include <vector>

#include "core/nn/model.h"
#include "parallel/comm/comm.h"
#include "parallel/pipeline/placement.h"

namespace howmany {

// This rank drives the stages [first, first + devices.size()) of `all`.
struct MyStages {
  int all = 1, first = 0;
  std::vector<Device> devices = {};
  double flop_per_byte = kCpuFlopPerByte;  // see MeasureUnits
};

// Returns, for each stage, the seconds of each unit for one row. The first rank with a device of a
// type measures that type. If replicas have a stage on different types, the slower type counts.
// Collective over `world`; the result is equal on all ranks. `world` is null if this process drives
// all stages.
std::vector<UnitCosts> stage_costs(const ModelSpec& model, Dtype dtype, const MyStages& mine,
                                   Comm* world);

}  // namespace howmany
