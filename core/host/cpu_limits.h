// How many cores this process may really use, and which limit decides: affinity mask, cpuset,
// cgroup v1/v2 quota, Slurm, and how many are cores and not hardware threads of one. Garbage in
// system files is skipped, never an error. Thread-safe.
//
//   fmt::print("{}\n", cpu_limits().because);   // "2 cores: cgroup v2 cpu.max"
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace howmany {

// One limit on the cores this process may use, as found.
struct CpuLimit {
  std::string source;      // "affinity mask", "cgroup v2 cpu.max", "SLURM_CPUS_PER_TASK", ...
  double cpus = 0;         // how many it allows
  std::string detail;      // where it was read, e.g. "/sys/fs/cgroup/cpu.max: 150000 100000"
  std::string group = {};  // of a quota: the control group's folder, "/sys/fs/cgroup"
};

struct CpuLimits {
  // OS cpu ids that may be used, one hardware thread of each core first, SMT siblings after.
  std::vector<int> allowed;
  int usable = 1;                // min over limits, at least 1, rounded down
  std::vector<CpuLimit> limits;  // every limit found; the smallest decides
  std::string because;           // "2 cores: affinity mask"
};

// `root` stands before /sys and /proc, and `environment` replaces the process's own, so that tests
// can describe any machine. With a root the affinity mask is that of <root>/proc/self/status.
using Environment = std::map<std::string, std::string>;
CpuLimits read_cpu_limits(const std::string& root = "",
                          const std::optional<Environment>& environment = {});
const CpuLimits& cpu_limits();  // this process's, read once

// "0-3,8,10-11", as the kernel writes it; parts that make no sense are skipped.
std::set<int> parse_cpu_list(const std::string& text);

}  // namespace howmany
