// SPDX-License-Identifier: Apache-2.0
#include "reports/results/machine.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/amd_gpus.h"
#include "core/base/process.h"
#include "core/base/schema/devices.h"
#include "core/base/schema/flags.h"
#include "core/base/temporary.h"
#include "core/base/text/files.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

constexpr double kDevicesTimeout = 30;
constexpr const char* kMemory = "memory_bytes";
constexpr double kSameMemory = 0.02;  // relative

// Without it, howmany-devices reports that the backends between processes cannot be used.
void require_temporary_directory() try {
  temporary_directory();
} catch (const std::invalid_argument& error) {
  throw InputError(error.what());
}

int cores_in_mask() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

std::string cpu_model() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

// Returns the GPU models of the drivers. Models, because another node of the same kind is equal.
std::vector<std::string> gpus_of_driver() {
  std::vector<std::string> gpus;
  std::error_code none;
  for (const auto& gpu : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", none)) {
    std::ifstream information(gpu.path() / "information");
    for (std::string line; std::getline(information, line);)
      if (line.starts_with("Model:")) gpus.push_back(line.substr(line.find_last_of('\t') + 1));
  }
  for (const AmdGpu& gpu : find_amd_gpus(system_root()).usable) gpus.push_back(gpu.name);
  std::ranges::sort(gpus);
  return gpus;
}

// Nodes of one kind differ by the bytes that their kernels keep.
bool is_same_memory(const nlohmann::json& a, const nlohmann::json& b) {
  return a.is_number() && b.is_number() &&
         std::abs(a.get<double>() - b.get<double>()) < kSameMemory * b.get<double>();
}

// FNV-1a hash of the program's bytes: a rebuilt bench measures something else.
std::string program_hash(const std::string& path) {
  uint64_t hash = 0xcbf29ce484222325;
  std::ifstream file(path, std::ios::binary);
  char buffer[1 << 16];
  while (file.read(buffer, sizeof buffer), file.gcount() > 0) {
    for (std::streamsize i = 0; i < file.gcount(); ++i) {
      hash = (hash ^ static_cast<unsigned char>(buffer[i])) * 0x100000001b3;
    }
  }
  return fmt::format("{:016x}", hash);
}

std::vector<Part> parts_from(const JsonNode& list) {
  std::vector<Part> parts;
  for (const JsonNode& item : list.items()) {
    const auto usable = item.find(inventory::kUsable);
    const auto why = item.find(inventory::kWhy);
    const auto over_ranks = item.find(inventory::kOverRanks);
    parts.push_back({item.at(inventory::kName).string(), !usable || usable->boolean(),
                     why ? why->string() : "", over_ranks && over_ranks->boolean()});
  }
  return parts;
}

Launched launch_from(const JsonNode& json) {
  constexpr int64_t kMax = 1 << 20;
  const auto number = [&](const char* key, int64_t least) {
    return static_cast<int>(json.at(key).integer_between(least, kMax));
  };
  Launched launch{.launcher = json.at(inventory::kLauncher).string(),
                  .rank = number(inventory::kRank, 0),
                  .world = number(inventory::kWorld, 1),
                  .local_rank = number(inventory::kLocalRank, 0),
                  .local_world = number(inventory::kLocalWorld, 0),
                  .host = json.at(inventory::kHost).string(),
                  .problem = {}};
  if (const auto why = json.find(inventory::kWhy)) launch.problem = why->string();
  return launch;
}

MachineGpu gpu_from(const JsonNode& json) {
  constexpr int64_t kMax = 1 << 20;
  const auto text = [&](const char* key) {
    const auto found = json.find(key);
    return found ? found->string() : "";
  };
  const auto memory = json.find(inventory::kMemoryBytes);
  const auto integrated = json.find(inventory::kIntegrated);
  return {.device = fmt::format("cuda:{}", json.at(inventory::kIndex).integer_between(0, kMax)),
          .uuid = text(inventory::kUuid),
          .name = text(inventory::kName),
          .memory_bytes = memory ? memory->number() : 0,
          .amd = text(inventory::kVendor) == "amd",
          .integrated = integrated && integrated->boolean()};
}

// Returns the newest version of CUDA that the driver serves, such as 12040; 0 without a driver.
int cuda_of_driver() {
  int version = 0;
  void* const driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  void* const call = driver == nullptr ? nullptr : ::dlsym(driver, "cuDriverGetVersion");
  if (call != nullptr) reinterpret_cast<int (*)(int*)>(call)(&version);
  return version;
}

// A bundle may have the programs for drivers of CUDA 12 in a folder of their own.
std::filesystem::path folder_of_programs() {
  if (const char* const given = std::getenv("HOWMANY_BENCH_DIR")) return given;
  const std::filesystem::path own = program_folder(), older = own / ".." / "cuda12" / "bin";
  if (!std::filesystem::is_directory(older)) return own;
  return cuda_of_driver() / 1000 == 12 ? older : own;
}

}  // namespace

