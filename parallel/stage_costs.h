// What the units of a model would take in each of its stages, when these stand on devices of more
// than one type: what balance() divides by.
#pragma once

#include <vector>

#include "core/nn/model.h"
#include "parallel/comm.h"
#include "parallel/placement.h"

namespace howmany {

// The stages that this rank drives, one after the other, of all that there are.
struct MyStages {
  int all = 1, first = 0;
  std::vector<Device> devices = {};
};

// Seconds of each unit for one row, for each stage. A type of device is measured once, by the first
// rank that has one. Where replicas have a stage on different types, the slower counts. The same
// on every rank of `world`, over which it is collective; null: this process drives all stages.
std::vector<UnitCosts> stage_costs(const ModelSpec& model, Dtype dtype, const MyStages& mine,
                                   Comm* world);

}  // namespace howmany
