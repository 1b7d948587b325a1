// SPDX-License-Identifier: Apache-2.0
// The order of nccl calls and other GPU work, and their failures. Uses the fake libnccl on fake
// GPUs, whose streams can be blocked.
// timeout: 120
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "core/base/private_folder.h"
#include "core/gpu/gpu.h"
#include "tests/support/message_of.h"
#include "tests/support/nccl_ranks.h"

namespace howmany {
namespace {

using namespace std::chrono_literals;
using namespace testing_support;
using testing::HasSubstr;

TEST_F(NcclOnStreams, WaitsForEarlierKernels) {
  run(2, [](Comm& comm) {
    Tensor t = Tensor::zeros({1000}, Dtype::f32, gpu_of(comm));
    Work work;
    {
      Gate gate(comm.rank(), t, static_cast<float>(comm.rank() + 1));
      work = comm.all_reduce_async(t);
      EXPECT_TRUE(comes([] { return fake().asked == 2; }));
      EXPECT_EQ(fake().done, 0);
      EXPECT_FALSE(work.ready());
    }
    work.wait();
    EXPECT_EQ(t.rows(999, 1000).item(), 3);
  });
}

TEST_F(NcclOnStreams, RunsConcurrentlyWithLaterWork) {
  run(2, [](Comm& comm) {
    const auto make = [&] { return Tensor::zeros({1000}, Dtype::f32, gpu_of(comm)); };
    Tensor first = make(), second = make(), later = make();
    Gate before(comm.rank(), first, 1);
    std::vector<Work> works;
    works.push_back(comm.all_reduce_async(first));
    // It is queued on the comm thread, and must not wait for work that is enqueued meanwhile.
    works.push_back(comm.all_reduce_async(second));
    Gate after(comm.rank(), later, 7);
    before.open();
    EXPECT_TRUE(comes([&] { return works[1].ready(); }));
    after.open();
    for (Work& work : works) work.wait();
    EXPECT_EQ(first.rows(0, 1).item(), 2);
  });
}

TEST_F(NcclOnStreams, KeepsTheMemoryOfItsTensor) {
  std::latch looked(1);
  run(2, [&](Comm& comm) {
    const int64_t before = gpu::memory_use(comm.rank()).in_use;
    Tensor t = Tensor::zeros({1000}, Dtype::f32, gpu_of(comm));
    if (comm.rank() == 1) {
      looked.wait();
      return comm.all_reduce(t);
    }
    const void* const memory = t.raw();
    Work work = comm.all_reduce_async(std::move(t));
    t = Tensor();
    work.wait();  // now only the call owns it
    EXPECT_NE(Tensor::zeros({1000}, Dtype::f32, gpu_of(comm)).raw(), memory);
    looked.count_down();
    work.finish();
    gpu::synchronize(comm.rank());
    EXPECT_EQ(gpu::memory_use(comm.rank()).in_use, before);
  });
}

TEST_F(NcclOnStreams, NamesAMissingRank) {
  std::latch gave_up(2);
  run(3, [&](Comm& comm) {
    comm.set_timeout(300ms);
    if (comm.rank() == 1) return gave_up.wait();
    Tensor t = Tensor::full({1000}, 1, Dtype::f32, gpu_of(comm));
    EXPECT_THAT(message_of<CommError>([&] { comm.all_reduce(t); }),
                AllOf(HasSubstr("[all_reduce]"), HasSubstr("(nccl): peer 1 failed: nothing came")));
    gave_up.count_down();
    EXPECT_EQ(Tensor::full({1}, 2, Dtype::f32, gpu_of(comm)).item(), 2);
  });
}

// As if one rank has another shape: every rank must report a failure.
TEST_F(NcclOnStreams, MismatchedCallsTimeOut) {
  run(2, [](Comm& comm) {
    comm.set_timeout(300ms);
    Tensor t = Tensor::full({1000 + comm.rank()}, 1, Dtype::f32, gpu_of(comm));
    EXPECT_THAT(message_of<CommError>([&] { comm.all_reduce(t); }), HasSubstr("nothing came"));
  });
}

TEST_F(NcclOnStreams, TheTimeoutExcludesTheOwnGpu) {
  run(2, [](Comm& comm) {
    comm.set_timeout(400ms);
    Tensor t = Tensor::zeros({10}, Dtype::f32, gpu_of(comm));
    Gate gate(comm.rank(), t, 1);
    Work work = comm.all_reduce_async(t);
    std::this_thread::sleep_for(600ms);
    EXPECT_FALSE(work.ready());
    gate.open();
    work.wait();
    EXPECT_EQ(t.rows(0, 1).item(), 2);
  });
}

TEST_F(NcclOnStreams, AsyncErrorsEndTheCall) {
  run(3, [](Comm& comm) {
    Tensor t = Tensor::zeros({10}, Dtype::f32, gpu_of(comm));
    Gate gate(comm.rank(), t, 1);
    Work work = comm.all_reduce_async(t);
    EXPECT_TRUE(comes([] { return fake().asked == 3; }));
    fake().async_error = kFakeRemoteError;
    EXPECT_THAT(message_of<CommError>([&] { work.finish(); }),
                HasSubstr("a remote error of the fake NCCL"));
    EXPECT_TRUE(comm.failed());
  });
}

TEST_F(NcclOnStreams, RanksUseTheirGpus) {
  const PrivateFolder folder;
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < 2; ++rank)
    ranks.emplace_back([rank, &folder] {
      Place place{rank, 2, rank, "file:" + folder.path(), "threads"};
      place.gpu = 3 - rank;
      const auto comm = connect(place, "nccl");
      EXPECT_EQ(comm->native_device(), (Device{DeviceType::cuda, 3 - rank}));
      const Tensor t = Tensor::full({10}, rank + 1).to(comm->native_device());
      comm->all_reduce(t);
      EXPECT_EQ(t.rows(9, 10).item(), 3);
    });
}

}  // namespace
}  // namespace howmany
