// The most memory of tensors that devices held at once. Thread-safe.
#pragma once

#include <vector>

#include "core/tensor/device.h"

namespace howmany::benches {

// From now on, of these devices.
void reset_peak_memory(const std::vector<Device>& devices);
// Of one of them, which this process drives: the GPU that held the most, or a CPU slice's even
// share of what was held on the host. Bytes.
double peak_bytes_of_one(const std::vector<Device>& devices);

}  // namespace howmany::benches
