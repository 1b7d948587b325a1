#include "parallel/shuttle.h"

#include <bit>

namespace howmany {

Tensor Shuttle::room(const Shape& shape, Dtype dtype) {
  const int64_t bytes = shape.numel() * static_cast<int64_t>(size_of(dtype));
  const auto size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(bytes)));
  std::shared_ptr<Blocks>& blocks = blocks_[size];
  if (blocks == nullptr) blocks = Blocks::pinned(gpu(), size);
  return Tensor::over(blocks->take(), shape, dtype, Device{});
}

Tensor Shuttle::to_host(const Tensor& t, const std::shared_ptr<void>& mark) {
  Tensor there = room(t.shape(), t.dtype());
  stream_.wait(mark);
  stream_.copy_out(there.mutable_raw(), t.raw(), t.bytes());
  stream_.finish();
  return there;
}

void Shuttle::to_gpu(const Tensor& from, Tensor& t, const std::shared_ptr<void>& mark) {
  stream_.wait(mark);
  stream_.copy_in(t.mutable_raw(), from.raw(), t.bytes());
  stream_.finish();
}

}  // namespace howmany
