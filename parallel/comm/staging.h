// SPDX-License-Identifier: Apache-2.0
// Host staging: copies of GPU tensors in pinned host memory, for engines that work on the host, and
// copies on the engine's native device in general. One thread at a time per engine.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "core/gpu/blocks.h"
#include "core/gpu/event.h"
#include "core/gpu/gpu.h"
#include "core/gpu/stream.h"
#include "core/tensor/tensor.h"
#include "parallel/comm/engine.h"

namespace howmany {

// Pinned staging buffers of one GPU, and a stream of its own for the copies, which therefore do not
// wait for work that is submitted to the GPU after `event`, nor that work for the copies.
class HostStaging {
 public:
  explicit HostStaging(int gpu) : stream_(gpu) {}

  int gpu() const { return stream_.index(); }
  Tensor allocate(const Shape& shape, Dtype dtype);
  // These start after `event` (gpu::record_event) and block until the copy completes.
  Tensor to_host(const Tensor& t, const std::shared_ptr<void>& event);
  void to_gpu(const Tensor& from, Tensor& t, const std::shared_ptr<void>& event);

 private:
  gpu::Stream stream_;
  std::map<int64_t, std::shared_ptr<Blocks>> blocks_;  // by size, a power of two
};

// Returns an event that is recorded now if the engine works on the host and t is on a GPU, else
// null.
std::shared_ptr<void> staging_event(const CommEngine& engine, const Tensor& t);

// A tensor of a call and its staging event. Work that is submitted to its GPU after the call was
// made does not affect the call. T is `Tensor`, or `const Tensor&` in a blocking call.
template <typename T>
struct Operand {
  Operand(const CommEngine& engine, T tensor)
      : t(std::forward<T>(tensor)), event(staging_event(engine, t)) {}
  T t;
  std::shared_ptr<void> event;
};

// Returns true if t is on the engine's native device; for the CPU, on any cores.
bool is_native(const CommEngine& engine, const Tensor& t);
// Returns a copy of t on the native device. The next call starts after the copy. Blocks until calls
// in flight complete.
Tensor stage_in(CommEngine& engine, const Tensor& t, const std::shared_ptr<void>& event);
// Same, without the contents.
Tensor allocate_staging(CommEngine& engine, const Tensor& t, const std::shared_ptr<void>& event);
// Copies from `staged` to t.
void stage_out(CommEngine& engine, const Tensor& staged, Tensor& t,
               const std::shared_ptr<void>& event);

}  // namespace howmany
