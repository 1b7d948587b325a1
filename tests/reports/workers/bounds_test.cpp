// SPDX-License-Identifier: Apache-2.0
// Tests the bounds on the number of workers that are known before measuring.
#include "reports/workers/bounds.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "reports/results/record.h"

namespace howmany::reports {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr double kSample = 224 * 224 * 3 * 4 + 8;  // 38.5 MB per batch of 64

// A roomy machine, except for these members.
std::vector<WorkerBound> bounds(const json& changed, const LoaderDemand& asked = {},
                                double sample_bytes = kSample) {
  json limits = {{"cores", 8},           {"cores_because", "8 cores: affinity mask"},
                 {"memory_bytes", 64e9}, {"memory_because", "MemAvailable"},
                 {"shm_bytes", 32e9},    {"descriptors", 1 << 20},
                 {"processes", nullptr}, {"processes_because", "no limit"}};
  limits.update(changed);
  return worker_bounds(limits, asked, sample_bytes);
}

const WorkerBound& bound(const std::vector<WorkerBound>& bounds, const std::string& what) {
  for (const WorkerBound& b : bounds)
    if (b.what.starts_with(what)) return b;
  throw std::runtime_error("no bound " + what);
}

TEST(WorkerBounds, DockersSharedMemoryHoldsNoWorkerAtBatch64) {
  const auto small = bounds({{"shm_bytes", 64e6}});
  EXPECT_EQ(bound(small, "/dev/shm").most, 0);
  EXPECT_THAT(bound(small, "/dev/shm").because, HasSubstr("64 MB free"));
  EXPECT_EQ(most_workers(small), 0);
  EXPECT_THAT(bound_notes(small),
              ::testing::ElementsAre(HasSubstr("No more than 0 workers by /dev/shm")));
  EXPECT_TRUE(bound_notes(bounds(json::object())).empty());
}

TEST(WorkerBounds, SharedMemoryCountsEveryBatchInFlight) {
  // 4 workers with 2 batches each, and 2 more
  const json room = {{"shm_bytes", (2 * 4 + 2) * 64 * kSample / 0.9 + 1e3}};
  EXPECT_EQ(bound(bounds(room), "/dev/shm").most, 4);
  EXPECT_EQ(bound(bounds(room, {.devices = 2}), "/dev/shm").most, 1);
  EXPECT_EQ(bound(bounds(room, {.prefetch = 4}), "/dev/shm").most, 2);
}

TEST(WorkerBounds, CoresBoundSoftlyAndAreShared) {
  const auto shared = bounds(json::object(), {.devices = 4});
  EXPECT_EQ(bound(shared, "cores").most, 2);
  EXPECT_FALSE(bound(shared, "cores").hard);
  EXPECT_GT(most_workers(shared), 2);
  EXPECT_EQ(bound(bounds({{"cores", 0.5}}), "cores").most, 1);
}

TEST(WorkerBounds, EveryHardLimitBounds) {
  EXPECT_EQ(most_workers(bounds({{"descriptors", 100}})), 4);
  EXPECT_EQ(most_workers(bounds({{"memory_bytes", 1e9}})), 2);
  EXPECT_EQ(most_workers(bounds({{"processes", 7}}, {.devices = 2})), 2);
  EXPECT_EQ(most_workers(bounds({{"processes", 0}, {"descriptors", 0}}, {.devices = 64}, 1e12)), 0);
  EXPECT_EQ(most_workers(bounds({{"memory_bytes", 1e18}, {"shm_bytes", 1e18}}, {}, 1)), 1024);
}

TEST(WorkerBounds, AnUnknownSampleOrLimitDoesNotBound) {
  for (const auto& all : {bounds(json::object(), {}, 0), bounds({{"shm_bytes", nullptr}})})
    for (const WorkerBound& b : all) EXPECT_THAT(b.what, ::testing::Not(HasSubstr("shm")));
}

TEST(WorkerBounds, GarbageIsRefused) {
  for (const char* text : {"{}", "[]", "null"})
    EXPECT_THROW(worker_bounds(json::parse(text), {}, 1), InputError) << text;
  for (const json& bad : {json(-1), json("two")})
    EXPECT_THROW(bounds({{"cores", bad}}), InputError) << bad;
}

}  // namespace
}  // namespace howmany::reports
