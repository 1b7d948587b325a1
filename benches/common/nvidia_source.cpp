// SPDX-License-Identifier: Apache-2.0
#include "benches/common/gpus.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "core/base/statistics.h"
#include "core/gpu/gpu.h"
#include "core/host/cgroup.h"

namespace howmany::benches {
namespace {

using nlohmann::json;

// The part of NVML's stable interface that is used; 0 is success.
using Handle = struct NvmlDevice*;
struct NvmlMemory {
  unsigned long long total, free, used;
};
struct NvmlUtilization {
  unsigned gpu, memory;  // percent
};
struct NvmlPci {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

class Nvml {
 public:
  Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL), close) {}

  explicit operator bool() const { return library_ != nullptr; }

  // Calls `symbol` if the driver has it. Returns true on success.
  template <class... Args>
  bool call(const char* symbol, Args... args) const {
    return status(symbol, args...) == 0;
  }
  template <class... Args>
  int status(const char* symbol, Args... args) const {
    const auto function = reinterpret_cast<int (*)(Args...)>(dlsym(library_.get(), symbol));
    return function ? function(args...) : -1;
  }
  std::string text(int status) const {
    const auto function =
        reinterpret_cast<const char* (*)(int)>(dlsym(library_.get(), "nvmlErrorString"));
    return function && status >= 0 ? function(status) : "the call is missing";
  }

