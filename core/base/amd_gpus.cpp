// SPDX-License-Identifier: Apache-2.0
#include "core/base/amd_gpus.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>

namespace howmany {
namespace {

namespace fs = std::filesystem;

constexpr std::streamsize kMaxFile = 1 << 16;  // sysfs files have at most one page
constexpr int kMaxNodes = 4096;
constexpr uint64_t kMaxMemory = uint64_t{1} << 50;  // a larger size is malformed
constexpr uint64_t kAmd = 0x1002;
constexpr uint64_t kPublicHeap = 1, kPrivateHeap = 2;  // of mem_banks: the GPU's own memory
constexpr uint64_t kXgmi = 11;                         // type of io_links

// libdrm's data/amdgpu.ids, without revisions, which do not differ for these.
constexpr std::pair<uint64_t, const char*> kNames[] = {
    {0x738c, "MI100"},  {0x7408, "MI250X"}, {0x740c, "MI250X/MI250"}, {0x740f, "MI210"},
    {0x74a0, "MI300A"}, {0x74a1, "MI300X"}, {0x74a5, "MI325X"},       {0x74a9, "MI300X"},
    {0x74b5, "MI300X"}, {0x74bd, "MI300X"}, {0x75a0, "MI350X"},       {0x75a3, "MI355X"},
    {0x75b0, "MI350X"}, {0x75b3, "MI355X"}};

// The graphics of processors for desktops and laptops, by the LLVM target (AMDGPUUsage.rst, "APU").
constexpr std::string_view kIntegrated[] = {"gfx801",  "gfx902",  "gfx909",  "gfx90c",  "gfx1013",
                                            "gfx1033", "gfx1035", "gfx1036", "gfx1037", "gfx1103",
                                            "gfx1150", "gfx1151", "gfx1152", "gfx1153"};

// Returns nullopt if the file cannot be read, as that of a GPU that a cgroup hides.
std::optional<std::string> read_small(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(static_cast<size_t>(kMaxFile), '\0');
  file.read(text.data(), kMaxFile);
  if (file.bad() || file.gcount() <= 0) return {};
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

std::optional<uint64_t> number_in(std::string_view text, int base = 10) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return {};
  text = text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

// The numbers of a file with lines such as "simd_count 440". A malformed line counts as absent.
class Properties {
 public:
  explicit Properties(const fs::path& path) {
    std::istringstream lines(read_small(path).value_or(""));
    for (std::string line; std::getline(lines, line);) {
      const size_t space = line.find(' ');
      if (space == line.npos) continue;
      if (const auto value = number_in(std::string_view(line).substr(space)))
        values_.try_emplace(line.substr(0, space), *value);
    }
  }
  uint64_t operator[](const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? 0 : found->second;
  }

 private:
  std::map<std::string, uint64_t> values_;
};

// Returns the folders that have a number for a name, in ascending order.
std::map<int, fs::path> numbered_folders(const fs::path& folder) {
  std::map<int, fs::path> all;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const auto number = number_in(entry.path().filename().string());
    if (number && *number < kMaxNodes) all.emplace(static_cast<int>(*number), entry.path());
  }
  return all;
}

std::string target_of(uint64_t version) {
  const uint64_t major = version / 10'000, minor = version / 100 % 100, step = version % 100;
  if (major == 0 || major > 99) return "";
  return fmt::format("gfx{}{:x}{:x}", major, minor, step);
}

// Printable ASCII, because the name reaches terminals and results.
std::string printable_line(const fs::path& path) {
  constexpr size_t kMaxName = 96;
  const std::string text = read_small(path).value_or("");
  std::string line = text.substr(0, std::min(text.find('\n'), kMaxName));
  std::erase_if(line, [](char c) { return c < ' ' || c > '~'; });
  return line;
}

std::string name_of(const AmdGpu& gpu, uint64_t device_id) {
  const auto known = std::ranges::find(kNames, device_id, &std::pair<uint64_t, const char*>::first);
  if (known != std::end(kNames)) return fmt::format("AMD Instinct {}", known->second);
  if (std::string name = printable_line(gpu.device / "product_name"); !name.empty()) return name;
  return gpu.target.empty() ? fmt::format("AMD GPU {:04x}", device_id & 0xffff)
                            : "AMD " + gpu.target;
}

uint64_t memory_of(const fs::path& node) {
  uint64_t all = 0;
  for (const auto& [number, bank] : numbered_folders(node / "mem_banks")) {
    const Properties properties(bank / "properties");
    const uint64_t heap = properties["heap_type"], size = properties["size_in_bytes"];
    if ((heap == kPublicHeap || heap == kPrivateHeap) && size < kMaxMemory) all += size;
  }
  return all < kMaxMemory ? all : 0;
}

std::vector<int> xgmi_of(const fs::path& node) {
  std::vector<int> nodes;
  for (const auto& [number, link] : numbered_folders(node / "io_links")) {
    const Properties properties(link / "properties");
    if (properties["type"] == kXgmi && properties["node_to"] < kMaxNodes)
      nodes.push_back(static_cast<int>(properties["node_to"]));
  }
  return nodes;
}

// The highest bits of the location number the partitions of a GPU.
std::string pci_address(const Properties& node) {
  const uint64_t place = node["location_id"];
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", node["domain"] & 0xffff, place >> 8 & 0xff,
                     place >> 3 & 0x1f, place & 7);
}

AmdGpu describe(int number, const fs::path& folder, const Properties& node, const fs::path& root) {
  AmdGpu gpu{.node = number,
             .name = "",
             .target = target_of(node["gfx_target_version"]),
             .uuid = "",
             .memory_bytes = memory_of(folder),
             .pci_address = pci_address(node),
             .device = {}};
  gpu.device = root / "sys/bus/pci/devices" / gpu.pci_address;
  gpu.name = name_of(gpu, node["device_id"]);
  if (node["unique_id"] != 0) gpu.uuid = fmt::format("GPU-{:016x}", node["unique_id"]);
  gpu.integrated = std::ranges::find(kIntegrated, gpu.target) != std::end(kIntegrated);
  gpu.xgmi = xgmi_of(folder);
  return gpu;
}

bool can_open(const fs::path& device) { return ::access(device.c_str(), R_OK | W_OK) == 0; }

std::string why_none(const fs::path& root) {
  const fs::path kfd = root / "dev/kfd";
  if (std::error_code none; !fs::exists(kfd, none))
    return "AMD GPUs are here, but /dev/kfd is not in this container or job";
  if (!can_open(kfd))
    return "AMD GPUs are here, but this user may not open /dev/kfd: membership in its group "
           "(usually render) is needed";
  return "AMD GPUs are here, but this process was given none of them (device cgroup or /dev/dri)";
}

}  // namespace

