// SPDX-License-Identifier: Apache-2.0
#include "benches/transfer/device_copies.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "benches/common/verify.h"
#include "benches/transfer/copies.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/gpu/gpu.h"
#include "core/gpu/stream.h"
#include "core/host/copy.h"

namespace howmany::benches {
namespace {

constexpr int64_t kTogetherBytes = 256 << 20;  // total bytes submitted at once
constexpr int kMinTogether = 4;
constexpr int kMaxTogether = 64;  // maximum number of copies: a GPU's queue is limited

int how_many(int64_t bytes) {
  return static_cast<int>(std::clamp<int64_t>(kTogetherBytes / bytes, kMinTogether, kMaxTogether));
}

bool is_gpu(Device device) { return device.type == DeviceType::cuda; }

// Allocates memory that a thread of the device touches first, so that it is on the nearest node.
Tensor memory_of(Device device, int64_t bytes) {
  const DeviceScope on(device);
  Tensor t = Tensor::zeros({bytes}, Dtype::u8, device);
  if (is_gpu(device)) gpu::synchronize(device.index);
  return t;
}

// Samples once() until the estimate is good. Calls look() to check the data before and after.
Samples checked(const TimingOptions& options, const std::function<double()>& once,
                const std::function<void()>& look) {
  once();
  look();
  Samples samples = sample(options, once);
  look();
  return samples;
}

double seconds_of_copy(void* to, const void* from, int64_t bytes) {
  const Clock::time_point start = Clock::now();
  copy_host(to, from, static_cast<size_t>(bytes));
  return seconds_since(start);
}

// Copies between host buffers on the device's own thread.
Samples time_cpu_copy(Device device, Tensor& from, Tensor& to, const TimingOptions& options) {
  fill_pattern(from.mutable_raw(), from.bytes());
  const DeviceScope on(device);
  return checked(
      options, [&] { return seconds_of_copy(to.mutable_raw(), from.raw(), from.bytes()); },
      [&] {
        check_pattern(to.raw(), to.bytes(), "copy between memories of the host");
        std::ranges::fill(to.mutable_values<uint8_t>(), 255);
      });
}

// One direction between a GPU and a host block, driven from the nearest cores, with access to the
// received data.
class GpuEnds {
 public:
  explicit GpuEnds(const HostCopy& c)
      : c_(c),
        near_(c.device),
        copier_(c.device.index),
        host_(c.memory, c.bytes, c.device.index),
        seen_(HostMemory::pinned, c.bytes, c.device.index),
        there_(memory_of(c.device, c.bytes)) {
    fill_pattern(c.to_device ? host_.data() : seen_.data(), c.bytes);
    if (!c.to_device) copier_.copy(to_gpu(seen_));
    if (c.other_way) {
      other_there_.emplace(memory_of(c.device, c.bytes));
      other_host_.emplace(HostMemory::pinned, c.bytes, c.device.index);
    }
  }

  double once() {
    const gpu::Copy copy = c_.to_device ? to_gpu(host_) : to_host(host_);
    if (!c_.together) return copier_.seconds_alone(copy);
    if (!c_.other_way) return copier_.seconds_together(copy, how_many(c_.bytes));
    const gpu::Copy beside = other();
    return copier_.seconds_together(copy, how_many(c_.bytes), &beside);
  }
  void look() {
    if (c_.to_device) copier_.copy(to_host(seen_));
    check_pattern(c_.to_device ? seen_.data() : host_.data(), c_.bytes, "copy of a GPU");
    std::fill_n(static_cast<uint8_t*>(c_.to_device ? seen_.data() : host_.data()), c_.bytes, 255);
    if (c_.to_device) copier_.copy(to_gpu(seen_));
  }

 private:
  gpu::Copy to_gpu(const gpu::HostBlock& from) {
    return {there_.mutable_raw(), c_.device, from.data(), Device{}, c_.bytes};
  }
  gpu::Copy to_host(const gpu::HostBlock& to) const {
    return {to.data(), Device{}, there_.raw(), c_.device, c_.bytes};
  }
  gpu::Copy other() {
    if (c_.to_device)
      return {other_host_->data(), Device{}, other_there_->raw(), c_.device, c_.bytes};
    return {other_there_->mutable_raw(), c_.device, other_host_->data(), Device{}, c_.bytes};
  }

