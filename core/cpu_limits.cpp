#include "core/cpu_limits.h"

#include <fmt/core.h>
#include <sched.h>

namespace howmany {

CpuLimits read_cpu_limits(const std::string&, const std::optional<Environment>&) {
  CpuLimits found;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) CPU_SET(0, &mask);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &mask)) found.allowed.push_back(cpu);
  found.usable = found.physical = static_cast<int>(found.allowed.size());
  found.limits.push_back({"affinity mask", static_cast<double>(found.usable), ""});
  found.because =
      fmt::format("{} core{}: affinity mask", found.usable, found.usable == 1 ? "" : "s");
  return found;
}

const CpuLimits& cpu_limits() {
  static const CpuLimits limits = read_cpu_limits();
  return limits;
}

}  // namespace howmany
