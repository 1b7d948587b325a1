// SPDX-License-Identifier: Apache-2.0
// Timed copies of benches: their data and their times.
#include "core/gpu/copies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/base/error.h"
#include "core/gpu/gpu.h"
#include "core/tensor/tensor.h"

namespace howmany::gpu {
namespace {

constexpr int64_t kBytes = 1000;
const std::vector<HostMemory> kMemories = {
#define X(name, what) HostMemory::name,
    HM_HOST_MEMORIES(X)
#undef X
};

Device gpu_device(int index) { return {DeviceType::cuda, index}; }

// Data on GPU `index`.
class There {
 public:
  explicit There(int index)
      : tensor_(Tensor::zeros({kBytes}, Dtype::u8, gpu_device(index))), device_(gpu_device(index)) {
    synchronize(index);
  }
  Copy to_here(const HostBlock& host) {
    return {tensor_.mutable_raw(), device_, host.data(), Device{}, kBytes};
  }
  Copy from_here(const HostBlock& host) {
    return {host.data(), Device{}, tensor_.raw(), device_, kBytes};
  }
  Copy from_here(There& other) {
    return {other.tensor_.mutable_raw(), other.device_, tensor_.raw(), device_, kBytes};
  }

 private:
  Tensor tensor_;
  Device device_;
};

bool all_are(const HostBlock& block, int value) {
  const auto* const bytes = static_cast<const uint8_t*>(block.data());
  return std::all_of(bytes, bytes + kBytes, [=](uint8_t b) { return b == value; });
}

class GpuCopies : public ::testing::Test {
 protected:
  void SetUp() override { need(1); }
  static void need(int gpus) {
    if (count() < gpus) GTEST_SKIP() << count() << " GPUs are here";
  }
};

TEST_F(GpuCopies, WorkFromEveryKindOfMemory) {
  Copier copier(0);
  int value = 1;
  for (const HostMemory kind : kMemories) {
    There there(0);
    const HostBlock from(kind, kBytes, 0), back(kind, kBytes, 0);
    std::memset(from.data(), ++value, kBytes);
    copier.copy(there.to_here(from));
    EXPECT_GT(copier.seconds_alone(there.from_here(back)), 0);
    EXPECT_TRUE(all_are(back, value)) << name_of(kind);
  }
}

TEST_F(GpuCopies, OfPinnedMemoryAreTimedByTheGpu) {
  Copier copier(0);
  for (const HostMemory kind : {HostMemory::pinned, HostMemory::registered}) {
    There there(0), other(0);
    const HostBlock from(kind, kBytes, 0), back(kind, kBytes, 0);
    std::memset(from.data(), 7, kBytes);
    std::memset(back.data(), 0, kBytes);
    EXPECT_GT(copier.seconds_together(there.to_here(from), 16), 0);
    const Copy beside = there.from_here(back);
    EXPECT_GT(copier.seconds_together(other.to_here(from), 4, &beside), 0);
    EXPECT_TRUE(all_are(back, 7)) << name_of(kind);
  }
}

TEST_F(GpuCopies, WorkBetweenAndWithinGpus) {
  need(3);
  if (IsSkipped()) return;
  Copier copier(2);
  There first(1), second(2), third(2);
  const HostBlock host(HostMemory::pinned, kBytes, 2);
  std::memset(host.data(), 9, kBytes);
  copier.copy(first.to_here(host));
  EXPECT_GT(copier.seconds_together(first.from_here(second), 3), 0);
  EXPECT_GT(copier.seconds_together(second.from_here(third), 3), 0);
  std::memset(host.data(), 0, kBytes);
  copier.copy(third.from_here(host));
  EXPECT_TRUE(all_are(host, 9));
}

TEST_F(GpuCopies, ContinueAfterARefusedCopy) {
  Copier copier(0);
  There there(0);
  const HostBlock host(HostMemory::pinned, kBytes, 0);
  Copy wrong = there.to_here(host);
  wrong.from = nullptr;
  EXPECT_THROW(copier.seconds_together(wrong, 2), Error);
  EXPECT_GT(copier.seconds_together(there.to_here(host), 2), 0);
}

}  // namespace
}  // namespace howmany::gpu
