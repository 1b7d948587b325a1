// The memory that a graph works in, apart from the device's pool, so that nobody else is given it
// between two launches. A capture takes and gives in the order in which a launch will work, so a
// block that was given back serves what is captured later. Thread-safe. Private to
// core/backends/cuda.
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

  // From the device's pool comes a slab, or what one block needs, when nothing here has room.
  void* take(size_t bytes);
  bool give(void* block);  // false: not of here
  bool holds(const void* p) const;
  bool idle() const;    // nothing is taken
  size_t held() const;  // bytes of the pool

 private:
  using Ranges = std::map<char*, size_t>;
  Ranges::iterator room_for(size_t bytes);
  void join_next(Ranges::iterator range);

  const int index_;
  mutable std::mutex mutex_;
  Ranges slabs_, free_, taken_;  // by address
};

// All that there is, so that a tensor may outlive the graph that its memory belongs to: a memory
// goes when it is dropped and nothing of it is taken.
std::shared_ptr<GraphMemory> make_graph_memory(int index);
void drop(const GraphMemory& memory) noexcept;
bool give_to_graph(void* block) noexcept;  // false: of no graph

}  // namespace howmany::cuda
