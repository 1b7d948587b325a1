// SPDX-License-Identifier: Apache-2.0
#include "core/host/cpu_limits.h"

#include <gmock/gmock.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/base/private_folder.h"

namespace howmany {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A machine described by files under a temporary root.
class FakeMachine : public testing::Test {
 protected:
  FakeMachine() {
    cpus(0, 7);
    write("/proc/self/status", "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\n");
  }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void cpus(int first, int last) {
    write("/sys/devices/system/cpu/online", fmt_range(first, last) + "\n");
    for (int cpu = first; cpu <= last; ++cpu) topology(cpu, 0, cpu);
  }
  void topology(int cpu, int package, int core) {
    const std::string dir = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    write(dir + "physical_package_id", std::to_string(package) + "\n");
    write(dir + "core_id", std::to_string(core) + "\n");
  }
  void v2(const std::string& mounted, const std::string& path) {
    write("/proc/self/mountinfo", "22 1 0:1 / / rw - ext4 /dev/sda rw\n31 22 0:28 " + mounted +
                                      " /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n");
    write("/proc/self/cgroup", "0::" + path + "\n");
  }
  CpuLimits read(const Environment& environment = {}) const {
    return read_cpu_limits(root_, environment);
  }

  const PrivateFolder folder_;
  const std::string& root_ = folder_.path();