 private:
  static void close(void* library) { dlclose(library); }
  std::unique_ptr<void, void (*)(void*)> library_;
};

template <size_t size>
std::string terminated(std::array<char, size>& text) {
  text.back() = 0;
  return text.data();
}

// NVML's PCI addresses have a domain of eight digits, those of sysfs have four.
void add_place(std::string address, json& found) {
  if (address.find(':') == 8) address.erase(0, 4);
  for (char& c : address) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const std::filesystem::path place = "/sys/bus/pci/devices/" + address;
  if (const auto near = read_line(place / "local_cpulist"); near && !near->empty())
    found["near_cores"] = *near;
  int node = -1;
  std::ifstream(place / "numa_node") >> node;
  if (node >= 0) found["numa_node"] = node;
}

void add_bus(const Nvml& nvml, Handle gpu, json& found) {
  if (NvmlPci pci{}; nvml.call("nvmlDeviceGetPciInfo_v3", gpu, &pci)) {
    pci.bus_id[sizeof pci.bus_id - 1] = 0;
    found["pci_bus"] = pci.bus_id;
    add_place(pci.bus_id, found);
  }
  unsigned value = 0, pending = 0;
  if (nvml.call("nvmlDeviceGetMaxPcieLinkGeneration", gpu, &value))
    found["pcie_generation"] = value;
  if (nvml.call("nvmlDeviceGetMaxPcieLinkWidth", gpu, &value)) found["pcie_width"] = value;
  if (nvml.call("nvmlDeviceGetMigMode", gpu, &value, &pending)) found["mig"] = value == 1;
}

json describe(const Nvml& nvml, unsigned index) {
  json found{{"index", index}};
  Handle gpu = nullptr;
  if (!nvml.call("nvmlDeviceGetHandleByIndex_v2", index, &gpu)) return found;
  std::array<char, 96> name{};
  if (nvml.call("nvmlDeviceGetName", gpu, name.data(), static_cast<unsigned>(name.size())))
    found["name"] = terminated(name);
  std::array<char, 96> uuid{};
  if (nvml.call("nvmlDeviceGetUUID", gpu, uuid.data(), static_cast<unsigned>(uuid.size())))
    found["uuid"] = terminated(uuid);
  if (NvmlMemory memory{}; nvml.call("nvmlDeviceGetMemoryInfo", gpu, &memory)) {
    found["memory_bytes"] = memory.total;
    found["memory_free_bytes"] = memory.free;
  }
  int major = 0, minor = 0;
  if (nvml.call("nvmlDeviceGetCudaComputeCapability", gpu, &major, &minor))
    found["compute_capability"] = fmt::format("{}.{}", major, minor);
  add_bus(nvml, gpu, found);
  return found;
}

// Counts the links to the other GPU, or to a switch that connects all GPUs.
int nvlinks(const Nvml& nvml, Handle gpu, const std::string& other_bus) {
  constexpr unsigned kMaxLinks = 18;
  constexpr int kSwitch = 2;
  int links = 0;
  for (unsigned link = 0; link < kMaxLinks; ++link) {
    int active = 0, remote = -1;
    if (!nvml.call("nvmlDeviceGetNvLinkState", gpu, link, &active) || active == 0) continue;
    nvml.call("nvmlDeviceGetNvLinkRemoteDeviceType", gpu, link, &remote);
    NvmlPci pci{};
    nvml.call("nvmlDeviceGetNvLinkRemotePciInfo_v2", gpu, link, &pci);
    pci.bus_id[sizeof pci.bus_id - 1] = 0;
    links += remote == kSwitch || other_bus == pci.bus_id ? 1 : 0;
  }
  return links;
}

std::string over_pcie(int level) {
  if (level <= 10) return "PIX";
  if (level <= 20) return "PXB";
  if (level <= 30) return "PHB";
  return level <= 40 ? "NODE" : "SYS";
}

// Returns null if the driver does not report the link.
json link_between(const Nvml& nvml, const json& from, const json& to) {
  const std::string ours = from.value("uuid", ""), theirs = to.value("uuid", "");
  Handle a = nullptr, b = nullptr;
  int level = 0;
  if (!nvml.call("nvmlDeviceGetHandleByUUID", ours.c_str(), &a) ||
      !nvml.call("nvmlDeviceGetHandleByUUID", theirs.c_str(), &b))
    return {};
  if (const int links = nvlinks(nvml, a, to.value("pci_bus", "-")); links > 0)
    return fmt::format("NV{}", links);
  if (!nvml.call("nvmlDeviceGetTopologyCommonAncestor", a, b, &level)) return {};
  return over_pcie(level);
}

std::vector<json> described(const Nvml& nvml) {
  unsigned count = 0;
  nvml.call("nvmlDeviceGetCount_v2", &count);
  std::vector<json> all;
  for (unsigned index = 0; index < count; ++index) all.push_back(describe(nvml, index));
  return all;
}

// Returns the GPUs in the order of the CUDA runtime, which can differ from the driver's. The
// runtime may also list MIG instances that the driver does not.
std::vector<json> as_cuda_has_them(const std::vector<json>& all) {
  std::vector<json> list;
  for (int index = 0; index < gpu::count(); ++index) {
    const std::string uuid = gpu::uuid(index);
    const auto is_it = [&](const json& found) { return found.value("uuid", "") == uuid; };
    const auto found = std::ranges::find_if(all, is_it);
    list.push_back(found != all.end() ? *found : json{{"name", gpu::name(index)}, {"uuid", uuid}});
  }
  return list;
}

std::vector<json> as_is_to_be_seen(const std::vector<json>& all) {
  std::vector<std::string> uuids;
  for (const json& found : all) uuids.push_back(found.value("uuid", ""));
  std::vector<json> list;
  for (const size_t index : visible_gpus(uuids, std::getenv("CUDA_VISIBLE_DEVICES")))
    list.push_back(all[index]);
  return list;
}

void add_gpus(const Nvml& nvml, Gpus& gpus) {
  const std::vector<json> all = described(nvml);
  std::vector<json> list = gpu::count() > 0 ? as_cuda_has_them(all) : as_is_to_be_seen(all);
  for (json& found : list) {
    found["index"] = gpus.list.size();
    gpus.list.push_back(std::move(found));
  }
  gpus.hidden = static_cast<int>(all.size() - std::min(all.size(), list.size()));
  if (all.empty()) gpus.because = "the NVIDIA driver shows no GPU to this process";
  if (!all.empty() && list.empty()) gpus.because = "CUDA_VISIBLE_DEVICES hides them all";
}

}  // namespace

