// SPDX-License-Identifier: Apache-2.0
// Measures copies between host memory and devices, and between devices. A slice of the CPU's cores
// is a device too: its memory is what its thread touched first, and that thread makes the copies.
// The received data are checked before and after timing (WrongData). Call from the main thread,
// with devices configured.
#pragma once

#include "benches/common/timing.h"
#include "core/gpu/copies.h"

namespace howmany::benches {

struct HostCopy {
  Device device = {};
  bool to_device = true;
  HostMemory memory = HostMemory::pageable;  // always, if the device is a CPU
  // True: copies are submitted back to back and timed by the GPU's clock. False: one copy, from the
  // call until the host knows that it is complete.
  bool together = false;
  bool other_way = false;  // concurrent equal copies in the other direction; together only
  int64_t bytes = 0;
};
Samples time_host_copy(const HostCopy& copy, const TimingOptions& options);
struct DeviceCopy {
  Device from = {}, to = {};  // of equal type
  bool through_host = false;  // GPUs: all to pinned memory, then all to the other GPU
  int64_t bytes = 0;
};
Samples time_device_copy(const DeviceCopy& copy, const TimingOptions& options);

// Makes `count` consecutive copies of `bytes` each from pinned memory to a GPU, between
// non-contiguous places. The time is from the first call until the host knows that all are
// complete.
Samples time_small_copies_to(Device gpu, int64_t bytes, int64_t count,
                             const TimingOptions& options);

}  // namespace howmany::benches
