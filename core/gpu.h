// The memory of GPUs as the rest of core needs it, so that nothing else knows CUDA. A build without
// CUDA has gpu_none.cpp in its place: then there are no GPUs, and a word says why. All work of a
// GPU goes through one stream, in the order it was asked for by the threads of the process;
// whatever a thread sees as done by another (a lock, a join) is therefore also before its own work
// there. Thread-safe.
//
//   if (gpu::count() > 0) Tensor x = Tensor::zeros({2}, Dtype::f32, Device::parse("cuda:0"));
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/device.h"
#include "core/storage.h"

namespace howmany::gpu {

int count();                // that this build can use; 0 without a driver. Never throws.
std::string unavailable();  // why count() is 0; empty when it is not

// Of the device's pool, for work asked for from now on; release() returns at once and the block is
// reused only after the work asked for before. allocate() throws Error when there is no more.
void* allocate(int64_t bytes, int index);
void release(void* block, int index) noexcept;

// Between any two devices. `from` may be reused when it returns; a copy to the host has arrived.
void copy(void* to, Device to_device, const void* from, Device from_device, int64_t bytes);
void zero(void* to, int index, int64_t bytes);

void synchronize(int index);  // all that was asked for is done
// The cudaEvent_t of that moment, for streams of libraries that must begin behind what was asked of
// the device until now, and behind nothing later.
std::shared_ptr<void> mark(int index);
MemoryUse memory_use(int index);
void release_cached_memory(int index);

}  // namespace howmany::gpu