Gpus find_gpus() {
  Gpus gpus;
  const Nvml nvml;
  if (!nvml) {
    gpus.because = "no NVIDIA driver found";
    return gpus;
  }
  if (const int status = nvml.status("nvmlInit_v2"); status != 0) {
    gpus.because = "the NVIDIA driver does not start: " + nvml.text(status);
    return gpus;
  }
  std::array<char, 96> version{};
  if (nvml.call("nvmlSystemGetDriverVersion", version.data(),
                static_cast<unsigned>(version.size())))
    gpus.driver = terminated(version);
  add_gpus(nvml, gpus);
  nvml.call("nvmlShutdown");
  return gpus;
}

nlohmann::json find_gpu_links(const nlohmann::json& gpus) {
  json links = json::array();
  const Nvml nvml;
  if (gpus.size() < 2 || !nvml || nvml.status("nvmlInit_v2") != 0) return links;
  for (size_t to = 0; to < gpus.size(); ++to)
    for (size_t from = 0; from < to; ++from)
      if (const json link = link_between(nvml, gpus[from], gpus[to]); !link.is_null())
        links.push_back({{"from", from}, {"to", to}, {"link", link}});
  nvml.call("nvmlShutdown");
  return links;
}

struct GpuMeter::Driver {
  Nvml nvml;
  std::vector<Handle> gpus;
};

GpuMeter::GpuMeter(const std::vector<int>& indices) {
  auto driver = std::make_unique<Driver>();
  const Nvml& nvml = driver->nvml;
  if (indices.empty() || !nvml || nvml.status("nvmlInit_v2") != 0) return;
  const std::vector<json> seen = as_is_to_be_seen(described(nvml));
  for (const int index : indices) {
    if (index < 0 || static_cast<size_t>(index) >= seen.size()) continue;
    const std::string uuid = seen[static_cast<size_t>(index)].value("uuid", "");
    if (Handle gpu{}; nvml.call("nvmlDeviceGetHandleByUUID", uuid.c_str(), &gpu))
      driver->gpus.push_back(gpu);
  }
  driver_ = std::move(driver);
}

GpuMeter::~GpuMeter() {
  if (driver_) driver_->nvml.call("nvmlShutdown");
}

void GpuMeter::sample() {
  if (!driver_) return;
  for (Handle gpu : driver_->gpus) {
    NvmlUtilization use{};
    if (!driver_->nvml.call("nvmlDeviceGetUtilizationRates", gpu, &use)) continue;
    percent_ += use.gpu;
    ++samples_;
    if (NvmlMemory memory{}; driver_->nvml.call("nvmlDeviceGetMemoryInfo", gpu, &memory))
      most_bytes_ = std::max(most_bytes_, static_cast<double>(memory.used));
  }
}

double GpuMeter::utilisation() const { return samples_ == 0 ? kNaN : percent_ / samples_ / 100; }

double GpuMeter::memory_bytes() const { return most_bytes_ > 0 ? most_bytes_ : kNaN; }

std::vector<size_t> visible_gpus(const std::vector<std::string>& uuids, const char* variable) {
  std::vector<size_t> seen;
  for (size_t i = 0; variable == nullptr && i < uuids.size(); ++i) seen.push_back(i);
  if (variable == nullptr) return seen;
  std::istringstream list(variable);
  for (std::string word; std::getline(list, word, ',');) {
    word.erase(0, word.find_first_not_of(' '));
    const auto is_it = [&](const std::string& uuid) {
      return word.starts_with("GPU-") && uuid.starts_with(word);
    };
    size_t index = uuids.size();
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
    if (error != std::errc() || end != word.data() + word.size()) {
      const bool one = std::ranges::count_if(uuids, is_it) == 1;
      index = one ? static_cast<size_t>(std::ranges::find_if(uuids, is_it) - uuids.begin())
                  : uuids.size();
    }
    if (index >= uuids.size()) break;
    if (std::ranges::find(seen, index) != seen.end()) return {};  // CUDA sees no GPU then
    seen.push_back(index);
  }
  return seen;
}

}  // namespace howmany::benches
