// Memory for the batches of a loader, or for what a Comm carries, the same few blocks over and
// over: page-locked memory of the host, or a GPU's. A block is there again when its last handle is
// gone and, on a GPU, when what had been asked of that until then is done. Handles may outlive
// their maker. Thread-safe.
//
//   auto blocks = Blocks::on_gpu(0, bytes);
//   std::shared_ptr<void> block = blocks->take();
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

namespace howmany {

class Blocks : public std::enable_shared_from_this<Blocks> {
 public:
  // Of so many bytes each, for copies to or on GPU `gpu`. Throws std::invalid_argument when there
  // is no such GPU.
  static std::shared_ptr<Blocks> pinned(int gpu, int64_t bytes);
  static std::shared_ptr<Blocks> on_gpu(int gpu, int64_t bytes);
  ~Blocks();
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  // Whoever holds it may write at once; waits for who read it before. Throws Error when there is no
  // more memory.
  std::shared_ptr<void> take();
  int64_t made() const;  // blocks there are

 private:
  struct Block {
    void* memory = nullptr;
    std::shared_ptr<void> read;  // gpu::mark behind its readers
  };

  Blocks(int gpu, int64_t bytes, bool pinned);
  Block fresh();
  void give(void* memory) noexcept;
  void release(void* memory) const noexcept;

  const int gpu_;
  const int64_t bytes_;
  const bool pinned_;
  mutable std::mutex mutex_;
  std::deque<Block> free_;  // oldest first
  int64_t made_ = 0;
};

}  // namespace howmany
