// SPDX-License-Identifier: Apache-2.0
#include "benches/common/device_choice.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>

#include "benches/common/program.h"
#include "core/backends/selection.h"
#include "core/base/error.h"
#include "core/base/schema/defaults.h"
#include "core/base/schema/marks.h"
#include "core/gpu/gpu.h"
#include "core/host/cpu_limits.h"

namespace howmany::benches {
namespace {

// True if Slurm gave this host's tasks one GPU each and this task sees only its own, as with
// --gpus-per-task.
bool sees_its_gpu_alone(const Place& place, int ranks_here) {
  const char* const given = std::getenv("SLURM_GPUS_ON_NODE");
  return place.launcher == "srun" && ranks_here > 1 && gpu::count() == 1 && given != nullptr &&
         std::atoi(given) >= ranks_here;
}

}  // namespace

std::vector<Device> devices_from(const std::string& list, int count) {
  if (!list.empty()) return parse_devices(list);
  std::vector<Device> devices;
  for (int i = 0; i < count; ++i) devices.push_back({DeviceType::cpu, i});
  return devices;
}

bool means_gpus(const Workload& work) {
  if (gpu::count() == 0) return false;
  if (work.kernels.empty()) return true;
  require_known("kernels", work.kernels, backend_names());
  return backend_named(work.kernels).device_type() == DeviceType::cuda;
}

bool all_gpus(const std::vector<Device>& devices) {
  return std::ranges::all_of(devices,
                             [](const Device& device) { return device.type == DeviceType::cuda; });
}

bool over_hosts(const Place& place) {
  return place.local_world > 0 && place.local_world < place.world;
}

std::vector<Device> devices_given(const std::string& list, const Place& place) {
  const std::vector<Device> devices = parse_devices(list);
  const bool one_host = over_hosts(place) && static_cast<int>(devices.size()) == place.local_world;
  if (!one_host || place.world % place.local_world != 0) return devices;
  std::vector<Device> all;
  for (int host = 0; host < place.world / place.local_world; ++host)
    all.insert(all.end(), devices.begin(), devices.end());
  return all;
}

void place_devices(Workload& work, const std::string& list, const Place& place, bool gpus) {
  const bool hosts = over_hosts(place);
  work.own_device.reset();
  if (hosts) work.ranks_per_host = place.local_world;
  // SLURM_CPU_BIND is set if Slurm bound each task to its own cores.
  const char* const bound = std::getenv("SLURM_CPU_BIND");
  work.own_cores = place.launcher == "srun" && bound != nullptr &&
                   (std::strstr(bound, "mask_cpu") || std::strstr(bound, "map_cpu"));
  const int here = hosts ? place.local_world : place.world;
  work.own_gpus = sees_its_gpu_alone(place, here);
  if (!list.empty()) {
    const std::vector<Device> given = parse_devices(list);
    work.devices = devices_given(list, place);
    if (work.devices.size() != given.size() && !work.own_gpus)
      work.own_device = given[static_cast<size_t>(place.local_rank)];
    if (work.own_gpus)  // its number on other hosts does not matter
      for (Device& device : work.devices)
        if (device.type == DeviceType::cuda) device.index = 0;
    return;
  }
  HM_REQUIRE(!gpus || work.own_gpus || here <= gpu::count(),
             "{} ranks on this host, and {} GPUs: say with --devices where they are", here,
             gpu::count());
  const bool own = gpus ? work.own_gpus : work.own_cores;
  work.devices.clear();
  for (int rank = 0; rank < place.world; ++rank)
    work.devices.push_back({gpus ? DeviceType::cuda : DeviceType::cpu, own ? 0 : rank % here});
  if (hosts && !own) work.own_device = {work.devices[0].type, place.local_rank};
}

int gpu_of(const Workload& work, const Place& place) {
  if (!work.over_processes() || place.rank >= work.ranks()) return -1;
  const Device device = work.device_of(place.rank);
  return device.type == DeviceType::cuda ? device.index : -1;
}

// Each GPU needs a core for its host thread. If the launcher bound the rank to cores, that core
// must be one of them.
bool short_of_cores(const Workload& work) {
  const bool mpirun = std::getenv("OMPI_COMM_WORLD_SIZE") && !std::getenv("HOWMANY_RENDEZVOUS");
  const bool bound = work.own_cores || mpirun;
  const auto gpus = std::ranges::count(work.devices_together(), DeviceType::cuda, &Device::type);
  const int64_t fed = bound ? std::min<int64_t>(gpus, work.count() / work.ranks()) : gpus;
  return fed > cpu_limits().usable;
}

std::vector<std::string> marks_of(const Workload& work) {
  std::vector<std::string> marks;
  if (oversubscribed(work.devices_together())) marks.emplace_back(mark::kOversubscribed);
  if (share_gpus(work.devices_together())) marks.emplace_back(mark::kRehearsal);
  if (short_of_cores(work)) marks.emplace_back(mark::kShortOfCores);
  return marks;
}

Choice choose_backend(const Workload& work, const Place& place) {
  if (!mode_traits(work.mode).over_ranks) return {"local", work.mode + " has one rank"};
  if (place.world == 1 && work.count() == 1) return {"local", "one device needs no communication"};
  const auto usable = [&](std::string_view name) {
    return std::ranges::count(comm_names(), name) > 0 && comm_unavailable(name, place).empty();
  };
  const std::vector<Device> devices = work.devices_together();
  const std::map<std::string_view, const char*> because = {
      {"nccl", "each rank has GPUs of its own"},
      {"gloo", "ranks are processes, and gloo needs no launcher of its own"},
      {"mpi", "ranks are processes, and gloo cannot be used"},
      {"local", "no backend between processes is built in"}};
  for (const std::string_view name : kBackendsByPreference) {
    const bool fits = name == "nccl"    ? all_gpus(devices) && !share_gpus(devices)
                      : name == "local" ? place.world == 1
                                        : true;
    if (fits && usable(name)) return {std::string(name), because.at(name)};
  }
  throw std::invalid_argument("no backend between processes can be used");
}

}  // namespace howmany::benches
