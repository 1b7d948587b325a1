// SPDX-License-Identifier: Apache-2.0
#include "benches/common/machine.h"

#include <hwloc.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>

#include "core/base/error.h"
#include "core/host/cgroup.h"

namespace howmany::benches {
namespace {

using nlohmann::json;

using Topology = std::remove_pointer_t<hwloc_topology_t>;

Topology* topology() {
  static const std::unique_ptr<Topology, void (*)(Topology*)> loaded = [] {
    hwloc_topology_t fresh = nullptr;
    hwloc_topology_init(&fresh);
    std::unique_ptr<Topology, void (*)(Topology*)> owner(fresh, hwloc_topology_destroy);
    hwloc_topology_set_icache_types_filter(fresh, HWLOC_TYPE_FILTER_KEEP_ALL);
    HM_ENSURE(hwloc_topology_load(fresh) == 0, "[devices] hwloc cannot read this machine");
    return owner;
  }();
  return loaded.get();
}

int count(hwloc_obj_type_t type) { return hwloc_get_nbobjs_by_type(topology(), type); }

std::string cpu_list(hwloc_const_bitmap_t set) {
  char* text = nullptr;
  if (!set || hwloc_bitmap_list_asprintf(&text, set) < 0) return "";
  const std::unique_ptr<char, void (*)(void*)> owner(text, std::free);
  return text;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (const size_t colon = line.find(": ");
        line.rfind("model name", 0) == 0 && colon != std::string::npos)
      return line.substr(colon + 2);
  const char* model = hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology()), "CPUModel");
  return model ? model : "";
}

std::map<std::string, uint64_t> meminfo() {  // bytes
  std::map<std::string, uint64_t> found;
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::string name;
    uint64_t kib = 0;
    if (std::istringstream(line) >> name >> kib) found[name] = kib * 1024;
  }
  return found;
}

struct MemoryLimit {
  uint64_t bytes;
  std::string where;
};

// Returns the smallest limit between this cgroup and the root. "max" and the huge number of cgroup
// v1 mean no limit.
std::optional<MemoryLimit> memory_limit(uint64_t total) {
  std::optional<MemoryLimit> least;
  for (const CgroupDir& dir : cgroup_dirs("", "memory")) {
    const std::string path =
        dir.path + (dir.version == 2 ? "/memory.max" : "/memory.limit_in_bytes");
    uint64_t bytes = 0;
    if (!(std::istringstream(read_line(path).value_or("")) >> bytes) || bytes >= total) continue;
    if (!least || bytes < least->bytes) least = {bytes, path};
  }
  return least;
}

}  // namespace

json describe_cpu() {
  utsname system{};
  uname(&system);
  const auto governor = read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  return {{"model", cpu_model()},
          {"architecture", system.machine},
          {"sockets", count(HWLOC_OBJ_PACKAGE)},
          {"cores", count(HWLOC_OBJ_CORE)},
          {"threads", count(HWLOC_OBJ_PU)},
          {"governor", governor ? json(*governor) : json(nullptr)}};
}

json describe_numa() {
  json nodes = json::array();
  for (int i = 0; i < count(HWLOC_OBJ_NUMANODE); ++i) {
    const hwloc_obj_t node =
        hwloc_get_obj_by_type(topology(), HWLOC_OBJ_NUMANODE, static_cast<unsigned>(i));
    nodes.push_back({{"node", node->os_index},
                     {"cpus", cpu_list(node->cpuset)},
                     {"memory_bytes", node->attr->numanode.local_memory}});
  }
  return nodes;
}

json describe_caches() {
  json caches = json::array();
  for (const auto type : {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L1ICACHE, HWLOC_OBJ_L2CACHE,
                          HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L4CACHE}) {
    if (count(type) < 1) continue;
    const hwloc_obj_t first = hwloc_get_obj_by_type(topology(), type, 0);
    const auto& cache = first->attr->cache;
    const char* kind = cache.type == HWLOC_OBJ_CACHE_DATA          ? "data"
                       : cache.type == HWLOC_OBJ_CACHE_INSTRUCTION ? "instruction"
                                                                   : "unified";
    caches.push_back({{"level", cache.depth},
                      {"type", kind},
                      {"size_bytes", cache.size},
                      {"count", count(type)},
                      {"shared_by", hwloc_bitmap_weight(first->cpuset)}});
  }
  return caches;
}

json describe_memory() {
  auto info = meminfo();
  json memory{{"total_bytes", info["MemTotal:"]},
              {"available_bytes", info["MemAvailable:"]},
              {"limit_bytes", nullptr},
              {"limit_because", "no limit below the machine's memory"}};
  if (const auto limit = memory_limit(info["MemTotal:"])) {
    memory["limit_bytes"] = limit->bytes;
    memory["limit_because"] = limit->where;
  }
  struct statvfs shm {};
  if (statvfs("/dev/shm", &shm) == 0) {
    memory["shm_bytes"] = shm.f_blocks * shm.f_frsize;
    memory["shm_free_bytes"] = shm.f_bavail * shm.f_frsize;
  }
  return memory;
}

double memory_bytes() {
  const json memory = describe_memory();
  const json& most = memory[memory["limit_bytes"].is_null() ? "total_bytes" : "limit_bytes"];
  return most.is_null() ? std::numeric_limits<double>::infinity() : most.get<double>();
}

}  // namespace howmany::benches
