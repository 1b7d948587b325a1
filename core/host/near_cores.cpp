// SPDX-License-Identifier: Apache-2.0
#include "core/host/near_cores.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "core/gpu/gpu.h"
#include "core/host/cgroup.h"
#include "core/host/cpu_limits.h"

namespace howmany {
namespace {

std::vector<int> choice_of(const std::vector<int>& near) {
  const std::vector<int>& allowed = cpu_limits().allowed;
  std::vector<int> chosen;
  std::ranges::copy_if(allowed, std::back_inserter(chosen),
                       [&](int cpu) { return std::ranges::find(near, cpu) != near.end(); });
  const bool all = chosen.size() == allowed.size(),
             too_few = chosen.size() == 1 && allowed.size() > 2;
  return all || too_few ? std::vector<int>{} : chosen;
}

struct Known {
  std::mutex mutex;
  std::map<int, std::vector<int>> chosen;  // by GPU
};
Known& known() {
  static auto* const all = new Known;  // leaked: threads may bind while the process exits
  return *all;
}

}  // namespace

std::vector<int> near_cores(std::string_view pci_address, const std::filesystem::path& sys) {
  if (pci_address.empty()) return {};
  std::string folder(pci_address);  // lower case in sysfs; upper case in CUDA
  for (char& c : folder) c = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  const auto list = read_line(sys / "bus/pci/devices" / folder / "local_cpulist");
  const std::set<int> cpus = parse_cpu_list(list.value_or(""));
  return {cpus.begin(), cpus.end()};
}

std::vector<int> usable_near_cores(int index) {
  const std::lock_guard lock(known().mutex);
  const auto [at, is_new] = known().chosen.try_emplace(index);
  if (is_new) at->second = choice_of(near_cores(gpu::pci_address(index)));
  return at->second;
}

void set_near_cores(int index, const std::vector<int>& cores) {
  const std::lock_guard lock(known().mutex);
  known().chosen[index] = choice_of(cores);
}

}  // namespace howmany
