// SPDX-License-Identifier: Apache-2.0
#include "core/base/amd_gpus.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>

#include "core/base/private_folder.h"

namespace howmany {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A folder in place of / with the files of the driver.
class AmdGpuTree : public ::testing::Test {
 protected:
  AmdGpuTree() { write("dev/kfd", ""); }

  void write(const fs::path& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::binary) << text;
  }
  static fs::path node(int number) {
    return fmt::format("sys/class/kfd/kfd/topology/nodes/{}", number);
  }
  void add_cpu(int number) const {
    write(node(number) / "gpu_id", "0\n");
    write(node(number) / "properties", "cpu_cores_count 64\nsimd_count 0\n");
  }
  // `more` lines come first, so that they win.
  void add_gpu(int number, const std::string& more = "") const {
    write(node(number) / "gpu_id", fmt::format("{}\n", 4000 + number));
    write(node(number) / "properties",
          more + fmt::format("simd_count 440\nvendor_id 4098\ndevice_id 29704\n"
                             "gfx_target_version 90010\nlocation_id {}\ndomain 0\n"
                             "drm_render_minor {}\nunique_id 17\nlocal_mem_size 0\n",
                             (0xc0 + number) << 8, 128 + number));
    write(node(number) / "mem_banks/0/properties", "heap_type 1\nsize_in_bytes 68702699520\n");
    write(fmt::format("dev/dri/renderD{}", 128 + number), "");
  }
  AmdGpus find() const { return find_amd_gpus(root_); }
  AmdGpu only() const {
    const AmdGpus found = find();
    EXPECT_THAT(found.usable, SizeIs(1));
    return found.usable.empty() ? AmdGpu{} : found.usable[0];
  }

  const PrivateFolder folder_;
  const fs::path root_ = folder_.path();
};

TEST_F(AmdGpuTree, AreNoneWithoutTheDriver) {
  EXPECT_THAT(find().usable, IsEmpty());
  EXPECT_EQ(find().because, "");
  add_cpu(0);
  EXPECT_EQ(find().unusable, 0);
}

TEST_F(AmdGpuTree, AreInTheOrderOfTheirNodes) {
  add_cpu(0);
  for (const int number : {10, 2, 9}) add_gpu(number);
  std::vector<int> nodes;
  for (const AmdGpu& gpu : find().usable) nodes.push_back(gpu.node);
  EXPECT_THAT(nodes, ElementsAre(2, 9, 10));
}

TEST_F(AmdGpuTree, HaveNameMemoryAddressAndUuid) {
  add_gpu(1);
  const AmdGpu gpu = only();
  EXPECT_EQ(gpu.name, "AMD Instinct MI250X");
  EXPECT_EQ(gpu.target, "gfx90a");
  EXPECT_EQ(gpu.uuid, "GPU-0000000000000011");
  EXPECT_EQ(gpu.memory_bytes, 68702699520);
  EXPECT_EQ(gpu.pci_address, "0000:c1:00.0");
  EXPECT_FALSE(gpu.integrated);
}

TEST_F(AmdGpuTree, OfUnknownModelsAreNamedByTheProductOrTheTarget) {
  add_gpu(1, "device_id 29772\ngfx_target_version 110000\nunique_id 0\n");
  EXPECT_EQ(only().name, "AMD gfx1100");
  EXPECT_EQ(only().uuid, "");
  write("sys/bus/pci/devices/0000:c1:00.0/product_name", "Radeon \x1b[31mW7900\nmore\n");
  EXPECT_EQ(only().name, "Radeon [31mW7900");
}

TEST_F(AmdGpuTree, OfProcessorsAreMarked) {
  add_gpu(1, "gfx_target_version 110003\n");
  EXPECT_TRUE(only().integrated);
}

TEST_F(AmdGpuTree, HaveTheMemoryOfTheirOwnHeaps) {
  add_gpu(1);
  write(node(1) / "mem_banks/1/properties", "heap_type 2\nsize_in_bytes 1000\n");
  write(node(1) / "mem_banks/2/properties", "heap_type 0\nsize_in_bytes 1000\n");
  EXPECT_EQ(only().memory_bytes, 68702700520);
}

