// SPDX-License-Identifier: Apache-2.0
#include "benches/common/peak_memory.h"

#include <algorithm>

#include "core/gpu/gpu.h"
#include "core/tensor/storage.h"

namespace howmany::benches {

void reset_peak_memory(const std::vector<Device>& devices) {
  howmany::reset_peak_memory();
  for (const Device& device : devices)
    if (device.type == DeviceType::cuda) gpu::reset_peak_memory(device.index);
}

double peak_bytes_of_one(const std::vector<Device>& devices, int64_t other) {
  const auto slices = std::ranges::count(devices, DeviceType::cpu, &Device::type);
  double most =
      slices > 0 ? static_cast<double>(memory_use().peak - other) / static_cast<double>(slices) : 0;
  for (const Device& device : devices)
    if (device.type == DeviceType::cuda)
      most = std::max(most, static_cast<double>(gpu::memory_use(device.index).peak));
  return most;
}

}  // namespace howmany::benches
