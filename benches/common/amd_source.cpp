// SPDX-License-Identifier: Apache-2.0
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

#include "benches/common/gpu_source.h"
#include "core/base/amd_gpus.h"
#include "core/host/cgroup.h"

namespace howmany::benches {
namespace {

using nlohmann::json;

std::optional<double> number_of(const std::filesystem::path& file) {
  const std::string text = read_line(file).value_or("");
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value >= 0 && value < 1e18)) return {};
  return value;
}

// The driver of DKMS has a version of its own, that of the kernel has none.
std::string driver_version(const std::filesystem::path& root) {
  if (const auto version = read_line(root / "sys/module/amdgpu/version"))
    return "amdgpu " + *version;
  utsname names{};
  return uname(&names) == 0 ? std::string("amdgpu of Linux ") + names.release : "amdgpu";
}

json describe(const AmdGpu& gpu) {
  json found{{"vendor", "amd"},
             {"name", gpu.name},
             {"pci_bus", gpu.pci_address},
             {"integrated", gpu.integrated}};
  if (!gpu.uuid.empty()) found["uuid"] = gpu.uuid;
  if (!gpu.target.empty()) found["target"] = gpu.target;
  if (gpu.memory_bytes > 0) found["memory_bytes"] = gpu.memory_bytes;
  add_place(gpu.device, found);
  return found;
}

class AmdSource : public GpuSource {
 public:
  explicit AmdSource(const std::filesystem::path& root) : root_(root), all_(find_amd_gpus(root)) {}

  Gpus find() override {
    Gpus gpus;
    gpus.vendor = GpuVendor::amd;
    gpus.because = all_.because;
    if (all_.usable.empty()) return gpus;
    gpus.driver = driver_version(root_);
    shown_ = all_.usable;
    select("ROCR_VISIBLE_DEVICES", GpuListReader::rocr, gpus);
    const char* const hip = std::getenv(kHipList);
    select(hip != nullptr && *hip != '\0' ? kHipList : "CUDA_VISIBLE_DEVICES", GpuListReader::hip,
           gpus);
    for (const AmdGpu& gpu : shown_) gpus.list.push_back(describe(gpu));
    gpus.hidden = static_cast<int>(all_.usable.size() - shown_.size());
    return gpus;
  }

  std::string link(const json& from, const json& to) override {
    const AmdGpu *a = of(from), *b = of(to);
    const bool linked =
        a != nullptr && b != nullptr &&
        (std::ranges::count(a->xgmi, b->node) > 0 || std::ranges::count(b->xgmi, a->node) > 0);
    return linked ? "XGMI" : "";
  }

  GpuUse use(const json& gpu) override {
    GpuUse use;
    const AmdGpu* const found = of(gpu);
    if (found == nullptr) return use;
    if (const auto percent = number_of(found->device / "gpu_busy_percent");
        percent && *percent <= 100)
      use.utilisation = *percent / 100;
    if (const auto bytes = number_of(found->device / "mem_info_vram_used"))
      use.memory_bytes = *bytes;
    return use;
  }

 private:
  static constexpr const char* kHipList = "HIP_VISIBLE_DEVICES";

  void select(const char* variable, GpuListReader reader, Gpus& gpus) {
    std::vector<std::string> uuids;
    for (const AmdGpu& gpu : shown_) uuids.push_back(gpu.uuid);
    std::vector<AmdGpu> chosen;
    for (const size_t index : visible_gpus(uuids, std::getenv(variable), reader))
      chosen.push_back(shown_[index]);
    if (chosen.size() < shown_.size())
      gpus.hidden_by += (gpus.hidden_by.empty() ? "" : " and ") + std::string(variable);
    shown_ = std::move(chosen);
  }

  const AmdGpu* of(const json& gpu) const {
    const auto index = gpu.value("index", shown_.size());
    return index < shown_.size() ? &shown_[index] : nullptr;
  }

  std::filesystem::path root_;
  AmdGpus all_;
  std::vector<AmdGpu> shown_;
};

}  // namespace

std::unique_ptr<GpuSource> amd_source(const std::filesystem::path& root) {
  return std::make_unique<AmdSource>(root);
}

}  // namespace howmany::benches