std::string find_program(const std::string& name) {
  const std::filesystem::path path = folder_of_programs() / name;
  if (::access(path.c_str(), X_OK) != 0) {
    throw InputError(
        fmt::format("the program {} is missing; build it, or set HOWMANY_BENCH_DIR "
                    "to the folder that has it",
                    path.string()));
  }
  return path.string();
}

Machine machine_from_json(const nlohmann::json& json, const std::string& source) {
  constexpr int64_t kMax = 1 << 20;
  const JsonNode root(json, source);
  const JsonNode cpu = root.at(inventory::kCpuDevices), backends = root.at(inventory::kBackends);
  Machine machine;
  machine.usable_cores = static_cast<int>(cpu.at(inventory::kUsableCores).integer_between(1, kMax));
  machine.cpu_devices = static_cast<int>(cpu.at(inventory::kDefaultCount).integer_between(1, kMax));
  machine.cores_per_device =
      static_cast<int>(cpu.at(inventory::kCoresPerDevice).integer_between(1, machine.usable_cores));
  if (const auto allowed = cpu.find(inventory::kAllowed))
    for (const JsonNode& core : allowed->items())
      machine.cores.push_back(static_cast<int>(core.integer_between(0, kMax)));
  machine.models = parts_from(root.at(inventory::kModels));
  machine.modes = parts_from(root.at(inventory::kModes));
  machine.comms = parts_from(backends.at(inventory::kComms));
  machine.kernels = parts_from(backends.at(inventory::kKernels));
  if (const auto launch = root.find(inventory::kLaunch)) machine.launch = launch_from(*launch);
  const bool cuda = std::any_of(machine.kernels.begin(), machine.kernels.end(),
                                [](const Part& p) { return p.name == "cuda" && p.usable; });
  for (const JsonNode& gpu : root.at(inventory::kGpus).items()) {
    machine.gpus.push_back(gpu_from(gpu));
    if (cuda && !machine.gpus.back().amd) machine.cuda.push_back(machine.gpus.back().device);
  }
  if (const auto because = root.find(inventory::kGpusBecause))
    machine.gpus_because = because->string();
  if (const auto unknown = root.find(inventory::kGpusUnknown))
    machine.gpus_unknown = unknown->boolean();
  return machine;
}

std::string gpus_text(const std::vector<MachineGpu>& gpus) {
  std::vector<std::pair<std::string, int>> kinds;
  for (const MachineGpu& gpu : gpus) {
    std::string kind = gpu.name.empty() ? "unnamed" : gpu.name;
    if (gpu.memory_bytes > 0) kind += fmt::format(", {:.1f} GB", gpu.memory_bytes / 1e9);
    const auto found = std::ranges::find(kinds, kind, &std::pair<std::string, int>::first);
    if (found == kinds.end())
      kinds.emplace_back(kind, 1);
    else
      ++found->second;
  }
  std::string text = fmt::format("{}: ", number(std::ssize(gpus), "GPU"));
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (kinds.size() > 1) text += fmt::format("{}{} x ", i == 0 ? "" : "; ", kinds[i].second);
    text += kinds[i].first + (kinds[i].second > 1 ? " each" : "");
  }
  return text;
}

void refuse_many_copies(const std::string& why_not) {
  constexpr std::pair<const char*, const char*> kCounts[] = {{"mpirun", "OMPI_COMM_WORLD_SIZE"},
                                                             {"mpirun", "PMI_SIZE"},
                                                             {"srun", "SLURM_STEP_NUM_TASKS"},
                                                             {"torchrun", "WORLD_SIZE"}};
  for (const auto& [launcher, count] : kCounts) {
    const char* const tasks = std::getenv(count);
    if (tasks == nullptr || std::string_view(tasks) == "1") continue;
    throw InputError(fmt::format("{} started this command {} times ({}), but {}", launcher, tasks,
                                 count, why_not));
  }
}

Machine read_machine() {
  require_temporary_directory();
  const ProcessResult ended = run_command(
      {.argv = {find_program("howmany-devices"), flag::kJson}, .timeout_seconds = kDevicesTimeout});
  if (!ended.ok()) throw InputError("howmany-devices " + ended.describe());
  return machine_from_json(parse_json(ended.out, "howmany-devices"), "howmany-devices");
}

nlohmann::json machine_fingerprint() {
  const int64_t memory = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  return {{"cpu", cpu_model()},       {"cores", cores_in_mask()},
          {kMemory, memory},          {"host", host_name()},
          {"gpus", gpus_of_driver()}, {"programs", program_hash(find_program("speedup_bench"))}};
}

std::string difference(const nlohmann::json& there, const nlohmann::json& here) {
  for (const auto& [key, value] : here.items()) {
    if (key == "host") continue;
    const nlohmann::json other = there.value(key, nlohmann::json());
    if (other != value && !(key == kMemory && is_same_memory(other, value)))
      return fmt::format("{}: {} there, {} here", key, other.dump(), value.dump());
  }
  return "";
}

}  // namespace howmany::reports
