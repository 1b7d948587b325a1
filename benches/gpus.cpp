#include "benches/gpus.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <array>
#include <memory>

namespace howmany::benches {
namespace {

using nlohmann::json;

// The part of NVML's stable interface that is used; 0 is success.
using Handle = struct NvmlDevice*;
struct NvmlMemory {
  unsigned long long total, free, used;
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

  // Calls `symbol` when the driver has it; true on success.
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

void add_links(const Nvml& nvml, Handle gpu, json& found) {
  if (NvmlPci pci{}; nvml.call("nvmlDeviceGetPciInfo_v3", gpu, &pci)) {
    pci.bus_id[sizeof pci.bus_id - 1] = 0;
    found["pci_bus"] = pci.bus_id;
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
  if (NvmlMemory memory{}; nvml.call("nvmlDeviceGetMemoryInfo", gpu, &memory)) {
    found["memory_bytes"] = memory.total;
    found["memory_free_bytes"] = memory.free;
  }
  int major = 0, minor = 0;
  if (nvml.call("nvmlDeviceGetCudaComputeCapability", gpu, &major, &minor))
    found["compute_capability"] = fmt::format("{}.{}", major, minor);
  add_links(nvml, gpu, found);
  return found;
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
  unsigned count = 0;
  nvml.call("nvmlDeviceGetCount_v2", &count);
  for (unsigned index = 0; index < count; ++index) gpus.list.push_back(describe(nvml, index));
  if (count == 0) gpus.because = "the NVIDIA driver shows no GPU to this process";
  nvml.call("nvmlShutdown");
  return gpus;
}

}  // namespace howmany::benches
