// SPDX-License-Identifier: Apache-2.0
// The devices of a launcher's ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "benches/common/device_choice.h"
#include "benches/common/workload.h"
#include "core/gpu/gpu.h"
#include "core/host/cpu_limits.h"
#include "parallel/comm/comm.h"
#include "tests/support/message_of.h"

namespace howmany::benches {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class Placement : public ::testing::Test {
 protected:
  void SetUp() override {
    if (gpu::count() < 4) GTEST_SKIP() << gpu::count() << " GPUs are here";
    work_.mode = "ddp";
    work_.backend = "gloo";
  }

  std::string placed(const std::string& list, const Place& place, bool gpus = true) {
    place_devices(work_, list, place, gpus);
    std::string text;
    for (const Device& device : work_.devices) text += device.str() + " ";
    return text;
  }

  Workload work_;
};

TEST_F(Placement, RanksUseTheGpusOfTheirHosts) {
  Place place{.rank = 1, .world = 2, .local_rank = 1};
  EXPECT_EQ(placed("", place), "cuda:0 cuda:1 ");
  EXPECT_EQ(placed("", place, false), "cpu:0 cpu:1 ");
  EXPECT_EQ(placed("cuda:2,cuda:3", place), "cuda:2 cuda:3 ");
  place.world = 4;
  place.local_world = 2;
  EXPECT_EQ(placed("", place), "cuda:0 cuda:1 cuda:0 cuda:1 ");
  EXPECT_EQ(placed("cuda:3,cuda:2", place), "cuda:3 cuda:2 cuda:3 cuda:2 ") << "on each host";
  EXPECT_EQ(work_.device_of(1), (Device{DeviceType::cuda, 2}));
  place.local_rank = 0;  // ranks were assigned to hosts round-robin
  placed("", place);
  EXPECT_EQ(gpu_of(work_, place), 0);
  EXPECT_EQ(placed("cuda:3,cuda:2,cuda:1,cuda:0", place), "cuda:3 cuda:2 cuda:1 cuda:0 ");
  EXPECT_EQ(gpu_of(work_, place), 2) << "of rank 1";
  EXPECT_TRUE(means_gpus(work_));
  work_.kernels = "reference";
  EXPECT_FALSE(means_gpus(work_));
}

TEST_F(Placement, AutoIsNcclIfEachRankHasAGpu) {
  const Place place{.world = 2, .rendezvous = "tcp:127.0.0.1:1"};
  if (const std::string why = comm_unavailable("nccl", place); !why.empty()) GTEST_SKIP() << why;
  const auto chosen = [&](const std::string& list) {
    placed(list, place);
    return choose_backend(work_, place).name;
  };
  EXPECT_EQ(chosen(""), "nccl");
  EXPECT_EQ(chosen("cuda:2,cuda:1"), "nccl");
  EXPECT_EQ(chosen("cuda:0,cuda:0"), "gloo");
  EXPECT_EQ(chosen("cuda:0,cpu:0"), "gloo");
  placed("", place);
  EXPECT_FALSE(comm_unavailable("nccl", {.world = 2, .launcher = "mpirun"}).empty());
  EXPECT_THAT(comm_unavailable("gloo", {.world = 2, .launcher = "mpirun"}),
              HasSubstr("set MASTER_ADDR"));
  work_.mode = "data_parallel";
  EXPECT_EQ(chosen(""), "local");
}

TEST_F(Placement, MoreGpusThanCoresAreMarked) {
  const Place place{.world = 2};
  placed("cuda:0-3", place);
  const auto marks_for = [&](int gpus) {
    work_.devices.clear();
    for (int i = 0; i < gpus; ++i) work_.devices.push_back({DeviceType::cuda, i});
    return marks_of(work_);
  };
  EXPECT_THAT(marks_for(cpu_limits().usable), Not(Contains("short of cores")));
  EXPECT_THAT(marks_for(cpu_limits().usable + 1), Contains("short of cores"));
  work_.own_cores = true;
  EXPECT_THAT(marks_of(work_), Not(Contains("short of cores")));
}

TEST_F(Placement, MoreRanksThanGpusNeedDevices) {
  Place place{.world = 5};
  EXPECT_THAT(message_of<std::invalid_argument>([&] { placed("", place); }),
              HasSubstr("5 ranks on this host, and 4 GPUs"));
  place.world = 2;
  EXPECT_EQ(placed("cuda:0,cuda:0", place), "cuda:0 cuda:0 ");
}

TEST_F(Placement, NcclNeedsAGpuPerRank) {
  work_.backend = "nccl";
  work_.global_batch = 8;
  work_.oversubscribe = true;
  Place place{.world = 2};
  placed("cuda:2,cuda:3", place);
  EXPECT_NO_THROW(check(work_));
  for (const char* list : {"cuda:0,cuda:0", "cpu:0,cpu:1", "cuda:0,cpu:0"}) {
    placed(list, place);
    EXPECT_THAT(message_of<std::invalid_argument>([&] { check(work_); }),
                HasSubstr("backend nccl needs a GPU for each rank"))
        << list;
  }
}

}  // namespace
}  // namespace howmany::benches
