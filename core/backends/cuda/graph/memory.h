// SPDX-License-Identifier: Apache-2.0
// The memory of one graph. It is separate from the device's pool, so that no other work uses it
// between two launches. A capture allocates and frees in the order of a launch, so work that is
// captured later may reuse a freed block. Thread-safe. Private to core/backends/cuda.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

namespace howmany::cuda {

class GraphMemory {
 public:
  static constexpr size_t kSlab = size_t{2} << 20;

  explicit GraphMemory(int index) : index_(index) {}
  ~GraphMemory();
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;

  // If no free range fits, takes a slab from the device's pool, or more if the block needs more.
  void* take(size_t bytes);
  bool give(void* block);  // returns false if the block is not from here
  bool holds(const void* p) const;
  bool idle() const;    // true if no block is taken
  size_t held() const;  // bytes from the pool

 private:
  using Ranges = std::map<char*, size_t>;
  Ranges::iterator room_for(size_t bytes);
  void join_next(Ranges::iterator range);

  const int index_;
  mutable std::mutex mutex_;
  Ranges slabs_, free_, taken_;  // by address
};

// A registry keeps every graph memory, so that a tensor may outlive its graph. A memory is freed
// once it has been dropped and is idle.
std::shared_ptr<GraphMemory> make_graph_memory(int index);
void drop(const GraphMemory& memory) noexcept;
bool give_to_graph(void* block) noexcept;  // returns false if the block is from no graph memory

}  // namespace howmany::cuda
