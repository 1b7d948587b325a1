// The cores that stand nearest to a GPU: on a machine of several sockets its copies and launches
// are quickest from there. Garbage in system files is skipped, never an error. Thread-safe.
//
//   near_cores("0000:1B:00.0");   // {24, 25, ..., 47}, the second socket's
//   usable_near_cores(0);         // those of cuda:0 that this process may use
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace howmany {

// In order, as <sys>/bus/pci/devices/<address>/local_cpulist has them; empty when it says nothing.
std::vector<int> near_cores(std::string_view pci_address,
                            const std::filesystem::path& sys = "/sys");

// Those of cuda:`index` that this process may use, looked up once. Empty when there is nothing to
// choose: none is known or may be used, all are near, or a single one of many is, on which all
// threads beside the GPU would queue.
std::vector<int> usable_near_cores(int index);
// For tests: as if the system said so.
void set_near_cores(int index, const std::vector<int>& cores);

}  // namespace howmany