AmdGpus find_amd_gpus(const fs::path& root) {
  AmdGpus found;
  const bool kfd = can_open(root / "dev/kfd");
  for (const auto& [number, folder] : numbered_folders(root / "sys/class/kfd/kfd/topology/nodes")) {
    const auto id = read_small(folder / "gpu_id");
    if (id && number_in(*id).value_or(0) == 0) continue;  // a CPU
    const Properties node(folder / "properties");
    const uint64_t minor = node["drm_render_minor"];
    const bool usable = kfd && id && node["simd_count"] > 0 && node["vendor_id"] == kAmd &&
                        can_open(root / fmt::format("dev/dri/renderD{}", minor));
    if (usable)
      found.usable.push_back(describe(number, folder, node, root));
    else
      ++found.unusable;
  }
  if (found.usable.empty() && found.unusable > 0) found.because = why_none(root);
  return found;
}

std::string intel_gpu_driver(const fs::path& root) {
  constexpr uint64_t kIntel = 0x8086, kDisplay = 0x03;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(root / "sys/class/drm", none)) {
    if (!entry.path().filename().string().starts_with("renderD")) continue;
    const fs::path device = entry.path() / "device";
    const auto hexadecimal = [&](const char* file) {
      const std::string text = read_small(device / file).value_or("");
      return number_in(text.starts_with("0x") ? text.substr(2) : "", 16).value_or(0);
    };
    if (hexadecimal("vendor") != kIntel || hexadecimal("class") >> 16 != kDisplay) continue;
    const std::string driver = fs::read_symlink(device / "driver", none).filename();
    const std::string place = fs::canonical(device, none).filename();
    // The graphics of a processor are device 2 of the first bus.
    if ((driver == "xe" || driver == "i915") && !place.starts_with("0000:00:02.")) return driver;
  }
  return "";
}

fs::path system_root() {
  const char* const given = std::getenv("HOWMANY_ROOT");
  return given == nullptr || *given == '\0' ? "/" : given;
}

}  // namespace howmany
