// SPDX-License-Identifier: Apache-2.0
// The CPU cores nearest to a GPU. On a machine with several sockets, copies and kernel launches are
// fastest from these cores. Malformed system files are ignored, never an error. Thread-safe.
//
//   near_cores("0000:1B:00.0");   // {24, 25, ..., 47}: the second socket
//   usable_near_cores(0);         // those of cuda:0 that this process may use
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace howmany {

// Reads <sys>/bus/pci/devices/<address>/local_cpulist. Returns OS CPU ids in ascending order, empty
// if the file has none.
std::vector<int> near_cores(std::string_view pci_address,
                            const std::filesystem::path& sys = "/sys");

// Returns the cores near cuda:`index` that this process may use. Reads the system once. Returns an
// empty list if binding would not help: no near core is known or usable, all usable cores are near,
// or only one of many is near. On a single core all threads of the GPU would queue.
std::vector<int> usable_near_cores(int index);
// For tests: replaces the cores read from the system.
void set_near_cores(int index, const std::vector<int>& cores);

}  // namespace howmany
