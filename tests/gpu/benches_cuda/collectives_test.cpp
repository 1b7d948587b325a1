// SPDX-License-Identifier: Apache-2.0
// Collectives of buffers on imitated GPUs, over every engine.
#include "benches/comm/collectives.h"

#include <gtest/gtest.h>

#include "benches/comm/collective_timing.h"
#include "benches/common/device_choice.h"
#include "parallel/launch/launch.h"

namespace howmany::benches {
namespace {

Device gpu_of(const Comm& comm) { return {DeviceType::cuda, comm.rank()}; }

TEST(CollectivesOfGpus, AreRightOverEveryEngine) {
  for (const std::string_view engine : thread_comm_names(2))
    launch_threads(
        2,
        [](Comm& comm) {
          for (const std::string_view name : collective_names()) {
            Collective op(name, Dtype::f32, 4000, comm, gpu_of(comm));
            EXPECT_EQ(op.sending().device(), gpu_of(comm));
            EXPECT_EQ(op.received().device(), gpu_of(comm));
            for (int round = 0; round < 2; ++round) {
              op.fill(round);
              op.run();
              op.check(round);
            }
          }
        },
        engine);
}

TEST(CollectivesOfGpus, AreTimedBesideProductsOfTheGpu) {
  launch_threads(2, [](Comm& comm) {
    const OverlapTimes times = time_overlap(comm, 1 << 12, gpu_of(comm), 0.01);
    EXPECT_GT(times.comm_beside, 0);
    EXPECT_GE(times.gemm_beside, times.gemms * 1e-9);
  });
}

}  // namespace
}  // namespace howmany::benches
