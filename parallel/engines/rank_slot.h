// SPDX-License-Identifier: Apache-2.0
// The state of one rank of a `local` Comm that its peers read.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/tensor/dtype.h"

namespace howmany {

struct Published {
  const char* send = nullptr;
  char* receive = nullptr;
  // These must be equal on all ranks of the call.
  int64_t bytes = 0;
  Dtype dtype = Dtype::f32;
  int detail = 0;  // root or ReduceOp

  bool fits(const Published& other) const {
    return bytes == other.bytes && dtype == other.dtype && detail == other.detail;
  }
};

// Written by its rank, read by all. Has a cache line of its own.
struct alignas(64) RankSlot {
  std::atomic<uint64_t> arrived{0};  // number of the collective * kOperations + operation
  std::atomic<uint64_t> done{0};     // number of the collective * kOperations
  std::atomic<bool> busy{false};     // accesses peers' buffers
  std::atomic<bool> left{false};
  Published published;
};

// A message that waits for its receiver. The sender's stack frame owns it.
struct PendingMessage {
  int from, to, tag;
  const char* data;
  int64_t bytes;
  Dtype dtype;
  std::atomic<bool> done{false};
};

}  // namespace howmany
