// SPDX-License-Identifier: Apache-2.0
// Finds the cgroup folders of this process. Searches both hierarchies, because many machines mount
// v1 and v2 at the same time. Missing or malformed files count as "nothing found". Thread-safe.
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

// Returns the folders whose limits on `controller` ("cpu", "cpuset", "memory") apply to this
// process: innermost first, up to the root of each mounted hierarchy. `root` is a prefix of /proc
// and /sys.
std::vector<CgroupDir> cgroup_dirs(const std::string& root, std::string_view controller);

// Returns the first line of a small file, trimmed. Returns nullopt if it is empty or unreadable.
std::optional<std::string> read_line(const std::string& path);

}  // namespace howmany
