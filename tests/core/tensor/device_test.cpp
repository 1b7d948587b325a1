// SPDX-License-Identifier: Apache-2.0
// labels: threads
#include "core/tensor/device.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <omp.h>
#include <sched.h>

#include <set>
#include <stdexcept>
#include <thread>

#include "core/host/near_cores.h"

namespace howmany {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::set<int> affinity() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  sched_getaffinity(0, sizeof mask, &mask);
  std::set<int> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &mask)) cores.insert(cpu);
  return cores;
}

std::set<int> slice(int index) {
  const std::vector<int> cores = cpu_slice(index);
  return {cores.begin(), cores.end()};
}

// GPUs that exist on no machine: each has one near core of this process, and the last has none.
const Device kGpu{DeviceType::cuda, 900}, kOtherGpu{DeviceType::cuda, 901};
const Device kUnknownGpu{DeviceType::cuda, 902};

class OnGpus : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<int>& cores = cpu_limits().allowed;
    if (cores.size() < 2) GTEST_SKIP() << cpu_limits().because;
    near_ = {cores.back()};
    other_ = {cores.front()};
    set_near_cores(kGpu.index, {cores.back()});
    set_near_cores(kOtherGpu.index, {cores.front()});
    set_near_cores(kUnknownGpu.index, {});
  }
  std::set<int> near_, other_;
};

// Restores the configuration, so that tests pass in any order.
struct Configured {
  explicit Configured(int cores) { configure_cpu_devices({.cores_per_device = cores}); }
  ~Configured() { configure_cpu_devices({.cores_per_device = 1}); }
};

TEST(Device, TextFormParsesAndPrintsTheSame) {
  for (const char* text : {"cpu:0", "cpu:17", "cuda:0", "cuda:3"})
    EXPECT_EQ(Device::parse(text).str(), text);
  EXPECT_EQ(Device::parse("cuda").str(), "cuda:0");
}

TEST(Device, RefusesInvalidNames) {
  for (const char* text : {"", "gpu", "cpu:", "cpu:x", "cpu:-1", "cpu:1x", "cpu:99999999999", ":0",
                           "cuda:GPU-12345678", "cpu:GPU-1"})
    EXPECT_THROW(Device::parse(text), std::invalid_argument) << text;
}

TEST(Device, ListsAndRangesExpand) {
  const std::vector<Device> expected{
      {DeviceType::cpu, 0}, {DeviceType::cpu, 2}, {DeviceType::cpu, 3}, {DeviceType::cuda, 1}};
  EXPECT_EQ(parse_devices("cpu:0,cpu:2-3,cuda:1"), expected);
  EXPECT_EQ(parse_devices("cpu").size(), 1u);
}

TEST(Device, ListsRefuseDuplicatesAndNonsense) {
  EXPECT_THAT([] { parse_devices("cpu:0-2,cpu:1"); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("cpu:1 is listed twice")));
  EXPECT_EQ(parse_devices("cuda:0,cuda:0").size(), 2u) << "ranks may share a GPU";
  for (const char* text : {"", "cpu:0,", ",cpu:0", "cpu:3-1", "cpu:0-", "cpu-3", "cpu:0-99999999",
                           "cpu:0--1", "cpu:0-1-2"})
    EXPECT_THROW(parse_devices(text), std::invalid_argument) << text;
}

TEST(Device, ErrorsQuoteTheInput) {
  for (const char* text : {"cpu:-1", "gpu:0-3", "cpu:x-3"})
    EXPECT_THAT([=] { parse_devices(text); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(fmt::format("'{}'", text))));
}

TEST(CpuDevices, SlicesAreDisjointAndWrapAround) {
  std::set<int> all;
  for (int k = 0; k < cpu_device_count(); ++k)
    for (const int core : cpu_slice(k)) EXPECT_TRUE(all.insert(core).second) << "core " << core;
  EXPECT_EQ(cpu_slice(cpu_device_count()), cpu_slice(0));
  EXPECT_THROW(cpu_slice(-1), std::invalid_argument);
}

TEST(Device, AGpuListedAgainIsSharedAndOversubscribed) {
  EXPECT_TRUE(share_gpus(parse_devices("cuda:1,cpu:0,cuda:1")));
  EXPECT_TRUE(oversubscribed(parse_devices("cuda:1,cuda:1")));
  EXPECT_FALSE(share_gpus(parse_devices("cuda:0,cuda:1,cpu:1")));
  EXPECT_FALSE(oversubscribed(parse_devices("cuda:0,cuda:1,cpu:0")));
}