TEST_F(AmdGpuTree, AreLinkedByInfinityFabric) {
  add_gpu(1);
  write(node(1) / "io_links/0/properties", "type 2\nnode_to 0\n");
  write(node(1) / "io_links/1/properties", "type 11\nnode_to 2\n");
  EXPECT_THAT(only().xgmi, ElementsAre(2));
}

TEST_F(AmdGpuTree, ThatACgroupHidesAreLeftOut) {
  add_gpu(1);
  add_gpu(2);
  fs::remove(root_ / node(1) / "gpu_id");  // unreadable, as is its content: EPERM
  fs::create_directory(root_ / node(1) / "gpu_id");
  const AmdGpus found = find();
  EXPECT_THAT(found.usable, SizeIs(1));
  EXPECT_EQ(found.unusable, 1);
  EXPECT_EQ(found.because, "");
  write(node(2) / "properties", "");
  EXPECT_THAT(find().usable, IsEmpty());
  EXPECT_THAT(find().because, HasSubstr("none of them"));
}

TEST_F(AmdGpuTree, NeedTheirDeviceFiles) {
  add_gpu(1);
  fs::remove(root_ / "dev/dri/renderD129");
  EXPECT_THAT(find().usable, IsEmpty());
  add_gpu(1);
  fs::remove(root_ / "dev/kfd");
  EXPECT_THAT(find().usable, IsEmpty());
  EXPECT_THAT(find().because, HasSubstr("/dev/kfd"));
}

TEST_F(AmdGpuTree, OfMalformedFilesHaveNoFacts) {
  add_gpu(
      1,
      "gfx_target_version 99999999999999999999999\nlocation_id -5\ndomain 18446744073709551615\n"
      "unique_id 0x11\ndevice_id \n\n \nnoise\n");
  write(node(1) / "mem_banks/0/properties", "heap_type 1\nsize_in_bytes 18446744073709551615\n");
  write(node(1) / "mem_banks/1/properties", "heap_type 1\nsize_in_bytes 18446744073709551615\n");
  write(node(1) / "io_links/0/properties", "type 11\nnode_to 99999999999\n");
  const AmdGpu gpu = only();
  EXPECT_EQ(gpu.memory_bytes, 0);
  EXPECT_THAT(gpu.xgmi, IsEmpty());
  EXPECT_EQ(gpu.pci_address.substr(0, 5), "ffff:");
}

TEST_F(AmdGpuTree, OfHostileTreesDoNotCrash) {
  write(node(1), "a file in place of a folder");
  write(node(2) / "gpu_id", std::string(1 << 20, '7'));
  write(node(3) / "gpu_id", std::string("\0\xff\n12", 6));
  write(node(4) / "gpu_id", "77");
  write(node(4) / "properties", std::string(1 << 17, '\xff'));
  write(node(4).parent_path() / "18446744073709551617/gpu_id", "1");
  write(node(4).parent_path() / "-1/gpu_id", "1");
  write(node(5) / "gpu_id", "77");
  write(node(5) / "properties",
        "simd_count 4\nvendor_id 4098\ndrm_render_minor 18446744073709551615\n");
  EXPECT_THAT(find().usable, IsEmpty());
}

TEST_F(AmdGpuTree, IntelOnesAreFoundIfTheyAreDiscrete) {
  EXPECT_EQ(intel_gpu_driver(root_), "");
  for (const auto& [address, expected] :
       {std::pair("0000:00:02.0", ""), std::pair("0000:3a:00.0", "xe")}) {
    const fs::path device = fmt::format("sys/devices/pci0000:00/{}", address);
    write(device / "vendor", "0x8086\n");
    write(device / "class", "0x038000\n");
    fs::create_directories(root_ / "sys/bus/pci/drivers/xe");
    fs::create_directory_symlink(root_ / "sys/bus/pci/drivers/xe", root_ / device / "driver");
    const fs::path render = root_ / fmt::format("sys/class/drm/renderD{}", address);
    fs::create_directories(render);
    fs::create_directory_symlink(root_ / device, render / "device");
    EXPECT_EQ(intel_gpu_driver(root_), expected);
  }
}

}  // namespace
}  // namespace howmany
