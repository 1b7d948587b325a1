// SPDX-License-Identifier: Apache-2.0
// The GPUs of this machine: NVIDIA's, by a library of the driver (NVML) that is loaded at run time,
// or else AMD's, by the files of the kernel's driver in sysfs. So one build works with either
// driver and with none. Use from one thread.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace howmany::benches {

enum class GpuVendor { nvidia, amd };

struct Gpus {
  GpuVendor vendor = GpuVendor::nvidia;
  // The GPUs visible to this process in the order of CUDA or HIP: cuda:<index>, as in PyTorch. The
  // source is the CUDA runtime if this build has CUDA, else the driver and the variables below.
  // {"index", "vendor", "name", "uuid", "memory_bytes", "memory_free_bytes", "pci_bus",
  //  "pcie_generation", "pcie_width", "numa_node", "near_cores", "compute_capability", "mig",
  //  "target", "integrated"}
  // Keys that the driver does not report are absent.
  nlohmann::json list = nlohmann::json::array();
  int hidden = 0;         // GPUs that a variable hides:
  std::string hidden_by;  // "CUDA_VISIBLE_DEVICES"; with AMD "ROCR_VISIBLE_DEVICES", ...
  std::string driver;     // "550.54.15"
  std::string because;    // why the list is empty: "no driver of NVIDIA or AMD found"
  bool unknown = false;   // the list is empty, and GPUs may be here: CUDA's driver is, without NVML
};
Gpus find_gpus();
// Returns the link between each two GPUs of the list: {"from", "to", "link": "NV18"}. Names are
// those of nvidia-smi: NV<links>, PIX (one PCIe switch), PXB (several), PHB (the CPU), NODE, SYS
// (between NUMA nodes); between AMD GPUs XGMI. It is a separate function because it makes many
// driver calls.
nlohmann::json find_gpu_links(const nlohmann::json& gpus);

// Returns the variable that shows a child process only these GPUs, which are indices of
// find_gpus(): "CUDA_VISIBLE_DEVICES=2,3", or with AMD "HIP_VISIBLE_DEVICES=2,3". It hides all
// GPUs if there are no indices. If this process has such a list, the child gets items of it.
std::string show_gpus(GpuVendor vendor, const std::vector<int>& indices);

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
  struct Metered;
  std::unique_ptr<Metered> metered_;
  double sum_ = 0, most_bytes_ = 0;
  int samples_ = 0;
};

// The reader of a list of visible GPUs. If a GPU is listed twice, CUDA shows no GPU, ROCR shows
// those before the repetition, and HIP ignores it. HIP shows all GPUs if the list is empty.
enum class GpuListReader { cuda, rocr, hip };

// Returns the indices of `uuids` that the list (`variable`) shows, in its order: indices or
// prefixes of UUIDs, up to the first invalid item. Returns all if it is null.
std::vector<size_t> visible_gpus(const std::vector<std::string>& uuids, const char* variable,
                                 GpuListReader reader);

}  // namespace howmany::benches
