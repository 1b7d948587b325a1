// Where the control groups of this process keep their files. Both hierarchies are looked at, since
// many machines mount v1 and v2 side by side. Missing or malformed files mean "nothing found".
// Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace howmany {

struct CgroupDir {
  int version = 2;
  std::string path;  // without `root`: "/sys/fs/cgroup/job_7"
};

// The directories whose limits on `controller` ("cpu", "cpuset", "memory") hold for this process,
// innermost first, up to the root of each mounted hierarchy. `root` stands before /proc and /sys.
std::vector<CgroupDir> cgroup_dirs(const std::string& root, std::string_view controller);

// First line of a small file, trimmed; nothing when it cannot be read.
std::optional<std::string> read_line(const std::string& path);

}  // namespace howmany
