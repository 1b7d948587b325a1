// SPDX-License-Identifier: Apache-2.0
#include "core/host/cgroup.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace howmany {
namespace {

struct Mount {
  int version = 2;
  std::string root, point;  // the cgroup that is mounted, and where
  std::string controllers;  // v1: "rw,cpu,cpuacct"
};

bool lists(std::string_view comma_separated, std::string_view word) {
  for (size_t begin = 0; begin <= comma_separated.size();) {
    const size_t end = std::min(comma_separated.find(',', begin), comma_separated.size());
    if (comma_separated.substr(begin, end - begin) == word) return true;
    begin = end + 1;
  }
  return false;
}

// proc(5): "31 23 0:29 /root /mount/point rw,relatime shared:1 - cgroup cgroup rw,cpu"
std::vector<Mount> read_mounts(const std::string& root) {
  std::vector<Mount> mounts;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream left(line.substr(0, dash)), right(line.substr(dash + 3));
    std::string skip, type;
    Mount mount;
    left >> skip >> skip >> skip >> mount.root >> mount.point;
    right >> type >> skip >> mount.controllers;
    if (type != "cgroup" && type != "cgroup2") continue;
    mount.version = type == "cgroup" ? 1 : 2;
    mounts.push_back(mount);
  }
  return mounts;
}

// Returns this process's cgroup in the v2 hierarchy ("0::/path") or in the hierarchy of a v1
// controller ("4:cpu,cpuacct:/path").
std::string cgroup_path(const std::string& root, int version, std::string_view controller) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view names = std::string_view(line).substr(first + 1, second - first - 1);
    if (version == 2 ? names.empty() : lists(names, controller)) return line.substr(second + 1);
  }
  return "/";
}

// Returns the part of `path` below the mounted cgroup, or "" for the mount point itself. In a
// container `path` may be the host's, or may leave the namespace ("/../x"), but only the
// container's own cgroup is mounted: then the mount point is that cgroup.
std::string below_mount(const std::string& path, const std::string& mounted) {
  const std::string top = mounted == "/" ? "" : mounted;
  const bool inside = path.compare(0, top.size(), top) == 0 &&
                      (path.size() == top.size() || path[top.size()] == '/');
  if (!inside || path.find("/..") != std::string::npos) return "";
  std::string rest = path.substr(top.size());
  while (!rest.empty() && rest.back() == '/') rest.pop_back();
  return rest;
}

}  // namespace

std::vector<CgroupDir> cgroup_dirs(const std::string& root, std::string_view controller) {
  std::vector<CgroupDir> dirs;
  for (const Mount& mount : read_mounts(root)) {
    if (mount.version == 1 && !lists(mount.controllers, controller)) continue;
    std::string rest = below_mount(cgroup_path(root, mount.version, controller), mount.root);
    for (; !rest.empty(); rest.resize(rest.rfind('/')))
      dirs.push_back({mount.version, mount.point + rest});
    dirs.push_back({mount.version, mount.point});
  }
  return dirs;
}

std::optional<std::string> read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return {};
  const size_t begin = line.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return {};
  return line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
}

}  // namespace howmany
