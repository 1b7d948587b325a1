// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "benches/common/gpu_source.h"
#include "core/gpu/gpu.h"

namespace howmany::benches {
namespace {

using nlohmann::json;

constexpr const char* kCudaList = "CUDA_VISIBLE_DEVICES";

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
std::filesystem::path folder_of(std::string address) {
  if (address.find(':') == 8) address.erase(0, 4);
  for (char& c : address) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return "/sys/bus/pci/devices/" + address;
}

void add_bus(const Nvml& nvml, Handle gpu, json& found) {
  if (NvmlPci pci{}; nvml.call("nvmlDeviceGetPciInfo_v3", gpu, &pci)) {
    pci.bus_id[sizeof pci.bus_id - 1] = 0;
    found["pci_bus"] = pci.bus_id;
    add_place(folder_of(pci.bus_id), found);
  }
  unsigned value = 0, pending = 0;
  if (nvml.call("nvmlDeviceGetMaxPcieLinkGeneration", gpu, &value))
    found["pcie_generation"] = value;
  if (nvml.call("nvmlDeviceGetMaxPcieLinkWidth", gpu, &value)) found["pcie_width"] = value;
  if (nvml.call("nvmlDeviceGetMigMode", gpu, &value, &pending)) found["mig"] = value == 1;
}

json describe(const Nvml& nvml, unsigned index) {
  json found{{"vendor", "nvidia"}};
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

std::string link_between(const Nvml& nvml, const json& from, const json& to) {
  const std::string ours = from.value("uuid", ""), theirs = to.value("uuid", "");
  Handle a = nullptr, b = nullptr;
  int level = 0;
  if (!nvml.call("nvmlDeviceGetHandleByUUID", ours.c_str(), &a) ||
      !nvml.call("nvmlDeviceGetHandleByUUID", theirs.c_str(), &b))
    return "";
  if (const int links = nvlinks(nvml, a, to.value("pci_bus", "-")); links > 0)
    return fmt::format("NV{}", links);
  if (!nvml.call("nvmlDeviceGetTopologyCommonAncestor", a, b, &level)) return "";
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
json as_cuda_has_them(const std::vector<json>& all) {
  json list = json::array();
  for (int index = 0; index < gpu::count(); ++index) {
    const std::string uuid = gpu::uuid(index);
    const auto is_it = [&](const json& found) { return found.value("uuid", "") == uuid; };
    const auto found = std::ranges::find_if(all, is_it);
    list.push_back(found != all.end()
                       ? *found
                       : json{{"vendor", "nvidia"}, {"name", gpu::name(index)}, {"uuid", uuid}});
  }
  return list;
}

json as_is_to_be_seen(const std::vector<json>& all) {
  std::vector<std::string> uuids;
  for (const json& found : all) uuids.push_back(found.value("uuid", ""));
  json list = json::array();
  for (const size_t index : visible_gpus(uuids, std::getenv(kCudaList), GpuListReader::cuda))
    list.push_back(all[index]);
  return list;
}

// Containers that were given "compute" only have the driver of CUDA, and not NVML.
bool has_cuda_driver() {
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library != nullptr) dlclose(library);
  return library != nullptr;
}

class NvidiaSource : public GpuSource {
 public:
  NvidiaSource() : status_(nvml_ ? nvml_.status("nvmlInit_v2") : kNoLibrary) {}
  ~NvidiaSource() override {
    if (status_ == 0) nvml_.call("nvmlShutdown");
  }
  NvidiaSource(const NvidiaSource&) = delete;
  NvidiaSource& operator=(const NvidiaSource&) = delete;

  Gpus find() override {
    Gpus gpus;
    if (status_ == kNoLibrary) {
      gpus.unknown = has_cuda_driver();
      if (gpus.unknown) gpus.because = "NVIDIA's driver is here without NVML, which lists GPUs";
      return gpus;
    }
    if (status_ != 0) {
      gpus.because = "the NVIDIA driver does not start: " + nvml_.text(status_);
      return gpus;
    }
    std::array<char, 96> version{};
    if (nvml_.call("nvmlSystemGetDriverVersion", version.data(),
                   static_cast<unsigned>(version.size())))
      gpus.driver = terminated(version);
    const std::vector<json> all = described(nvml_);
    gpus.list = gpu::count() > 0 ? as_cuda_has_them(all) : as_is_to_be_seen(all);
    gpus.hidden = static_cast<int>(all.size() - std::min(all.size(), gpus.list.size()));
    gpus.hidden_by = kCudaList;
    if (all.empty()) gpus.because = "the NVIDIA driver shows no GPU to this process";
    return gpus;
  }

  std::string link(const json& from, const json& to) override {
    return status_ == 0 ? link_between(nvml_, from, to) : "";
  }

  GpuUse use(const json& gpu) override {
    GpuUse use;
    const std::string uuid = gpu.value("uuid", "");
    Handle handle = nullptr;
    if (status_ != 0 || !nvml_.call("nvmlDeviceGetHandleByUUID", uuid.c_str(), &handle)) return use;
    if (NvmlUtilization now{}; nvml_.call("nvmlDeviceGetUtilizationRates", handle, &now))
      use.utilisation = now.gpu / 100.0;
    if (NvmlMemory memory{}; nvml_.call("nvmlDeviceGetMemoryInfo", handle, &memory))
      use.memory_bytes = static_cast<double>(memory.used);
    return use;
  }

 private:
  static constexpr int kNoLibrary = -2;
  Nvml nvml_;
  int status_;
};

}  // namespace

std::unique_ptr<GpuSource> nvidia_source() { return std::make_unique<NvidiaSource>(); }

}  // namespace howmany::benches
