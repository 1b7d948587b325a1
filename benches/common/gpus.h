// SPDX-License-Identifier: Apache-2.0
// The NVIDIA GPUs of this machine. The driver's library (NVML) is loaded at run time, so one build
// works with and without a driver. Use from one thread.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace howmany::benches {

struct Gpus {
  // The GPUs visible to this process in CUDA's order: cuda:<index>. The source is the CUDA runtime
  // if this build has CUDA, else the driver and CUDA_VISIBLE_DEVICES.
  // {"index", "name", "uuid", "memory_bytes", "memory_free_bytes", "pci_bus", "pcie_generation",
  //  "pcie_width", "numa_node", "near_cores", "compute_capability", "mig"}
  // Keys that the driver does not report are absent.
  nlohmann::json list = nlohmann::json::array();
  int hidden = 0;       // GPUs hidden by CUDA_VISIBLE_DEVICES
  std::string driver;   // "550.54.15"
  std::string because;  // why the list is empty: "no NVIDIA driver found"
};
Gpus find_gpus();
// Returns the link between each two GPUs of the list: {"from", "to", "link": "NV18"}. Names are
// those of nvidia-smi: NV<links>, PIX (one PCIe switch), PXB (several), PHB (the CPU), NODE, SYS
// (between NUMA nodes). It is a separate function because it makes many driver calls.
nlohmann::json find_gpu_links(const nlohmann::json& gpus);

// The use of GPUs while a program trains, as the driver reports it.
class GpuMeter {
 public:
  // The GPUs are indices of find_gpus(). Without a driver, nothing is sampled.
  explicit GpuMeter(const std::vector<int>& indices);
  ~GpuMeter();
  void sample();
  double utilisation() const;   // 0 to 1, mean over samples and GPUs; NaN without one
  double memory_bytes() const;  // used on one GPU by all programs: the maximum; NaN likewise

 private:
  struct Driver;
  std::unique_ptr<Driver> driver_;
  double percent_ = 0, most_bytes_ = 0;
  int samples_ = 0;
};

// Returns the indices of `uuids` that CUDA_VISIBLE_DEVICES (`variable`) shows, in its order. Reads
// it as the CUDA runtime does: indices or prefixes of UUIDs, up to the first invalid item. Returns
// all if it is null.
std::vector<size_t> visible_gpus(const std::vector<std::string>& uuids, const char* variable);

}  // namespace howmany::benches
