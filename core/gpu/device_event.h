// SPDX-License-Identifier: Apache-2.0
// A point in time by a device's own clock. On a GPU it is an event: it occurs once the work that
// was enqueued before it completes. On a CPU it is the time of construction.
//
//   const DeviceEvent begin(device);
//   ...
//   DeviceEvent(device).seconds_since(begin);
#pragma once

#include <optional>

#include "core/base/clock.h"
#include "core/gpu/event.h"
#include "core/gpu/gpu.h"

namespace howmany {

class DeviceEvent {
 public:
  explicit DeviceEvent(Device device) {
    if (device.type == DeviceType::cuda) gpu_.emplace(device.index);
  }
  // Requires the same device. Blocks the host until both points have occurred.
  double seconds_since(const DeviceEvent& earlier) const {
    if (gpu_) return gpu_->seconds_since(*earlier.gpu_);
    return std::chrono::duration<double>(host_ - earlier.host_).count();
  }

 private:
  Clock::time_point host_ = Clock::now();
  std::optional<gpu::TimedEvent> gpu_;
};

}  // namespace howmany
