// SPDX-License-Identifier: Apache-2.0
// Ranks over the fake libnccl, on fake GPUs whose streams can be blocked.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <thread>

#include "core/backends/cuda/runtime/runtime.h"
#include "parallel/launch/launch.h"
#include "tests/fakes/fake_gpu.h"
#include "tests/fakes/fake_nccl.h"

namespace howmany::testing_support {

inline Device gpu_of(const Comm& comm) { return {DeviceType::cuda, comm.rank()}; }

inline FakeNccl& fake() {
  static auto* const told = [] {
    void* const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    void* const found = library ? dlsym(library, "hm_fake_nccl") : nullptr;
    return found ? reinterpret_cast<FakeNccl* (*)()>(found)() : nullptr;
  }();
  return *told;
}

constexpr std::chrono::seconds kBroken(20);  // only a broken program takes longer

template <typename Condition>
bool comes(const Condition& condition) {
  for (const auto end = std::chrono::steady_clock::now() + kBroken; !condition();) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// Work on a GPU's compute stream that runs until open() and then writes to a tensor. If the program
// waits for it before open(), it completes after a timeout and the test fails.
class Gate {
 public:
  Gate(int device, Tensor target, float value)
      : stream_(cuda::stream_of(device)), target_(std::move(target)), value_(value) {
    hm_fake_gpu_queue(
        stream_, [](void* gate) { return static_cast<Gate*>(gate)->pass(); }, this);
  }
  ~Gate() {
    open();
    hm_fake_gpu_wait(stream_);
    EXPECT_FALSE(forced_) << "who should open the gate waited behind it";
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void open() { open_ = true; }

 private:
  bool pass() {
    if (!open_ && std::chrono::steady_clock::now() < end_) return false;
    forced_ = !open_;
    std::fill_n(static_cast<float*>(hm_fake_gpu_open(target_.raw())), target_.numel(), value_);
    return true;
  }

  const cudaStream_t stream_;
  Tensor target_;
  const float value_;
  const std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + kBroken;
  std::atomic<bool> open_ = false, forced_ = false;
};

class NcclOnStreams : public testing::Test {
 protected:
  void SetUp() override { fake().asked = fake().done = fake().refused = fake().async_error = 0; }
  void TearDown() override {
    fake().async_error = 0;
    EXPECT_EQ(fake().refused, 0) << "the real one would crash";
  }
  // The calls that connect() makes are not counted.
  static void run(int world, const std::function<void(Comm&)>& body) {
    std::barrier met(world, []() noexcept { fake().asked = fake().done = 0; });
    launch_threads(
        world,
        [&](Comm& comm) {
          comm.barrier();
          met.arrive_and_wait();
          body(comm);
        },
        "nccl");
  }
};

}  // namespace howmany::testing_support
