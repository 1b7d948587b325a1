// SPDX-License-Identifier: Apache-2.0
// Peak tensor memory of devices. Thread-safe.
#pragma once

#include <vector>

#include "core/tensor/device.h"

namespace howmany::benches {

// Restarts the peak of these devices.
void reset_peak_memory(const std::vector<Device>& devices);
// Returns the peak in bytes of one of these devices, which this process must drive: the GPU with
// the highest peak, or a CPU slice's even share of the host's peak, without the `other` bytes that
// are no part of training.
double peak_bytes_of_one(const std::vector<Device>& devices, int64_t other = 0);

}  // namespace howmany::benches