TEST(CpuDevices, OversubscribedOnlyWhenTwoShareCores) {
  std::vector<Device> devices;
  for (int k = 0; k < cpu_device_count(); ++k) devices.push_back({DeviceType::cpu, k});
  EXPECT_FALSE(oversubscribed(devices));
  devices.push_back({DeviceType::cpu, cpu_device_count()});
  EXPECT_TRUE(oversubscribed(devices));
  EXPECT_FALSE(oversubscribed({{DeviceType::cuda, 0}, {DeviceType::cpu, 0}}));
}

TEST(CpuDevices, RefusesMoreCoresThanUsable) {
  EXPECT_THROW(configure_cpu_devices({.cores_per_device = 0}), std::invalid_argument);
  EXPECT_THAT([] { configure_cpu_devices({.cores_per_device = cpu_limits().usable + 1}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr(cpu_limits().because)));
}

TEST(CpuDevices, DefaultIsADevicePerCoreUpToEight) {
  const auto plan = [](int usable) {
    CpuLimits limits;
    limits.usable = usable;
    const CpuPlan p = default_cpu_plan(limits);
    return std::pair(p.devices, p.cores_per_device);
  };
  EXPECT_EQ(plan(1), std::pair(1, 1));
  EXPECT_EQ(plan(2), std::pair(2, 1));
  EXPECT_EQ(plan(20), std::pair(8, 2));
  EXPECT_EQ(plan(48), std::pair(8, 6));
}

TEST(CpuDevices, WholeMachineIsOneDevice) {
  const Configured whole(cpu_limits().usable);
  EXPECT_EQ(cpu_device_count(), 1);
  EXPECT_EQ(cpu_slice(0).size(), static_cast<size_t>(cpu_limits().usable));
}

TEST(DeviceScope, BindsTheThreadAndNestingRestores) {
  const std::set<int> before = affinity();
  const int team = omp_get_max_threads();
  const int last = cpu_device_count() - 1;
  {
    const DeviceScope outer({DeviceType::cpu, 0});
    EXPECT_EQ(affinity(), slice(0));
    EXPECT_EQ(omp_get_max_threads(), 1);
    {
      const DeviceScope inner({DeviceType::cpu, last});
      EXPECT_EQ(affinity(), slice(last));
      const DeviceScope again({DeviceType::cpu, last});
      EXPECT_EQ(affinity(), slice(last));
    }
    EXPECT_EQ(affinity(), slice(0));
    const DeviceScope gpu(kUnknownGpu);
    EXPECT_EQ(affinity(), slice(0));
  }
  EXPECT_EQ(affinity(), before);
  EXPECT_EQ(omp_get_max_threads(), team);
}

TEST(UnboundScope, AllowsEveryCoreAndRestoresTheBinding) {
  const std::set<int> before = affinity();
  const DeviceScope bound({DeviceType::cpu, 0});
  {
    const UnboundScope unbound;
    EXPECT_EQ(affinity(), before);
  }
  EXPECT_EQ(affinity(), slice(0));
}

TEST(DeviceScope, TheTeamIsNeverSmallerThanTheSlice) {
  omp_set_dynamic(1);  // as OMP_DYNAMIC=true: the team shrinks if the machine is loaded
  {
    const DeviceScope on({DeviceType::cpu, 0});
    EXPECT_EQ(omp_get_dynamic(), 0);
  }
  EXPECT_EQ(omp_get_dynamic(), 1);
  omp_set_dynamic(0);
}

TEST(DeviceScope, LeavesOtherThreadsUnbound) {
  const std::set<int> before = affinity();
  std::set<int> inside;
  std::thread([&] {
    const DeviceScope on({DeviceType::cpu, 0});
    inside = affinity();
  }).join();
  EXPECT_EQ(inside, slice(0));
  EXPECT_EQ(affinity(), before);
}

TEST_F(OnGpus, BindsToCoresNearTheGpu) {
  const std::set<int> before = affinity();
  const int team = omp_get_max_threads();
  {
    const DeviceScope on(kGpu);
    EXPECT_EQ(affinity(), near_);
    EXPECT_EQ(omp_get_max_threads(), team);
    std::set<int> heir;
    std::thread([&] { heir = affinity(); }).join();
    EXPECT_EQ(heir, near_);
    const DeviceScope unknown(kUnknownGpu);
    EXPECT_EQ(affinity(), near_);
  }
  EXPECT_EQ(affinity(), before);
  EXPECT_EQ(omp_get_max_threads(), team);
}

TEST_F(OnGpus, BindsToAllNearCores) {
  std::vector<int> cores = cpu_limits().allowed;
  if (cores.size() < 3) GTEST_SKIP() << "all of two cores are no choice";
  cores.pop_back();
  set_near_cores(kGpu.index, cores);
  const DeviceScope on(kGpu);
  EXPECT_EQ(affinity(), std::set<int>(cores.begin(), cores.end()));
}

TEST_F(OnGpus, DoesNotBindIfNoCoresAreNearer) {
  const std::set<int> before = affinity();
  for (const std::vector<int>& cores : {{}, {60'000}, cpu_limits().allowed}) {
    set_near_cores(kGpu.index, cores);
    const DeviceScope on(kGpu);
    EXPECT_EQ(affinity(), before) << cores.size();
    { const DeviceScope on_slice({DeviceType::cpu, 0}); }
    EXPECT_EQ(affinity(), before) << "the slice's is the outermost scope, of " << cores.size();
  }
}

TEST_F(OnGpus, ScopesOfGpusAndSlicesNest) {
  const std::set<int> before = affinity();
  {
    const DeviceScope gpu(kGpu);
    {
      const DeviceScope on_slice({DeviceType::cpu, 0});
      EXPECT_EQ(affinity(), slice(0));
      EXPECT_EQ(omp_get_max_threads(), 1);
      {
        const DeviceScope again(kGpu);
        EXPECT_EQ(affinity(), near_);
        EXPECT_EQ(omp_get_max_threads(), 1) << "the slice's";
        const DeviceScope other(kOtherGpu);
        EXPECT_EQ(affinity(), other_);
      }
      EXPECT_EQ(affinity(), slice(0));
    }
    EXPECT_EQ(affinity(), near_);
  }
  EXPECT_EQ(affinity(), before);
}

TEST_F(OnGpus, BindingAgainMakesNoSystemCall) {
  const std::set<int> before = affinity();
  {
    const DeviceScope on(kGpu);
    const int elsewhere = *other_.begin();
    cpu_set_t mask;
    CPU_ZERO(&mask);
    CPU_SET(elsewhere, &mask);
    ASSERT_EQ(sched_setaffinity(0, sizeof mask, &mask), 0);
    { const DeviceScope again(kGpu); }
    EXPECT_EQ(affinity(), other_) << "neither bound nor restored";
  }
  EXPECT_EQ(affinity(), before);
}

TEST_F(OnGpus, BindsTwoThreadsToTwoGpus) {
  std::set<int> first, second;
  std::thread a([&] {
    const DeviceScope on(kGpu);
    first = affinity();
  });
  std::thread b([&] {
    const DeviceScope on(kOtherGpu);
    second = affinity();
  });
  a.join();
  b.join();
  EXPECT_EQ(first, near_);
  EXPECT_EQ(second, other_);
}

#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer = true;  // reports libgomp's transfer of the mask as a race
#else
constexpr bool kThreadSanitizer = false;
#endif

TEST(DeviceScope, ManyThreadsBindAtOnce) {
  const Configured whole(cpu_limits().usable);
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k)
    threads.emplace_back([] {
      for (int i = 0; i < 20; ++i) {
        const DeviceScope on({DeviceType::cpu, i});
        EXPECT_EQ(affinity(), slice(0));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

std::vector<std::set<int>> team_affinities() {
  std::vector<std::set<int>> seen(static_cast<size_t>(omp_get_max_threads()));
#pragma omp parallel
  seen[static_cast<size_t>(omp_get_thread_num())] = affinity();
  return seen;
}

TEST(DeviceScope, TheOpenMpTeamMovesWithItsThread) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer does not see through libgomp";
  if (cpu_limits().usable < 2) GTEST_SKIP() << cpu_limits().because;
  const std::set<int> before = affinity();
  {
    const Configured pairs(2);
    const DeviceScope on({DeviceType::cpu, 0});
    EXPECT_THAT(team_affinities(), testing::ElementsAre(slice(0), slice(0)));
  }
  EXPECT_THAT(team_affinities(), testing::Each(before));
}

TEST_F(OnGpus, TheOpenMpTeamIsRestored) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer does not see through libgomp";
  const std::set<int> before = affinity();
  const int team = omp_get_max_threads();
  {
    const DeviceScope gpu(kGpu);
    {
      const Configured pairs(2);
      const DeviceScope on_slice({DeviceType::cpu, 0});
      EXPECT_THAT(team_affinities(), testing::ElementsAre(slice(0), slice(0)));
      const DeviceScope again(kOtherGpu);
      EXPECT_THAT(team_affinities(), testing::ElementsAre(other_, other_));
    }
    EXPECT_THAT(team_affinities(), testing::SizeIs(team));
    EXPECT_THAT(team_affinities(), testing::Each(near_));
  }
  EXPECT_THAT(team_affinities(), testing::Each(before));
}

}  // namespace
}  // namespace howmany
