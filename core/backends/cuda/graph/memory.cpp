// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/graph/memory.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "core/backends/cuda/runtime/runtime.h"

namespace howmany::cuda {
namespace {

constexpr size_t kAlignment = 512;  // as cudaMalloc

struct Entry {
  std::shared_ptr<GraphMemory> memory;
  bool dropped = false;
};
struct Registry {
  std::mutex mutex;
  std::vector<Entry> entries;
  std::atomic<size_t> count = 0;
};
// Leaked, as the memory pools are.
Registry& registry() {
  static auto* const all = new Registry;
  return *all;
}

// Removes the entry if it is dropped and idle. The caller destroys the result outside the lock.
std::shared_ptr<GraphMemory> removed(Registry& all, std::vector<Entry>::iterator entry) {
  if (!entry->dropped || !entry->memory->idle()) return nullptr;
  std::shared_ptr<GraphMemory> gone = std::move(entry->memory);
  all.entries.erase(entry);
  all.count = all.entries.size();
  return gone;
}

}  // namespace

std::shared_ptr<GraphMemory> make_graph_memory(int index) {
  Registry& all = registry();
  auto memory = std::make_shared<GraphMemory>(index);
  const std::lock_guard lock(all.mutex);
  all.entries.push_back({memory});
  all.count = all.entries.size();
  return memory;
}

void drop(const GraphMemory& memory) noexcept {
  std::shared_ptr<GraphMemory> gone;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto entry = std::ranges::find(
      all.entries, &memory, [](const Entry& e) -> const GraphMemory* { return e.memory.get(); });
  if (entry == all.entries.end()) return;
  entry->dropped = true;
  gone = removed(all, entry);
}

bool give_to_graph(void* block) noexcept {
  std::shared_ptr<GraphMemory> gone;
  Registry& all = registry();
  if (all.count == 0) return false;
  const std::lock_guard lock(all.mutex);
  const auto entry =
      std::ranges::find_if(all.entries, [&](const Entry& e) { return e.memory->give(block); });
  if (entry == all.entries.end()) return false;
  gone = removed(all, entry);
  return true;
}

GraphMemory::~GraphMemory() {
  for (const auto& [slab, bytes] : slabs_) give_to_pool(slab, index_);
}

void* GraphMemory::take(size_t bytes) {
  const size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const std::lock_guard lock(mutex_);
  const Ranges::iterator room = room_for(size);
  const auto [block, whole] = *room;
  free_.erase(room);
  if (whole > size) free_.emplace(block + size, whole - size);
  taken_.emplace(block, size);
  return block;
}

// Returns the smallest free range that is large enough, or end() if there is none.
GraphMemory::Ranges::iterator GraphMemory::room_for(size_t bytes) {
  auto best = free_.end();
  for (auto range = free_.begin(); range != free_.end(); ++range)
    if (range->second >= bytes && (best == free_.end() || range->second < best->second))
      best = range;
  if (best != free_.end()) return best;
  const size_t size = std::max(bytes, kSlab);
  auto* const slab = static_cast<char*>(take_from_pool(size, index_));
  slabs_.emplace(slab, size);
  return free_.emplace(slab, size).first;
}

bool GraphMemory::give(void* block) {
  const std::lock_guard lock(mutex_);
  const auto found = taken_.find(static_cast<char*>(block));
  if (found == taken_.end()) return false;
  const auto range = free_.insert(*found).first;
  taken_.erase(found);
  join_next(range);
  if (range != free_.begin()) join_next(std::prev(range));
  return true;
}

// Never joins ranges of two slabs, even if their addresses are adjacent.
void GraphMemory::join_next(Ranges::iterator range) {
  const auto next = std::next(range);
  if (next == free_.end() || range->first + range->second != next->first ||
      slabs_.contains(next->first))
    return;
  range->second += next->second;
  free_.erase(next);
}

bool GraphMemory::holds(const void* p) const {
  const auto* const at = static_cast<const char*>(p);
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(
      slabs_, [&](const auto& slab) { return at >= slab.first && at < slab.first + slab.second; });
}

bool GraphMemory::idle() const {
  const std::lock_guard lock(mutex_);
  return taken_.empty();
}

size_t GraphMemory::held() const {
  const std::lock_guard lock(mutex_);
  return std::accumulate(slabs_.begin(), slabs_.end(), size_t{0},
                         [](size_t sum, const auto& slab) { return sum + slab.second; });
}

}  // namespace howmany::cuda
