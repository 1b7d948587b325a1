// SPDX-License-Identifier: Apache-2.0
#include "core/host/near_cores.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "core/base/private_folder.h"
#include "core/host/cpu_limits.h"

namespace howmany {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kGpuIndex = 900;  // exists on no machine

// A temporary folder instead of /sys, with the files of the device 0000:1b:00.0.
class NearCores : public testing::Test {
 protected:
  NearCores() {
    list_ = fs::path(sys_) / "bus/pci/devices/0000:1b:00.0/local_cpulist";
    fs::create_directories(list_.parent_path());
  }

  std::vector<int> read(const std::string& list) const {
    std::ofstream(list_) << list;
    return near_cores("0000:1b:00.0", sys_);
  }

  const PrivateFolder folder_;
  const std::string& sys_ = folder_.path();
  fs::path list_;
};

TEST_F(NearCores, AreThoseOfTheDevicesList) {
  EXPECT_THAT(read("1-3,8\n"), ElementsAre(1, 2, 3, 8));
  EXPECT_THAT(read("24-25,0,72\n"), ElementsAre(0, 24, 25, 72));
  EXPECT_THAT(near_cores("0000:1c:00.0", sys_), IsEmpty()) << "another device";
}

TEST_F(NearCores, AreFoundByTheAddressAsCudaWritesIt) {
  read("5\n");
  EXPECT_THAT(near_cores("0000:1B:00.0", sys_), ElementsAre(5));
}

TEST_F(NearCores, AreNoneWhereTheSystemSaysNothing) {
  EXPECT_THAT(near_cores("0000:1b:00.0", sys_), IsEmpty()) << "no file";
  EXPECT_THAT(read(""), IsEmpty());
  EXPECT_THAT(read("\n"), IsEmpty());
  EXPECT_THAT(read("7\n"), ElementsAre(7));
  fs::rename(list_, fs::path(sys_) / "bus/pci/devices/local_cpulist");
  EXPECT_THAT(near_cores("", sys_), IsEmpty()) << "no address";
  fs::create_directories(list_);
  EXPECT_THAT(near_cores("0000:1b:00.0", sys_), IsEmpty()) << "a folder in its place";
}

TEST_F(NearCores, PartsThatMakeNoSenseAreSkipped) {
  for (const char* list :
       {"x", ",", "-", "3-", "-2", "9-1", "0-99999999999", "65536", "1 2", "0x3"})
    EXPECT_THAT(read(list), IsEmpty()) << list;
  EXPECT_THAT(read("x,3-,2,9-1,,4-5,99999999999"), ElementsAre(2, 4, 5));
}

TEST_F(NearCores, NoTextMakesAnythingButCoresInOrder) {
  std::mt19937 random(1);  // fixed seed
  const std::string letters("0123456789,,,---x \0", 19);
  for (int i = 0; i < 500; ++i) {
    std::string list(random() % 24, ' ');
    for (char& c : list) c = letters[random() % letters.size()];
    const std::vector<int> cores = read(list);
    EXPECT_TRUE(std::ranges::is_sorted(cores)) << list;
    EXPECT_TRUE(cores.empty() || (cores.front() >= 0 && cores.back() < 1 << 16)) << list;
  }
}

TEST(UsableNearCores, AreThoseThatThisProcessMayUse) {
  const std::vector<int>& allowed = cpu_limits().allowed;
  if (allowed.size() < 2) GTEST_SKIP() << cpu_limits().because;
  set_near_cores(kGpuIndex, {allowed[1], 60'000});
  EXPECT_THAT(usable_near_cores(kGpuIndex), ElementsAre(allowed[1]));
}

TEST(UsableNearCores, AreNoneWhereThereIsNothingToChoose) {
  set_near_cores(kGpuIndex, {});
  EXPECT_THAT(usable_near_cores(kGpuIndex), IsEmpty()) << "none is known";
  set_near_cores(kGpuIndex, {60'000, 60'001});
  EXPECT_THAT(usable_near_cores(kGpuIndex), IsEmpty()) << "none may be used";
  set_near_cores(kGpuIndex, cpu_limits().allowed);
  EXPECT_THAT(usable_near_cores(kGpuIndex), IsEmpty()) << "all are near";
  EXPECT_THAT(usable_near_cores(kGpuIndex + 1), IsEmpty()) << "no such GPU";
}

}  // namespace
}  // namespace howmany
