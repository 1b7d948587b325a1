// SPDX-License-Identifier: Apache-2.0
#include "benches/tools/inventory.h"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "benches/common/gpus.h"
#include "benches/common/machine.h"
#include "benches/tools/probes.h"
#include "core/backends/backend_list.h"
#include "core/base/schema/devices.h"
#include "core/nn/model.h"
#include "core/profile/range.h"
#include "core/tensor/device.h"
#include "parallel/comm/comm_list.h"
#include "parallel/launch/launch.h"
#include "parallel/launch/program_id.h"
#include "parallel/modes/mode.h"

namespace howmany::benches {
namespace {

using nlohmann::json;

struct Part {
  std::string_view name, what;
};

struct ModeEntry {
  std::string_view name, what;
  ModeTraits traits;
  std::string_view options;
};

#define X(name, what, ...) Part{#name, what},
const std::vector<Part> kKernels{HM_BACKENDS(X)};
const std::vector<Part> kComms{HM_COMMS(X)};
const std::vector<Part> kModels{HM_MODELS(X)};
#undef X
#define X(name, what, traits, options) ModeEntry{#name, what, traits, options},
const std::vector<ModeEntry> kModes{HM_MODES(X)};
#undef X
// Optional parts of a build, and the reason if one is missing.
const std::vector<Part> kOptionalKernels{{"onednn", "oneDNN (libdnnl-dev) was missing"},
                                         {"cuda", "the CUDA Toolkit was missing"}};
const std::vector<Part> kOptionalComms{{"gloo", "Gloo (libgloo-dev) was missing"},
                                       {"mpi", "MPI (libopenmpi-dev) was missing"},
                                       {"nccl", "NCCL, the CUDA Toolkit or Gloo was missing"}};

json cpu_devices() {
  const CpuLimits& limits = cpu_limits();
  const CpuPlan plan = default_cpu_plan();
  json found = json::array();
  const auto least = std::min_element(limits.limits.begin(), limits.limits.end(),
                                      [](const auto& a, const auto& b) { return a.cpus < b.cpus; });
  for (auto limit = limits.limits.begin(); limit != limits.limits.end(); ++limit)
    found.push_back({{"source", limit->source},
                     {"cpus", limit->cpus},
                     {"detail", limit->detail},
                     {"decides", limit == least}});
  return {
      {inventory::kDefaultCount, plan.devices}, {inventory::kCoresPerDevice, plan.cores_per_device},
      {inventory::kUsableCores, limits.usable}, {"because", limits.because},
      {inventory::kAllowed, limits.allowed},    {"limits", found}};
}

json entry(const Part& part, bool built, const std::string& failure, const std::string& proof) {
  return {{inventory::kName, part.name},
          {"what", part.what},
          {"built", built},
          {inventory::kUsable, built && failure.empty()},
          {inventory::kWhy, failure.empty() ? proof : failure}};
}

// `probe` tries a part. It returns a Proof, or throws if the part is not usable.
template <class Probe>
json entries(const std::vector<Part>& built, const std::vector<Part>& optional, Probe probe) {
  json list = json::array();
  for (const Part& part : built) {
    Proof proof;
    std::string failure;
    try {
      proof = probe(part.name);
    } catch (const std::exception& error) {
      failure = error.what();
    }
    list.push_back(entry(part, true, failure, proof.why));
    if (!proof.details.empty()) list.back()["details"] = proof.details;
  }
  for (const Part& part : optional)
    if (std::none_of(built.begin(), built.end(),
                     [&](const Part& other) { return other.name == part.name; }))
      list.push_back(entry({part.name, ""}, false, fmt::format("not built: {}", part.what), ""));
  return list;
}

json list_of(const std::vector<Part>& parts) {
  json list = json::array();
  for (const Part& part : parts)
    list.push_back({{inventory::kName, part.name}, {"what", part.what}});
  return list;
}

// An incomplete launch environment is reported, not an error, because the inventory does not depend
// on it.
Place place_or_alone(std::string& why) try {
  return place_from_environment();
} catch (const std::invalid_argument& e) {
  why = e.what();
  return {};
}

json launch(const Place& place, const std::string& why) {
  json told = {{inventory::kLauncher, place.launcher},
               {inventory::kRank, place.rank},
               {inventory::kWorld, place.world},
               {inventory::kLocalRank, place.local_rank},
               {inventory::kLocalWorld, place.local_world},
               {inventory::kHost, host_name()}};
  if (!why.empty()) told[inventory::kWhy] = why;
  return told;
}

json modes() {
  json list = json::array();
  for (const ModeEntry& mode : kModes)
    list.push_back({{inventory::kName, mode.name},
                    {"what", mode.what},
                    {inventory::kOverRanks, mode.traits.over_ranks},
                    {"over_devices", mode.traits.over_devices},
                    {"options", mode.options}});
  return list;
}

}  // namespace

json take_inventory() {
  const Gpus gpus = find_gpus();
  std::string why;
  const Place place = place_or_alone(why);
  return {{"schema", "howmany.devices/1"},
          {inventory::kCpuDevices, cpu_devices()},
          {"cpu", describe_cpu()},
          {"numa", describe_numa()},
          {"caches", describe_caches()},
          {"memory", describe_memory()},
          {inventory::kGpus, gpus.list},
          {"gpu_links", find_gpu_links(gpus.list)},
          {"gpus_hidden", gpus.hidden},
          {"gpus_hidden_by", gpus.hidden_by},
          {inventory::kGpusBecause, gpus.because},
          {inventory::kGpusUnknown, gpus.unknown},
          {"driver", gpus.driver},
          {inventory::kBackends,
           {{inventory::kKernels, entries(kKernels, kOptionalKernels, probe_kernels)},
            {inventory::kComms,
             entries(kComms, kOptionalComms,
                     [&](std::string_view name) { return probe_comm(name, place); })}}},
          {inventory::kLaunch, launch(place, why)},
          {inventory::kModes, modes()},
          {inventory::kModels, list_of(kModels)},
          {"ranges",
           {{"built", ranges_built_in()},
            {inventory::kWhy, ranges_built_in() ? "NVTX domain howmany"
                                                : "not built: the NVTX headers were missing"}}}};
}

}  // namespace howmany::benches
