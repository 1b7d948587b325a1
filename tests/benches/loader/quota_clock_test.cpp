// SPDX-License-Identifier: Apache-2.0
#include "benches/loader/quota_clock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace howmany::benches {
namespace {

namespace fs = std::filesystem;

class UnderAQuota : public testing::Test {
 protected:
  UnderAQuota() { tell(40); }
  ~UnderAQuota() override { fs::remove_all(root_); }
  void tell(int64_t periods) {
    fs::create_directories(root_ + "/jobs/7");
    const std::string next = root_ + "/next", stat = root_ + "/jobs/7/cpu.stat";
    std::ofstream(next) << "nr_periods " << periods << "\nnr_throttled 3\nthrottled_time 17\n";
    fs::rename(next, stat);
  }

  const std::string root_ =
      testing::TempDir() + "howmany-quota-clock-" + std::to_string(::getpid());
  static CpuLimits of(std::vector<int> cores, std::vector<CpuLimit> limits) {
    CpuLimits all;
    all.allowed = std::move(cores);
    all.limits = std::move(limits);
    return all;
  }
  const CpuLimit quota_{"cgroup v1 quota", 1.5, "", "/jobs/7"},
      larger_{"cgroup v1 quota", 1.8, "", "/jobs"}, slurm_{"SLURM_CPUS_PER_TASK", 1, "", ""};
};

TEST_F(UnderAQuota, ThePeriodsOfTheSmallestAreCounted) {
  const QuotaClock clock(of({0, 1}, {larger_, quota_}), root_);
  ASSERT_TRUE(clock.binds());
  EXPECT_EQ(clock.periods(), 40);
  tell(41);
  EXPECT_EQ(clock.periods(), 41);
}

TEST_F(UnderAQuota, ItBindsWhereThereAreMoreCoresWhateverWasPromisedBeside) {
  EXPECT_TRUE(QuotaClock(of({0, 1}, {slurm_, quota_}), root_).binds());
  EXPECT_FALSE(QuotaClock(of({0}, {quota_}), root_).binds());
  EXPECT_FALSE(QuotaClock(of({0, 1}, {slurm_}), root_).binds());
}

TEST_F(UnderAQuota, AWaitEndsWithTheLastOfItsPeriods) {
  const QuotaClock clock(of({0, 1}, {quota_}), root_);
  std::jthread dealing([&] {
    for (int64_t now = 41; now <= 43; ++now) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      tell(now);
    }
  });
  EXPECT_TRUE(clock.wait(3, 60));
  EXPECT_EQ(clock.periods(), 43);
}

TEST_F(UnderAQuota, AKernelThatDoesNotTellIsNotWaitedFor) {
  const QuotaClock clock(of({0, 1}, {quota_}), root_ + "/elsewhere");
  EXPECT_EQ(clock.periods(), std::nullopt);
  EXPECT_FALSE(clock.wait(1, 60));
  EXPECT_FALSE(QuotaClock(of({0, 1}, {quota_}), root_).wait(1, 0.01)) << "no process used a core";
}

}  // namespace
}  // namespace howmany::benches
