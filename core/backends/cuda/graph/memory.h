// SPDX-License-Identifier: Apache-2.0
// The memory that one graph allocates. Private to core/backends/cuda.
//
// Why. A launch writes to the addresses of the capture, so no other work may use these blocks
//   between two launches. cudaMallocAsync() in a capture would give the same, but its memory counts
//   neither in the device's pool nor in the peak that users get.
// Reuse. Work that is captured later reuses blocks that were freed during the capture.
// Ownership. Every block shares the ownership of the memory, so a tensor may outlive its graph. The
//   blocks return to the device's pool with the last owner, in stream order after the last launch.
// Thread safety. Thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

namespace howmany::cuda {

class GraphMemory : public std::enable_shared_from_this<GraphMemory> {
 public:
  explicit GraphMemory(int index) : index_(index) {}
  ~GraphMemory();
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;

  // Takes a block from the device's pool if no free one has a similar size.
  std::shared_ptr<void> take(size_t bytes);
  bool holds(const void* block) const;

 private:
  void* block_of(size_t bytes);
  void give(void* block) noexcept;

  const int index_;
  mutable std::mutex mutex_;
  std::map<const void*, size_t> sizes_;  // of all blocks
  std::multimap<size_t, void*> free_;
};

}  // namespace howmany::cuda
