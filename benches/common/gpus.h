// The NVIDIA GPUs of this machine, read through the driver's own library at run time, so that one
// build works with and without a driver. One thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace howmany::benches {

struct Gpus {
  // Those that this process sees, as CUDA numbers them: cuda:<index>. Where this build has CUDA its
  // runtime tells, else the driver and CUDA_VISIBLE_DEVICES.
  // {"index", "name", "uuid", "memory_bytes", "memory_free_bytes", "pci_bus", "pcie_generation",
  //  "pcie_width", "numa_node", "near_cores", "compute_capability", "mig"}; what the driver does
  //  not tell is absent
  nlohmann::json list = nlohmann::json::array();
  int hidden = 0;       // by CUDA_VISIBLE_DEVICES
  std::string driver;   // "550.54.15"
  std::string because;  // why the list is empty: "no NVIDIA driver found"
};
Gpus find_gpus();
// How two of that list reach each other: {"from", "to", "link": "NV18"}, in the words of
// nvidia-smi: NV<links>, PIX (one PCIe switch), PXB (several), PHB (the CPU), NODE, SYS (between
// NUMA nodes). Apart, because it asks the driver a lot.
nlohmann::json find_gpu_links(const nlohmann::json& gpus);

// The GPUs of these UUIDs that CUDA_VISIBLE_DEVICES shows, in its order, as the CUDA runtime reads
// it: indices or beginnings of UUIDs, up to the first that is neither. Null: all.
std::vector<size_t> visible_gpus(const std::vector<std::string>& uuids, const char* variable);

}  // namespace howmany::benches
