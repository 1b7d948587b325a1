// SPDX-License-Identifier: Apache-2.0
#include "benches/loader/limits.h"

#include <sys/resource.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "benches/common/machine.h"
#include "core/base/schema/limits.h"
#include "core/host/cgroup.h"
#include "core/host/cpu_limits.h"

namespace howmany::benches {
namespace {

using nlohmann::json;

std::optional<int64_t> number_in(const std::string& path) {
  int64_t value = 0;
  if (!(std::istringstream(read_line(path).value_or("")) >> value)) return {};
  return value;
}

struct Bound {
  int64_t left;
  std::string because;
};

// Threads count as processes here. The running ones are subtracted.
std::optional<Bound> processes_left() {
  std::optional<Bound> least;
  const auto keep = [&](int64_t left, const std::string& because) {
    if (!least || left < least->left) least = Bound{std::max<int64_t>(0, left), because};
  };
  for (const CgroupDir& dir : cgroup_dirs("", "pids")) {
    const auto most = number_in(dir.path + "/pids.max"),
               now = number_in(dir.path + "/pids.current");
    if (most) keep(*most - now.value_or(0), dir.path + "/pids.max");
  }
  rlimit limit{};
  if (::getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    keep(static_cast<int64_t>(limit.rlim_cur), "ulimit -u");
  return least;
}

double cores_allowed() {
  auto least = static_cast<double>(cpu_limits().allowed.size());
  for (const CpuLimit& limit : cpu_limits().limits) least = std::min(least, limit.cpus);
  return least;
}

}  // namespace

json describe_loader_limits() {
  const CpuLimits& cpus = cpu_limits();
  const json memory = describe_memory();
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const auto processes = processes_left();
  const uint64_t available = memory["available_bytes"],
                 limit = memory["limit_bytes"].is_null() ? available
                                                         : memory["limit_bytes"].get<uint64_t>();
  return {{limit::kCores, cores_allowed()},
          {limit::kCoresBecause, cpus.because},
          {limit::kMemoryBytes, std::min(available, limit)},
          {limit::kMemoryBecause,
           limit < available ? memory["limit_because"].get<std::string>() : "MemAvailable"},
          {limit::kShmBytes, memory.contains("shm_free_bytes") ? memory["shm_free_bytes"] : json()},
          {limit::kDescriptors, files.rlim_cur},
          {limit::kProcesses, processes ? json(processes->left) : json()},
          {limit::kProcessesBecause, processes ? processes->because : "no limit"}};
}

}  // namespace howmany::benches
