// Now, by a device's own clock: on a GPU, when all is done that was asked of it before.
//
//   const DeviceMoment begin(device);
//   ...
//   DeviceMoment(device).seconds_since(begin);
#pragma once

#include <optional>

#include "core/base/clock.h"
#include "core/gpu/gpu.h"

namespace howmany {

class DeviceMoment {
 public:
  explicit DeviceMoment(Device device) {
    if (device.type == DeviceType::cuda) gpu_.emplace(device.index);
  }
  // Of the same device. Waits until both are over.
  double seconds_since(const DeviceMoment& earlier) const {
    if (gpu_) return gpu_->seconds_since(*earlier.gpu_);
    return std::chrono::duration<double>(host_ - earlier.host_).count();
  }

 private:
  Clock::time_point host_ = Clock::now();
  std::optional<gpu::Moment> gpu_;
};

}  // namespace howmany
