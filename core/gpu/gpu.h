// SPDX-License-Identifier: Apache-2.0
// GPUs and their memory. The rest of core uses CUDA only through the headers of this folder.
// A build without CUDA links gpu/none.cpp instead: count() is 0 and unavailable() says why.
//
// Ordering. Each GPU has one stream. It runs all work but that of a Stream object, in the order in
//   which the threads of this process enqueue it. If thread A enqueues work and then synchronizes
//   with thread B (lock, join), B's later work runs after it.
// Failure. CUDA errors throw Error.
// Thread safety. Thread-safe.
//
//   if (gpu::count() > 0) Tensor x = Tensor::zeros({2}, Dtype::f32, Device::parse("cuda:0"));
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/tensor/device.h"
#include "core/tensor/dtype.h"
#include "core/tensor/storage.h"

namespace howmany::gpu {

int count();                         // usable GPUs; 0 without a driver. Never throws.
std::string unavailable();           // why count() is 0; empty if it is not
std::string pci_address(int index);  // "0000:1B:00.0"; empty if unknown
std::string name(int index);         // "NVIDIA H100 80GB HBM3"
std::string uuid(int index);         // "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", as in NVML

// Returns memory from the device's pool, for work that is enqueued after the call. The last owner
// does not block: the block is reused only after the work that was enqueued before it goes. Throws
// Error if there is no memory.
std::shared_ptr<void> allocate(int64_t bytes, int index);

// Copies between any two devices. On return `from` may be overwritten if it is host memory, and
// `to` is complete if it is. Between GPUs the copy is only enqueued.
void copy(void* to, Device to_device, const void* from, Device from_device, int64_t bytes);
// Enqueues a copy of `bytes` of each row. A pitch is the distance of two rows in bytes.
struct Rows {
  void* to;
  int64_t to_pitch;
  const void* from;
  int64_t from_pitch, bytes, rows;
};
void copy_rows(const Rows& rows, int index);
void zero(void* to, int index, int64_t bytes);

void synchronize(int index);  // blocks the host until all work that was enqueued is complete
void synchronize_used();      // the same for every GPU that this process has used
MemoryUse memory_use(int index);
void reset_peak_memory(int index);
void release_cached_memory(int index);

// Converts each element as static_cast does. Both buffers are on the device.
void convert(void* to, Dtype to_dtype, const void* from, Dtype from_dtype, int64_t count,
             int index);

}  // namespace howmany::gpu
