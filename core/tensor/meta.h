// SPDX-License-Identifier: Apache-2.0
// Meta devices, as torch's device "meta": their tensors have shapes and addresses, but no memory.
// Copies, fills and kernels on them do nothing; elements read from them are 0. Each counts the
// bytes that its tensors would use. Thread-safe.
//
//   reset_meta_peak(0);
//   mode->step(batch);                    // on Device{DeviceType::meta, 0}
//   meta_memory_use(0).peak;              // bytes of the step
#pragma once

#include <cstdint>

#include "core/tensor/storage.h"

namespace howmany {

MemoryUse meta_memory_use(int index);
void reset_meta_peak(int index);

// Of Storage. Addresses are unique and must not be dereferenced.
void* allocate_meta(int64_t bytes, int index);
void release_meta(int64_t bytes, int index);

}  // namespace howmany
