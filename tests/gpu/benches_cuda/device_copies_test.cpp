// SPDX-License-Identifier: Apache-2.0
// transfer_bench's copies to and from imitated GPUs.
#include "benches/transfer/device_copies.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "benches/common/timing.h"
#include "benches/transfer/cases.h"
#include "core/gpu/gpu.h"
#include "tests/fakes/fake_gpu.h"

namespace howmany::benches {
namespace {

constexpr TimingOptions kFew{.budget_seconds = 60, .max_iterations = 6};

Device gpu_device(int index) { return {DeviceType::cuda, index}; }

bool all_positive(const Samples& samples) {
  return samples.seconds.size() >= 5 && std::ranges::min(samples.seconds) > 0;
}

// Runs every case of two GPUs once. Each case checks its data.
TEST(DeviceCopies, WorkInEveryCase) {
  std::map<std::string, int> kinds;
  for (const TransferCase& c : transfer_cases({.min_bytes = 1 << 20,
                               .max_bytes = 1 << 20,
                               .devices = {gpu_device(1), gpu_device(0)},
                               .models = {"simple_net"}})) {
    if (c.name.find("cuda") == std::string::npos) continue;
    EXPECT_EQ(c.skipped, "") << c.name;
    const Samples samples = c.measure(kFew);
    EXPECT_TRUE(all_positive(samples)) << c.name;
    ++kinds[c.parameters.at("kind")];
  }
  const std::map<std::string, int> want = {{"host_to_device", 4 + 4 + 4},
                                           {"device_to_host", 4 + 2 + 4},
                                           {"device_to_device", 1 + 4},
                                           {"small_copies_to_device", 4},
                                           {"step", 4}};
  EXPECT_EQ(kinds, want);
}

TEST(DeviceCopies, UnpinTheirMemory) {
  const int64_t before = hm_fake_gpu_pinned();
  time_host_copy({.device = gpu_device(0), .memory = HostMemory::registered, .bytes = 100}, kFew);
  EXPECT_EQ(hm_fake_gpu_pinned(), before);
}

TEST(DeviceCopies, RefuseAGpuAndACpu) {
  EXPECT_THROW(time_device_copy({.from = Device{}, .to = gpu_device(0), .bytes = 4}, kFew),
               std::invalid_argument);
}

}  // namespace
}  // namespace howmany::benches
