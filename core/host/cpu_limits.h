// SPDX-License-Identifier: Apache-2.0
// The number of cores this process may use, and the limit that decides it: affinity mask, cpuset,
// cgroup v1/v2 quota, Slurm, or physical cores (without SMT siblings). Malformed system files are
// ignored, never an error. Thread-safe.
//
//   fmt::print("{}\n", cpu_limits().because);   // "2 cores: cgroup v2 cpu.max"
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace howmany {

// One limit on the cores of this process.
struct CpuLimit {
  std::string source;      // "affinity mask", "cgroup v2 cpu.max", "SLURM_CPUS_PER_TASK", ...
  double cpus = 0;         // cores that it allows; may be fractional
  std::string detail;      // its source, e.g. "/sys/fs/cgroup/cpu.max: 150000 100000"
  std::string group = {};  // for a quota: the cgroup's folder, "/sys/fs/cgroup"
};

struct CpuLimits {
  // Usable OS CPU ids: one hardware thread of each core first, then SMT siblings.
  std::vector<int> allowed;
  int usable = 1;                // the smallest limit, rounded down, at least 1
  std::vector<CpuLimit> limits;  // all limits found
  std::string because;           // "2 cores: affinity mask"
};

// `root` is a prefix of /sys and /proc. `environment` replaces the process's environment. Tests use
// both to describe other machines. With a root, the affinity mask is read from
// <root>/proc/self/status.
using Environment = std::map<std::string, std::string>;
CpuLimits read_cpu_limits(const std::string& root = "",
                          const std::optional<Environment>& environment = {});
const CpuLimits& cpu_limits();  // of this process, read once

// Parses "0-3,8,10-11", the kernel's format. Skips malformed parts.
std::set<int> parse_cpu_list(const std::string& text);

}  // namespace howmany
