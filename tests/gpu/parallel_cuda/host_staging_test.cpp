// SPDX-License-Identifier: Apache-2.0
// Calls on tensors of imitated GPUs by engines that work on the host. A call waits for work that
// was enqueued before it, but not for work enqueued after it. timeout: 120
#include "core/gpu/event.h"
#include "parallel/comm/staging.h"

#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "parallel/launch/launch.h"
#include "tests/support/held.h"
#include "tests/support/tensors.h"

namespace howmany {
namespace {

using namespace testing_support;
using namespace std::chrono_literals;

Device gpu_of(const Comm& comm) { return {DeviceType::cuda, comm.rank()}; }

Tensor on_gpu(const Comm& comm, double value) {
  return Tensor::full({1000}, value, Dtype::f32).to(gpu_of(comm));
}

std::vector<std::string_view> host_engines() {
  std::vector<std::string_view> names = thread_comm_names(2);
  std::erase(names, "nccl");
  return names;
}

bool all_are(const Tensor& t, double value) {
  return close(t.to(Device{}), Tensor::full({1000}, value), 0);
}

TEST(CallsOfHostEngines, DoNotWaitForLaterWork) {
  for (const std::string_view engine : host_engines()) {
    std::latch held_up(1);
    launch_threads(
        2,
        [&](Comm& comm) {
          Tensor sum = on_gpu(comm, comm.rank() + 1), token = Tensor::zeros({1});
          if (comm.rank() == 1) {
            held_up.wait();
            comm.all_reduce(token);
            return comm.all_reduce(sum);
          }
          // The second call waits for the first, which waits for the other rank.
          Work first = comm.all_reduce_async(token), second = comm.all_reduce_async(sum);
          {
            Held held(0);
            held_up.count_down();
            first.wait();
            second.wait();
            EXPECT_TRUE(second.ready()) << engine;
          }
          EXPECT_TRUE(all_are(sum, 3)) << engine;
        },
        engine);
  }
}

TEST(CallsOfHostEngines, WaitForEarlierWork) {
  for (const std::string_view engine : host_engines())
    launch_threads(
        2,
        [&](Comm& comm) {
          Tensor sum = on_gpu(comm, 7);
          Held held(comm.rank());
          sum.zero();
          Work work = comm.all_reduce_async(sum);
          std::this_thread::sleep_for(50ms);
          EXPECT_FALSE(work.ready()) << engine;
          held.open();
          work.wait();
          EXPECT_TRUE(all_are(sum, 0)) << engine;
        },
        engine);
}

TEST(CallsOfHostEngines, ReusePinnedMemory) {
  launch_threads(2, [](Comm& comm) {
    Tensor mine = on_gpu(comm, 1), all = Tensor::zeros({2000}, Dtype::f32, gpu_of(comm));
    const auto exchange = [&] {
      comm.all_gather(mine, all);
      comm.all_reduce(mine, ReduceOp::max);
      comm.broadcast(mine, 0);
    };
    exchange();
    comm.barrier();
    const int64_t before = hm_fake_gpu_pinned();
    for (int i = 0; i < 5; ++i) exchange();
    comm.barrier();
    EXPECT_EQ(hm_fake_gpu_pinned(), before);
    comm.barrier();
  });
}

TEST(HostStaging, CopiesToTheHostAndBack) {
  HostStaging staging(1);
  const Device gpu{DeviceType::cuda, 1};
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::i64}) {
    const Tensor want = Tensor::from<double>({1, -2, 3.5, 250}, {2, 2}).to(dtype);
    const Tensor there = want.to(gpu);
    const Tensor here = staging.to_host(there, gpu::record_event(1));
    EXPECT_TRUE(close(here, want, 0));
    Tensor back = Tensor::zeros({2, 2}, dtype, gpu);
    staging.to_gpu(here, back, gpu::record_event(1));
    EXPECT_TRUE(close(back.to(Device{}), want, 0));
  }
}

}  // namespace
}  // namespace howmany
