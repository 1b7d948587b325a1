// What copies between the host's memory and devices take, and between devices. A slice of the CPU's
// cores is a device as well: its memory is what its thread touched first, and it copies by itself.
// What arrived is compared with what was sent, before and after timing (WrongData). Called from the
// main thread, with devices configured.
#pragma once

#include <functional>

#include "benches/common/timing.h"
#include "core/gpu/copies.h"

namespace howmany::benches {

struct HostCopy {
  Device device = {};
  bool to_device = true;
  HostMemory memory = HostMemory::pageable;  // of a CPU's copies always
  // Asked for back to back and told by the GPU's clock; else one, from the call until the host
  // knows that it has arrived.
  bool together = false;
  bool other_way = false;  // with as large copies in the other direction; together only
  int64_t bytes = 0;
};
Samples time_host_copy(const HostCopy& copy, const TimingOptions& options);
// Of a GPU's: copies at each call, and returns the seconds of one.
std::function<double()> copies_of(const HostCopy& copy);

struct DeviceCopy {
  Device from = {}, to = {};  // of one type
  bool through_host = false;  // GPUs: by way of pinned memory, all of it before the second half
  int64_t bytes = 0;
};
Samples time_device_copy(const DeviceCopy& copy, const TimingOptions& options);

// So many copies of `bytes` each to a GPU, from places apart in pinned memory to such there, asked
// for one after the other; from the first call until the host knows that all have arrived.
Samples time_small_copies_to(Device gpu, int64_t bytes, int64_t count,
                             const TimingOptions& options);

// time_host_copy's of pinned memory, together, and a bare loop of cudaMemcpyAsync with events
// around it, in turn. Only where CUDA is built in.
PairedSamples time_against_bare_copies(Device gpu, bool to_device, int64_t bytes, int rounds);

}  // namespace howmany::benches