 private:
  static std::string fmt_range(int first, int last) {
    return std::to_string(first) + "-" + std::to_string(last);
  }
};

TEST_F(FakeMachine, WithoutLimitsTheAffinityMaskDecides) {
  const CpuLimits limits = read();
  EXPECT_EQ(limits.usable, 8);
  EXPECT_THAT(limits.limits, SizeIs(1));
  EXPECT_EQ(limits.because, "8 cores: affinity mask (0-7, all this machine has)");
}

TEST_F(FakeMachine, AffinityMaskMayHaveHoles) {
  write("/proc/self/status", "Cpus_allowed_list:\t1,4-5\n");
  const CpuLimits limits = read();
  EXPECT_THAT(limits.allowed, ElementsAre(1, 4, 5));
  EXPECT_EQ(limits.because, "3 cores: affinity mask (1,4-5)");
}

TEST_F(FakeMachine, V2QuotaIsTheLeastOnTheWayToTheRoot) {
  v2("/", "/user.slice/job/task");
  write("/sys/fs/cgroup/user.slice/job/task/cpu.max", "max 100000\n");
  write("/sys/fs/cgroup/user.slice/job/cpu.max", "350000 100000\n");
  write("/sys/fs/cgroup/user.slice/cpu.max", "600000 100000\n");
  const CpuLimits limits = read();
  EXPECT_EQ(limits.usable, 3);
  EXPECT_THAT(limits.limits, SizeIs(3));
  EXPECT_EQ(limits.because,
            "3 cores: cgroup v2 cpu.max (/sys/fs/cgroup/user.slice/job/cpu.max: 350000 100000)");
  EXPECT_EQ(limits.limits[1].group, "/sys/fs/cgroup/user.slice/job");
  EXPECT_THAT(limits.allowed, SizeIs(8)) << "a quota forbids no core";
}

TEST_F(FakeMachine, QuotaBelowOneCoreStillLeavesOne) {
  v2("/", "/");
  write("/sys/fs/cgroup/cpu.max", "20000 100000\n");
  EXPECT_EQ(read().usable, 1);
  EXPECT_THAT(read().because, HasSubstr("1 core: cgroup v2"));
}

TEST_F(FakeMachine, ContainerSeesItsOwnCgroupAsTheRoot) {
  v2("/", "/");  // private cgroup namespace
  write("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(read().usable, 2);
}

TEST_F(FakeMachine, ContainerWithTheHostsPathReadsWhatIsMounted) {
  v2("/docker/abc", "/docker/abc/init");
  write("/sys/fs/cgroup/init/cpu.max", "400000 100000\n");
  write("/sys/fs/cgroup/cpu.max", "300000 100000\n");
  EXPECT_EQ(read().usable, 3);
  v2("/docker/abc", "/docker/abcdef");  // another cgroup, which must not be read
  EXPECT_EQ(read().usable, 3);
  v2("/", "/../../elsewhere");  // joined from outside the namespace
  EXPECT_EQ(read().usable, 3);
}

TEST_F(FakeMachine, V1QuotaAndPeriodAreFoundWhereMounted) {
  write("/proc/self/mountinfo",
        "1 0 0:1 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "2 0 0:2 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");
  write("/proc/self/cgroup", "5:memory:/m\n4:cpuacct,cpu:/slurm/job_7/step_0\n0::/\n");
  write("/cg/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  write("/cg/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  write("/cg/cpu,cpuacct/slurm/job_7/cpu.cfs_quota_us", "250000\n");
  write("/cg/cpu,cpuacct/slurm/job_7/cpu.cfs_period_us", "50000\n");
  const CpuLimits limits = read();
  EXPECT_EQ(limits.usable, 5);
  EXPECT_THAT(limits.because,
              HasSubstr("cgroup v1 quota (/cg/cpu,cpuacct/slurm/job_7/cpu.cfs_quota_us"));
}

TEST_F(FakeMachine, CpusetNarrowsTheAllowedCores) {
  v2("/", "/box/inner");
  write("/sys/fs/cgroup/cpuset.cpus.effective", "0-7\n");
  write("/sys/fs/cgroup/box/cpuset.cpus.effective", "2-4,6\n");
  const CpuLimits limits = read();
  EXPECT_THAT(limits.allowed, ElementsAre(2, 3, 4, 6));
  EXPECT_EQ(limits.because,
            "4 cores: cgroup v2 cpuset (/sys/fs/cgroup/box/cpuset.cpus.effective: 2-4,6)");
}

TEST_F(FakeMachine, V1CpusetIsReadToo) {
  write("/proc/self/mountinfo", "1 0 0:1 / /cg/set rw - cgroup cgroup rw,cpuset\n");
  write("/proc/self/cgroup", "3:cpuset:/a\n");
  write("/cg/set/a/cpuset.cpus", "5,7\n");
  EXPECT_THAT(read().allowed, ElementsAre(5, 7));
}

TEST_F(FakeMachine, CpusetOfAnotherMachineIsIgnored) {
  v2("/", "/");
  write("/sys/fs/cgroup/cpuset.cpus.effective", "64-127\n");
  EXPECT_EQ(read().usable, 8);
}

TEST_F(FakeMachine, SlurmBatchStepHasTheCpusOfAllTasks) {
  Environment batch = {{"SLURM_CPUS_PER_TASK", "1"}, {"SLURM_CPUS_ON_NODE", "2"}};
  EXPECT_EQ(read(batch).usable, 2);
  batch["SLURM_STEP_NUM_TASKS"] = "2";  // a task of srun
  EXPECT_EQ(read(batch).usable, 1);
}

TEST_F(FakeMachine, SlurmTaskShareComesBeforeTheNodes) {
  EXPECT_EQ(read({{"SLURM_STEP_NUM_TASKS", "3"},
                  {"SLURM_CPUS_PER_TASK", "2"},
                  {"SLURM_CPUS_ON_NODE", "6"}})
                .usable,
            2);
  EXPECT_EQ(read({{"SLURM_CPUS_ON_NODE", "6"}}).because,
            "6 cores: SLURM_CPUS_ON_NODE (SLURM_CPUS_ON_NODE=6)");
  EXPECT_EQ(read({{"SLURM_JOB_CPUS_PER_NODE", "4(x2)"}}).usable, 4);
  EXPECT_EQ(read({{"SLURM_JOB_CPUS_PER_NODE", "4(x2),2"}}).usable, 8)
      << "says nothing of this node";
  EXPECT_EQ(read({{"SLURM_CPUS_PER_TASK", "64"}}).usable, 8) << "never more than are here";
}

TEST_F(FakeMachine, TwoThreadsOfACoreAreOneCore) {
  for (int cpu = 0; cpu < 8; ++cpu) topology(cpu, 0, cpu / 2);  // CPUs 0 and 1 share a core, ...
  const CpuLimits limits = read();
  EXPECT_THAT(limits.allowed, ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
  EXPECT_EQ(limits.because, "4 cores: physical cores (8 hardware threads on 4 cores)");
  EXPECT_EQ(read({{"SLURM_CPUS_PER_TASK", "3"}}).usable, 3);
}

TEST_F(FakeMachine, CoresOfASocketStandTogether) {
  for (int cpu = 0; cpu < 8; ++cpu) topology(cpu, cpu % 2, cpu / 2);  // alternating sockets
  EXPECT_THAT(read().allowed, ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
  EXPECT_EQ(read().usable, 8) << "core ids repeat on every socket";
}

TEST_F(FakeMachine, GarbageIsSkipped) {
  v2("/", "/a");
  for (const char* text : {"", "\n", "abc", "100000", "0 100000", "100000 0", "-5 100000",
                           "99999999999999999999 1", "1e5 100000", "max"}) {
    write("/sys/fs/cgroup/a/cpu.max", text);
    EXPECT_EQ(read().usable, 8) << "cpu.max: " << text;
  }
  fs::remove(root_ + "/sys/fs/cgroup/a/cpu.max");
  fs::create_directories(root_ + "/sys/fs/cgroup/a/cpu.max");
  write("/sys/fs/cgroup/cpuset.cpus.effective", "x,3-,-2,9-1,99999999999");
  write("/proc/self/cgroup", "0::/a\nnonsense\n::\n7\n");
  EXPECT_EQ(read({{"SLURM_CPUS_PER_TASK", "many"}, {"SLURM_CPUS_ON_NODE", "-3"}}).usable, 8);
}

TEST_F(FakeMachine, NothingReadableStillGivesOneCore) {
  fs::remove_all(root_ + "/proc");
  fs::remove_all(root_ + "/sys");
  const CpuLimits limits = read();
  EXPECT_EQ(limits.usable, 1);
  EXPECT_THAT(limits.limits, IsEmpty());
  EXPECT_EQ(limits.because, "1 core: no limit could be read");
}

TEST(CpuLimits, HereTheyFitTheAffinityMask) {
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  const CpuLimits& limits = cpu_limits();
  EXPECT_GE(limits.usable, 1);
  EXPECT_LE(limits.usable, CPU_COUNT(&mask));
  for (const int cpu : limits.allowed) EXPECT_TRUE(CPU_ISSET(cpu, &mask)) << cpu;
  EXPECT_THAT(limits.because, HasSubstr(std::to_string(limits.usable)));
}

}  // namespace
}  // namespace howmany
