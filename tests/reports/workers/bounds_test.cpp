// SPDX-License-Identifier: Apache-2.0
// Tests the bounds on the number of workers that are known before measuring.
#include "reports/workers/bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/results/record.h"

namespace howmany::reports {
namespace {

using ::testing::HasSubstr;

LoaderLimits roomy() {
  LoaderLimits limits;
  limits.cores = 8;
  limits.cores_because = "8 cores: affinity mask";
  limits.memory_bytes = 64e9;
  limits.memory_because = "MemAvailable";
  limits.shm_bytes = 32e9;
  limits.descriptors = 1 << 20;
  limits.processes_because = "no limit";
  return limits;
}

const WorkerBound& bound(const std::vector<WorkerBound>& bounds, const std::string& what) {
  for (const WorkerBound& b : bounds)
    if (b.what.starts_with(what)) return b;
  throw std::runtime_error("no bound " + what);
}

constexpr double kSample = 224 * 224 * 3 * 4 + 8;  // 38.5 MB per batch of 64

TEST(WorkerBounds, DockersSharedMemoryHoldsNoWorkerAtBatch64) {
  LoaderLimits limits = roomy();
  limits.shm_bytes = 64e6;
  const auto bounds = worker_bounds(limits, {}, kSample);
  EXPECT_EQ(bound(bounds, "/dev/shm").most, 0);
  EXPECT_THAT(bound(bounds, "/dev/shm").because, HasSubstr("64 MB free"));
  EXPECT_EQ(most_workers(bounds), 0);
}

TEST(WorkerBounds, SharedMemoryCountsEveryBatchInFlight) {
  LoaderLimits limits = roomy();
  const double batch = 64 * kSample;
  limits.shm_bytes = (2 * 4 + 2) * batch / 0.9 + 1e3;  // 4 workers with 2 batches each, and 2 more
  EXPECT_EQ(bound(worker_bounds(limits, {}, kSample), "/dev/shm").most, 4);
  EXPECT_EQ(bound(worker_bounds(limits, {.devices = 2}, kSample), "/dev/shm").most, 1);
  EXPECT_EQ(bound(worker_bounds(limits, {.prefetch = 4}, kSample), "/dev/shm").most, 2);
}

TEST(WorkerBounds, CoresBoundSoftlyAndAreShared) {
  const auto bounds = worker_bounds(roomy(), {.devices = 4}, kSample);
  EXPECT_EQ(bound(bounds, "cores").most, 2);
  EXPECT_FALSE(bound(bounds, "cores").hard);
  EXPECT_GT(most_workers(bounds), 2);
  LoaderLimits half = roomy();
  half.cores = 0.5;
  EXPECT_EQ(bound(worker_bounds(half, {}, kSample), "cores").most, 1);
}

TEST(WorkerBounds, DescriptorsMemoryAndProcessesBound) {
  LoaderLimits limits = roomy();
  limits.descriptors = 100;
  EXPECT_EQ(most_workers(worker_bounds(limits, {}, kSample)), 4);
  limits = roomy();
  limits.memory_bytes = 1e9;
  EXPECT_EQ(most_workers(worker_bounds(limits, {}, kSample)), 2);
  limits = roomy();
  limits.processes = 7;
  EXPECT_EQ(most_workers(worker_bounds(limits, {.devices = 2}, kSample)), 2);
}

TEST(WorkerBounds, NeverNegativeAndNeverWithoutEnd) {
  LoaderLimits limits = roomy();
  limits.processes = 0;
  limits.descriptors = 0;
  EXPECT_EQ(most_workers(worker_bounds(limits, {.devices = 64}, 1e12)), 0);
  LoaderLimits endless = roomy();
  endless.memory_bytes = endless.shm_bytes.emplace(1e18);
  EXPECT_EQ(most_workers(worker_bounds(endless, {}, 1)), 1024);
}

TEST(WorkerBounds, AnUnknownSampleDoesNotBoundMemory) {
  for (const WorkerBound& b : worker_bounds(roomy(), {}, 0))
    EXPECT_THAT(b.what, ::testing::Not(HasSubstr("shm")));
}

TEST(WorkerBounds, HardBoundsBelowTheCoresAreNoted) {
  LoaderLimits limits = roomy();
  EXPECT_TRUE(bound_notes(worker_bounds(limits, {}, kSample)).empty());
  limits.shm_bytes = 64e6;
  EXPECT_THAT(bound_notes(worker_bounds(limits, {}, kSample)),
              ::testing::ElementsAre(HasSubstr("No more than 0 workers by /dev/shm")));
}

TEST(LoaderLimits, ReadsWhatTheBenchTells) {
  const auto limits = limits_from_json(nlohmann::json::parse(R"({
    "cores": 1.5, "cores_because": "1 core: cgroup",
    "memory_bytes": 1e9, "memory_because": "MemAvailable", "shm_bytes": null,
    "descriptors": 1024, "processes": 50, "processes_because": "ulimit -u"})"),
                                       "l");
  EXPECT_DOUBLE_EQ(limits.cores, 1.5);
  EXPECT_FALSE(limits.shm_bytes);
  EXPECT_EQ(limits.processes, 50);
}

TEST(LoaderLimits, GarbageIsRefused) {
  for (const char* text : {"{}", "[]", "null", R"({"cores": -1})", R"({"cores": "two"})"})
    EXPECT_THROW(limits_from_json(nlohmann::json::parse(text), "l"), InputError) << text;
}

}  // namespace
}  // namespace howmany::reports
