// Carries a GPU's tensors to page-locked memory of the host and back, for engines that work there:
// on a stream of its own, so that neither waits for what else the GPU was asked for since the call
// was made, nor that for the copies. One thread at a time.
#pragma once

#include <map>
#include <memory>

#include "core/gpu/blocks.h"
#include "core/gpu/gpu.h"
#include "core/tensor/tensor.h"

namespace howmany {

class Shuttle {
 public:
  explicit Shuttle(int gpu) : stream_(gpu) {}

  int gpu() const { return stream_.index(); }
  Tensor room(const Shape& shape, Dtype dtype);  // of the host, page-locked
  // Behind `mark` (gpu::mark); these return when all has arrived.
  Tensor to_host(const Tensor& t, const std::shared_ptr<void>& mark);
  void to_gpu(const Tensor& from, Tensor& t, const std::shared_ptr<void>& mark);

 private:
  gpu::Stream stream_;
  std::map<int64_t, std::shared_ptr<Blocks>> blocks_;  // by their size, a power of two
};

}  // namespace howmany