  const HostCopy c_;
  const DeviceScope near_;
  gpu::Copier copier_;
  gpu::HostBlock host_, seen_;
  Tensor there_;
  std::optional<Tensor> other_there_;
  std::optional<gpu::HostBlock> other_host_;
};

class BetweenGpus {
 public:
  explicit BetweenGpus(const DeviceCopy& c)
      : c_(c),
        near_(c.to),
        copier_(c.to.index),
        from_copier_(c.from.index),
        host_(HostMemory::pinned, c.bytes, c.to.index),
        from_(memory_of(c.from, c.bytes)),
        to_(memory_of(c.to, c.bytes)) {
    fill_pattern(host_.data(), c.bytes);
    from_copier_.copy({from_.mutable_raw(), c.from, host_.data(), Device{}, c.bytes});
  }

  double once() {
    if (!c_.through_host)
      return copier_.seconds_together({to_.mutable_raw(), c_.to, from_.raw(), c_.from, c_.bytes},
                                      times());
    return from_copier_.seconds_alone({host_.data(), Device{}, from_.raw(), c_.from, c_.bytes}) +
           copier_.seconds_alone({to_.mutable_raw(), c_.to, host_.data(), Device{}, c_.bytes});
  }
  void look() {
    copier_.copy({host_.data(), Device{}, to_.raw(), c_.to, c_.bytes});
    check_pattern(host_.data(), c_.bytes, "copy between GPUs");
    std::fill_n(static_cast<uint8_t*>(host_.data()), c_.bytes, 255);
    copier_.copy({to_.mutable_raw(), c_.to, host_.data(), Device{}, c_.bytes});
  }

 private:
  // The driver stages a copy that neither GPU can make directly. It then enqueues many operations
  // for each, and blocks the host if its queue is full.
  int times() const {
    return gpu::can_reach(c_.from.index, c_.to.index) ? how_many(c_.bytes) : kMinTogether;
  }

  const DeviceCopy c_;
  const DeviceScope near_;
  // Each copier belongs to the device whose link it uses.
  gpu::Copier copier_, from_copier_;
  gpu::HostBlock host_;
  Tensor from_, to_;
};

}  // namespace

Samples time_host_copy(const HostCopy& c, const TimingOptions& options) {
  if (is_gpu(c.device)) {
    GpuEnds ends(c);
    return checked(
        options, [&] { return ends.once(); }, [&] { ends.look(); });
  }
  Tensor host = memory_of(Device{}, c.bytes), there = memory_of(c.device, c.bytes);
  return c.to_device ? time_cpu_copy(c.device, host, there, options)
                     : time_cpu_copy(c.device, there, host, options);
}

Samples time_device_copy(const DeviceCopy& c, const TimingOptions& options) {
  HM_REQUIRE(c.from.type == c.to.type, "[transfer] {} and {} are not alike", c.from.str(),
             c.to.str());
  if (is_gpu(c.from)) {
    BetweenGpus ends(c);
    return checked(
        options, [&] { return ends.once(); }, [&] { ends.look(); });
  }
  Tensor from = memory_of(c.from, c.bytes), to = memory_of(c.to, c.bytes);
  return time_cpu_copy(c.to, from, to, options);
}

Samples time_small_copies_to(Device device, int64_t bytes, int64_t count,
                             const TimingOptions& options) {
  const DeviceScope near(device);
  const int64_t all = 2 * bytes * count;  // every second place, so that no two copies are adjacent
  const gpu::HostBlock from(HostMemory::pinned, all, device.index),
      seen(HostMemory::pinned, all, device.index);
  Tensor there = memory_of(device, all);
  fill_pattern(from.data(), all);
  gpu::Stream stream(device.index);
  gpu::Copier copier(device.index);
  auto* const to = static_cast<char*>(there.mutable_raw());
  const auto* const source = static_cast<const char*>(from.data());
  const auto once = [&] {
    const Clock::time_point start = Clock::now();
    for (int64_t at = 0; at < all; at += 2 * bytes) stream.copy_in(to + at, source + at, bytes);
    stream.synchronize();
    return seconds_since(start);
  };
  return checked(options, once, [&] {
    copier.copy({seen.data(), Device{}, there.raw(), device, all});
    const auto* const bytes_seen = static_cast<const uint8_t*>(seen.data());
    const auto* const sent = static_cast<const uint8_t*>(from.data());
    for (int64_t i = 0; i < all; ++i) {
      const int expected = i / bytes % 2 == 0 ? sent[i] : 0;
      if (bytes_seen[i] == expected) continue;
      throw WrongData(fmt::format("wrong data: small copies to {}: byte {}: {} instead of {}",
                                  device.str(), i, bytes_seen[i], expected));
    }
  });
}

}  // namespace howmany::benches
