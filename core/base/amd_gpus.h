// SPDX-License-Identifier: Apache-2.0
// The AMD GPUs of this machine, as the kernel's driver (amdkfd) lists them in sysfs. No library of
// ROCm is needed.
//
// Order. By node of the topology, as HIP numbers GPUs if no variable selects among them.
// Usable. HIP opens /dev/kfd and the render node of a GPU, so a GPU without access to both is left
//   out. A device cgroup makes the files of a hidden GPU unreadable.
// Untrusted. Missing, unreadable and malformed files never cause an error: the fact is left out,
//   or the GPU if it has no properties.
// Format. kfd_topology.c of ROCm/ROCK-Kernel-Driver@003fa68a. The rules of use are those of
//   libhsakmt/src/topology.c of ROCm/ROCR-Runtime@c7785a6d.
// Thread safety. Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace howmany {

struct AmdGpu {
  int node = 0;                  // of the topology
  std::string name;              // "AMD Instinct MI250X"; of an unknown GPU "AMD gfx1100"
  std::string target;            // "gfx90a"; empty if unknown
  std::string uuid;              // "GPU-2f3c1a9f8d3e6f7a"; empty if it has none
  uint64_t memory_bytes = 0;     // 0: unknown
  std::string pci_address;       // "0000:c1:00.0"
  std::filesystem::path device;  // its PCI folder in sysfs
  bool integrated = false;       // part of a processor for desktops or laptops
  std::vector<int> xgmi = {};    // nodes of the GPUs to which it has an Infinity Fabric link
};

struct AmdGpus {
  std::vector<AmdGpu> usable;
  int unusable = 0;     // GPUs of the topology that this process must not or cannot open
  std::string because;  // why `usable` is empty although the driver has GPUs; else empty
};

// `root` is a prefix of /sys and /dev.
AmdGpus find_amd_gpus(const std::filesystem::path& root);

// Returns the driver ("xe", "i915") of a discrete Intel GPU; empty if there is none.
std::string intel_gpu_driver(const std::filesystem::path& root);

// Returns HOWMANY_ROOT, which tests set to a false root folder, or else "/".
std::filesystem::path system_root();

}  // namespace howmany
