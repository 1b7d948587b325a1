// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/device.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <set>

#include "core/base/error.h"
#include "core/gpu/gpu.h"

namespace howmany {
namespace {

constexpr int kMostDefaultDevices = 8;  // as many as the GPUs of a typical node
constexpr int kMostDevices = 4096;      // rejects typing errors such as "cpu:0-99999999"

constexpr std::string_view kUuid = "GPU-";

// "cuda:GPU-8932f937", or the UUID alone.
bool names_gpu(std::string_view device) {
  return device.starts_with(kUuid) || device.substr(device.find(':') + 1).starts_with(kUuid);
}

int parse_index(std::string_view digits, std::string_view whole) {
  int index = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  HM_REQUIRE(error == std::errc{} && end == digits.data() + digits.size() && index >= 0,
             "[device] '{}' is not a device: expected cpu:<k>, cuda:<k> or a GPU's UUID", whole);
  return index;
}

// Returns the index of the one visible GPU whose UUID has this prefix.
int index_of_gpu(std::string_view uuid) {
  std::vector<int> found;
  for (int index = 0; index < gpu::count(); ++index)
    if (gpu::uuid(index).starts_with(uuid)) found.push_back(index);
  HM_REQUIRE(!found.empty(),
             "[device] no GPU's UUID begins with {}: `howmany devices` lists those here", uuid);
  HM_REQUIRE(found.size() == 1, "[device] the UUIDs of {} GPUs begin with {}: write more of it",
             found.size(), uuid);
  return found[0];
}

Device parse_device(std::string_view text, std::string_view whole) {
  const size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  if (names_gpu(text) && (kind == "cuda" || colon == text.npos))
    return {DeviceType::cuda, index_of_gpu(text.substr(text.find(kUuid)))};
  HM_REQUIRE(kind == "cpu" || kind == "cuda",
             "[device] '{}' is not a device: expected cpu:<k>, cuda:<k> or a GPU's UUID", whole);
  const int index = colon == text.npos ? 0 : parse_index(text.substr(colon + 1), whole);
  return {kind == "cpu" ? DeviceType::cpu : DeviceType::cuda, index};
}

// "cpu:0-3" or one device.
std::vector<Device> parse_range(std::string_view text) {
  const size_t dash = names_gpu(text) ? text.npos : text.find('-');
  const Device first = parse_device(text.substr(0, dash), text);
  if (dash == std::string_view::npos) return {first};
  HM_REQUIRE(text.find(':') != std::string_view::npos,
             "[device] '{}' is not a range of devices: expected cpu:0-3", text);
  const int last = parse_index(text.substr(dash + 1), text);
  HM_REQUIRE(last >= first.index && last - first.index < kMostDevices,
             "[device] '{}' is not a range of devices: expected cpu:0-3", text);
  std::vector<Device> devices;
  for (int index = first.index; index <= last; ++index) devices.push_back({first.type, index});
  return devices;
}

std::atomic<int>& configured_cores() {
  static std::atomic<int> cores{1};
  return cores;
}

int first_core(int index) { return index % cpu_device_count() * cores_per_device(); }

}  // namespace

std::string Device::str() const {
  constexpr const char* kNames[] = {"cpu", "cuda", "meta"};
  return fmt::format("{}:{}", kNames[static_cast<int>(type)], index);
}

Device Device::parse(std::string_view text) { return parse_device(text, text); }

std::vector<Device> parse_devices(std::string_view list) {
  std::vector<Device> devices;
  std::set<Device> seen;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    for (const Device& device : parse_range(list.substr(begin, end - begin))) {
      const bool is_new = seen.insert(device).second;
      HM_REQUIRE(is_new || device.type == DeviceType::cuda, "[device] {} is listed twice in '{}'",
                 device.str(), list);
      devices.push_back(device);
    }
    begin = end + 1;
  }
  return devices;
}

CpuPlan default_cpu_plan(const CpuLimits& limits) {
  const int devices = std::min(kMostDefaultDevices, limits.usable);
  return {devices, limits.usable / devices};
}

void configure_cpu_devices(CpuDevices config) {
  const int usable = cpu_limits().usable;
  HM_REQUIRE(config.cores_per_device >= 1 && config.cores_per_device <= usable,
             "[device] cores per device is {}, expected 1 to {} ({})", config.cores_per_device,
             usable, cpu_limits().because);
  configured_cores() = config.cores_per_device;
}

int cpu_device_count() { return cpu_limits().usable / cores_per_device(); }

int cores_per_device() { return configured_cores(); }

std::vector<int> cpu_slice(int index) {
  HM_REQUIRE(index >= 0, "[device] cpu:{} is not a device", index);
  const auto begin = cpu_limits().allowed.begin() + first_core(index);
  return {begin, begin + cores_per_device()};
}

bool oversubscribed(const std::vector<Device>& devices) {
  std::set<int> used;
  return share_gpus(devices) || std::ranges::any_of(devices, [&](const Device& device) {
           return device.type == DeviceType::cpu && !used.insert(first_core(device.index)).second;
         });
}

bool share_gpus(const std::vector<Device>& devices) {
  std::set<int> used;
  return std::ranges::any_of(devices, [&](const Device& device) {
    return device.type == DeviceType::cuda && !used.insert(device.index).second;
  });
}

}  // namespace howmany
