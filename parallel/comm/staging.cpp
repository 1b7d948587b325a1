// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/staging.h"
#include "core/gpu/event.h"

#include <bit>

namespace howmany {
namespace {

bool is_gpu(Device device) { return device.type == DeviceType::cuda; }

// Allocation and copies may wait for the device, which may wait for calls in flight, and those
// complete only if something polls them.
void complete_calls_in_flight(CommEngine& engine) {
  if (is_gpu(engine.native_device())) engine.finish();
}

// The copy or the allocation was submitted after the call was made.
Tensor with_new_start_event(CommEngine& engine, Tensor t) {
  const Device native = engine.native_device();
  if (is_gpu(native)) engine.set_start_event(gpu::record_event(native.index));
  return t;
}

}  // namespace

Tensor HostStaging::allocate(const Shape& shape, Dtype dtype) {
  const int64_t bytes = shape.numel() * static_cast<int64_t>(size_of(dtype));
  const auto size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(bytes)));
  std::shared_ptr<Blocks>& blocks = blocks_[size];
  if (blocks == nullptr) blocks = Blocks::pinned(gpu(), size);
  return Tensor::over(blocks->take(), shape, dtype, Device{});
}

Tensor HostStaging::to_host(const Tensor& t, const std::shared_ptr<void>& event) {
  Tensor staged = allocate(t.shape(), t.dtype());
  stream_.wait(event);
  stream_.copy_out(staged.mutable_raw(), t.raw(), t.bytes());
  stream_.finish();
  return staged;
}

void HostStaging::to_gpu(const Tensor& from, Tensor& t, const std::shared_ptr<void>& event) {
  stream_.wait(event);
  stream_.copy_in(t.mutable_raw(), from.raw(), t.bytes());
  stream_.finish();
}

std::shared_ptr<void> staging_event(const CommEngine& engine, const Tensor& t) {
  if (!t || !is_gpu(t.device()) || is_gpu(engine.native_device())) return nullptr;
  return gpu::record_event(t.device().index);
}

bool is_native(const CommEngine& engine, const Tensor& t) {
  const Device native = engine.native_device();
  return is_gpu(native) ? t.device() == native : !is_gpu(t.device());
}

Tensor stage_in(CommEngine& engine, const Tensor& t, const std::shared_ptr<void>& event) {
  if (event) return engine.host_staging(t.device().index).to_host(t, event);
  complete_calls_in_flight(engine);
  return with_new_start_event(engine, t.to(engine.native_device()));
}

Tensor allocate_staging(CommEngine& engine, const Tensor& t, const std::shared_ptr<void>& event) {
  if (event) return engine.host_staging(t.device().index).allocate(t.shape(), t.dtype());
  complete_calls_in_flight(engine);
  return with_new_start_event(engine, Tensor::empty(t.shape(), t.dtype(), engine.native_device()));
}

void stage_out(CommEngine& engine, const Tensor& staged, Tensor& t,
               const std::shared_ptr<void>& event) {
  if (event) return engine.host_staging(t.device().index).to_gpu(staged, t, event);
  engine.finish();
  t.copy_from(staged);
}

}  // namespace howmany
