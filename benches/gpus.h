// The NVIDIA GPUs of this machine, read through the driver's own library at run time, so that one
// build works with and without a driver. One thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace howmany::benches {

struct Gpus {
  // {"index", "name", "memory_bytes", "memory_free_bytes", "pci_bus", "pcie_generation",
  //  "pcie_width", "compute_capability", "mig"}; what the driver does not tell is absent
  nlohmann::json list = nlohmann::json::array();
  std::string driver;   // "550.54.15"
  std::string because;  // why the list is empty: "no NVIDIA driver found"
};
Gpus find_gpus();

}  // namespace howmany::benches
