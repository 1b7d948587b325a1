// SPDX-License-Identifier: Apache-2.0
#include "core/host/cpu_limits.h"

#include <fmt/core.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>

#include "core/host/cgroup.h"

namespace howmany {
namespace {

constexpr int kMostCpus = 1 << 16;

template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

}  // namespace

std::set<int> parse_cpu_list(const std::string& text) {
  std::set<int> cpus;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t dash = part.find('-');
    const auto first = whole_number<int>(std::string_view(part).substr(0, dash));
    const auto last = dash == std::string::npos
                          ? first
                          : whole_number<int>(std::string_view(part).substr(dash + 1));
    if (!first || !last || *first < 0 || *last >= kMostCpus) continue;
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.insert(cpu);
  }
  return cpus;
}

namespace {

std::string read_affinity(const std::string& root) {
  constexpr std::string_view kKey = "Cpus_allowed_list:";
  std::ifstream file(root + "/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.compare(0, kKey.size(), kKey) == 0)
      return line.substr(std::min(line.size(), line.find_first_not_of(" \t", kKey.size())));
  return "";
}

// If OMP_PROC_BIND is set, libgomp binds the main thread to one place before main(). The places
// together still cover the process's initial mask.
void add_openmp_places(std::set<int>& cpus) {
  for (int place = 0; place < omp_get_num_places(); ++place) {
    std::vector<int> ids(static_cast<size_t>(std::max(0, omp_get_place_num_procs(place))));
    omp_get_place_proc_ids(place, ids.data());
    cpus.insert(ids.begin(), ids.end());
  }
}

std::set<int> affinity_limit(const std::string& root, std::vector<CpuLimit>& limits) {
  std::string text = read_affinity(root);
  std::set<int> cpus = parse_cpu_list(text);
  if (root.empty() && omp_get_num_places() > 0) {
    add_openmp_places(cpus);
    text = "OpenMP places";
  }
  if (cpus.empty()) return {0};
  const auto online = read_line(root + "/sys/devices/system/cpu/online");
  const bool all = online && parse_cpu_list(*online) == cpus;
  limits.push_back({"affinity mask", static_cast<double>(cpus.size()),
                    all ? text + ", all this machine has" : text});
  return cpus;
}

struct Cpuset {
  std::set<int> cpus;
  std::string detail;
};

// Returns the content of the innermost file: a child cpuset is a subset of its parent's.
std::optional<Cpuset> read_cpuset(const std::string& root, int version) {
  for (const CgroupDir& dir : cgroup_dirs(root, "cpuset")) {
    if (dir.version != version) continue;
    for (const char* name : {"cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"}) {
      const auto text = read_line(fmt::format("{}{}/{}", root, dir.path, name));
      std::set<int> cpus = parse_cpu_list(text.value_or(""));
      if (!cpus.empty()) return Cpuset{cpus, fmt::format("{}/{}: {}", dir.path, name, *text)};
    }
  }
  return {};
}

void cpuset_limits(const std::string& root, std::set<int>& allowed, std::vector<CpuLimit>& limits) {
  for (const int version : {2, 1}) {
    const auto cpuset = read_cpuset(root, version);
    if (!cpuset) continue;
    std::set<int> both;
    std::set_intersection(allowed.begin(), allowed.end(), cpuset->cpus.begin(), cpuset->cpus.end(),
                          std::inserter(both, both.end()));
    if (both.empty()) continue;  // in a container whose files describe another machine
    allowed = both;
    limits.push_back({fmt::format("cgroup v{} cpuset", version), static_cast<double>(both.size()),
                      cpuset->detail});
  }
}

std::optional<double> ratio(const std::string& quota, const std::string& period) {
  const auto q = whole_number<int64_t>(quota), p = whole_number<int64_t>(period);
  if (!q || !p || *q <= 0 || *p <= 0) return {};  // "max" and -1 mean no limit
  return static_cast<double>(*q) / static_cast<double>(*p);
}

std::optional<CpuLimit> quota_of(const std::string& root, const CgroupDir& dir) {
  if (dir.version == 2) {
    const std::string path = dir.path + "/cpu.max";
    std::string quota, period;
    std::istringstream(read_line(root + path).value_or("")) >> quota >> period;
    const auto cpus = ratio(quota, period);
    if (!cpus) return {};
    return CpuLimit{"cgroup v2 cpu.max", *cpus, fmt::format("{}: {} {}", path, quota, period),
                    dir.path};
  }
  const std::string path = dir.path + "/cpu.cfs_quota_us";
  const std::string quota = read_line(root + path).value_or("");
  const std::string period = read_line(root + dir.path + "/cpu.cfs_period_us").value_or("");
  const auto cpus = ratio(quota, period);
  if (!cpus) return {};
  return CpuLimit{"cgroup v1 quota", *cpus, fmt::format("{}: {} of {}", path, quota, period),
                  dir.path};
}

void quota_limits(const std::string& root, std::vector<CpuLimit>& limits) {
  for (const CgroupDir& dir : cgroup_dirs(root, "cpu"))
    if (auto limit = quota_of(root, dir)) limits.push_back(*std::move(limit));
}

std::optional<std::string> variable(const std::optional<Environment>& environment,
                                    const char* name) {
  if (!environment) {
    const char* value = std::getenv(name);
    return value ? std::optional<std::string>(value) : std::nullopt;
  }
  const auto found = environment->find(name);
  return found == environment->end() ? std::nullopt : std::optional(found->second);
}

// A task of srun has its share. The batch step, which has no SLURM_STEP_NUM_TASKS, has the CPUs of
// all tasks on this node. SLURM_JOB_CPUS_PER_NODE ("8(x2),4") is used only if it has one value for
// all nodes.
void slurm_limit(const std::optional<Environment>& environment, std::vector<CpuLimit>& limits) {
  std::array names = {"SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE", "SLURM_JOB_CPUS_PER_NODE"};
  const bool is_task = variable(environment, "SLURM_STEP_NUM_TASKS").has_value();
  if (!is_task) std::ranges::rotate(names, names.begin() + 1);
  for (const char* name : names) {
    const auto text = variable(environment, name);
    if (!text || text->find(',') != std::string::npos) continue;
    const auto cpus = whole_number<int>(std::string_view(*text).substr(0, text->find("(x")));
    if (!cpus || *cpus < 1) continue;
    limits.push_back({name, static_cast<double>(*cpus), fmt::format("{}={}", name, *text)});
    return;
  }
}

struct CoreId {
  int package = 0, core = 0;
  auto operator<=>(const CoreId&) const = default;
};

CoreId core_of(const std::string& root, int cpu) {
  const std::string dir = fmt::format("{}/sys/devices/system/cpu/cpu{}/topology/", root, cpu);
  const auto number = [&](const char* name, int otherwise) {
    return whole_number<int>(read_line(dir + name).value_or("")).value_or(otherwise);
  };
  return {number("physical_package_id", 0), number("core_id", kMostCpus + cpu)};
}

// Orders one hardware thread of every core before the second of any, and groups cores by socket.
void order_by_core(const std::string& root, const std::set<int>& cpus, CpuLimits& found) {
  struct Place {
    int sibling, package, cpu;
    CoreId core;
    auto operator<=>(const Place&) const = default;
  };
  std::vector<Place> places;
  std::map<CoreId, int> threads;
  for (const int cpu : cpus) {
    const CoreId core = core_of(root, cpu);
    places.push_back({threads[core]++, core.package, cpu, core});
  }
  std::sort(places.begin(), places.end());
  for (const Place& place : places) found.allowed.push_back(place.cpu);
  if (threads.size() < cpus.size())
    found.limits.push_back(
        {"physical cores", static_cast<double>(threads.size()),
         fmt::format("{} hardware threads on {} cores", cpus.size(), threads.size())});
}

}  // namespace

CpuLimits read_cpu_limits(const std::string& root, const std::optional<Environment>& environment) {
  CpuLimits found;
  std::set<int> cpus = affinity_limit(root, found.limits);
  cpuset_limits(root, cpus, found.limits);
  quota_limits(root, found.limits);
  slurm_limit(environment, found.limits);
  order_by_core(root, cpus, found);
  const auto smallest =
      std::min_element(found.limits.begin(), found.limits.end(),
                       [](const CpuLimit& a, const CpuLimit& b) { return a.cpus < b.cpus; });
  const double least = smallest == found.limits.end() ? 1 : smallest->cpus;
  found.usable = static_cast<int>(std::clamp(least, 1.0, static_cast<double>(cpus.size())));
  found.because = fmt::format("{} core{}: {}", found.usable, found.usable == 1 ? "" : "s",
                              smallest == found.limits.end()
                                  ? "no limit could be read"
                                  : fmt::format("{} ({})", smallest->source, smallest->detail));
  return found;
}

const CpuLimits& cpu_limits() {
  static const CpuLimits limits = read_cpu_limits();
  return limits;
}

}  // namespace howmany
