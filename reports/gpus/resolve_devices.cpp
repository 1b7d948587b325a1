// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/resolve_devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/process.h"
#include "core/base/schema/flags.h"
#include "core/base/text/format.h"
#include "reports/results/device_kind.h"

namespace howmany::reports {
namespace {

// Returns k of "cpu:k", or -1 for other text, which the bench reports.
int cpu_index(const std::string& device) {
  if (!device.starts_with("cpu:")) return -1;
  const char* digits = device.c_str() + 4;
  char* end = nullptr;
  const long index = std::strtol(digits, &end, 10);
  return end != digits && *end == '\0' && index >= 0 && index < 4096 ? static_cast<int>(index) : -1;
}

// Resolves a prefix of a GPU's UUID, with or without "cuda:", to "cuda:2".
std::string gpu_by_uuid(const std::string& device, const Machine& machine) {
  const size_t at = device.find("GPU-");
  if (at != 0 && !(at == 5 && device.starts_with("cuda:"))) return device;
  std::vector<std::string> found;
  for (const MachineGpu& gpu : machine.gpus)
    if (gpu.uuid.starts_with(device.substr(at))) found.push_back(gpu.device);
  if (found.size() == 1) return found[0];
  throw InputError(found.empty()
                       ? fmt::format("no GPU's UUID begins with {}; howmany devices lists them",
                                     device.substr(at))
                       : fmt::format("the UUIDs of {} begin with {}; write more of it",
                                     fmt::join(found, ", "), device.substr(at)));
}

int cpu_slices(const std::vector<std::string>& devices) {
  int slices = 0;
  for (const std::string& device : devices) slices = std::max(slices, cpu_index(device) + 1);
  return slices;
}

// Returns the number of devices if all are GPUs, else 0.
int gpus_of(const std::vector<std::string>& devices) {
  const bool all = device_kind(fmt::format("{}", fmt::join(devices, ","))) == DeviceKind::kGpu;
  return all ? static_cast<int>(devices.size()) : 0;
}

bool has_amd(const Machine& machine) { return std::ranges::any_of(machine.gpus, &MachineGpu::amd); }

std::string why_no_gpu(const Machine& machine) {
  if (machine.gpus.empty())
    return machine.gpus_because.empty() ? "howmany devices says why" : machine.gpus_because;
  if (!has_amd(machine)) return "howmany devices says why";
  return fmt::format(
      "howmany's own models need NVIDIA GPUs or CPU cores, and here are {}. Your own script runs "
      "on these: howmany gpus -- python train.py",
      gpus_text(machine.gpus));
}

// Cores in place of the GPUs that a job has would answer another question.
void refuse_missing_gpus(const Machine& machine) {
  const int here = gpus_of_this_job();
  if (here < 1) return;
  throw InputError(fmt::format(
      "the job has {} on this node (SLURM_GPUS_ON_NODE), and none can be used: {}. To measure "
      "cores, give --devices cpu:0,cpu:1",
      number(here, "GPU"), why_no_gpu(machine)));
}

// GPUs that are part of a processor are used only if --devices names them: PyTorch serves few.
std::vector<std::string> default_gpus(const Machine& machine, bool of_script) {
  if (!of_script) return machine.cuda;
  std::vector<std::string> devices;
  for (const MachineGpu& gpu : machine.gpus)
    if (!gpu.integrated) devices.push_back(gpu.device);
  return devices;
}

// Which GPUs are measured, or why cores are by default although GPUs are here; empty if neither.
std::string gpus_notice(const Machine& machine, const Request& request, bool of_script,
                        bool by_default) {
  std::vector<MachineGpu> measured;
  for (const MachineGpu& gpu : machine.gpus)
    if (std::ranges::count(request.devices, gpu.device) > 0) measured.push_back(gpu);
  if (!measured.empty()) return of_script ? gpus_text(measured) + "." : "";
  if (!by_default || machine.gpus.empty()) return "";
  if (!of_script)
    return has_amd(machine) ? "CPU cores are measured: " + why_no_gpu(machine) + "." : "";
  if (std::ranges::all_of(machine.gpus, &MachineGpu::integrated))
    return fmt::format(
        "CPU cores are measured: the GPU is part of the processor ({}). Give {} {} if PyTorch "
        "serves it.",
        machine.gpus[0].name, flag::kDevices.name, machine.gpus[0].device);
  return "";
}

// Throws InputError if a GPU of the request is not here, or is not one that our models can use.
void refuse_absent_gpus(const Machine& machine, const Request& request, bool of_script) {
  const auto is_gpu = [](const std::string& device) { return device.starts_with("cuda:"); };
  const auto first = std::ranges::find_if(request.devices, is_gpu);
  if (first == request.devices.end()) return;
  const bool none = machine.gpus.empty() && !machine.gpus_because.empty() && !machine.gpus_unknown;
  if (none || (!of_script && has_amd(machine)))
    throw InputError(fmt::format("{} {}: {}", flag::kDevices.name, *first, why_no_gpu(machine)));
  for (const std::string& device : request.devices)
    if (of_script && is_gpu(device) && !machine.gpus.empty() &&
        std::ranges::find(machine.gpus, device, &MachineGpu::device) == machine.gpus.end())
      throw InputError(
          fmt::format("{} {}: here are {}", flag::kDevices.name, device, gpus_text(machine.gpus)));
}

}  // namespace

int gpus_of_this_job() {
  const char* const here = std::getenv("SLURM_GPUS_ON_NODE");
  return here == nullptr ? 0 : std::atoi(here);
}

std::string resolve_devices(const Arguments& arguments, const Machine& machine, Request& request) {
  const int cores = machine.usable_cores;
  const bool of_script = !arguments.command.empty();
  for (std::string& device : request.devices) device = gpu_by_uuid(device, machine);
  refuse_absent_gpus(machine, request, of_script);
  if (request.devices.empty()) request.devices = default_gpus(machine, of_script);
  if (request.devices.empty()) refuse_missing_gpus(machine);
  if (!arguments.cores_per_device) {
    const int slices = cpu_slices(request.devices), gpus = gpus_of(request.devices);
    request.cores_per_device = gpus > 0                       ? std::max(1, cores / gpus)
                               : slices > machine.cpu_devices ? std::max(1, cores / slices)
                                                              : machine.cores_per_device;
  }
  if (request.devices.empty()) {
    const int count = std::clamp(cores / request.cores_per_device, 1, machine.cpu_devices);
    for (int i = 0; i < count; ++i) request.devices.push_back(fmt::format("cpu:{}", i));
  }
  return gpus_notice(machine, request, of_script, arguments.devices.empty());
}

void refuse_oversubscription(const Machine& machine, const Request& request) {
  const int needed = cpu_slices(request.devices) * request.cores_per_device;
  if (needed <= machine.usable_cores || request.oversubscribe) return;
  throw InputError(fmt::format(
      "the devices need {} cores ({} per device), {} can be used here; take fewer devices, or pass "
      "--oversubscribe and trust no speedup",
      needed, request.cores_per_device, machine.usable_cores));
}

}  // namespace howmany::reports
