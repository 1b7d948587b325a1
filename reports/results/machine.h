// The machine and the programs beside us: where a program is, what `howmany-devices` says, and the
// fingerprint that tells --resume whether it still measures the same thing. Hard facts only (CPU,
// cores, memory, GPUs, programs): clock, load and temperature change from minute to minute.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace howmany::reports {

// HOWMANY_BENCH_DIR, if set, else the folder of the running executable. Throws InputError when the
// program is not there.
std::string find_program(const std::string& name);

// A model, mode, communication or kernel backend of this build.
struct Part {
  std::string name;
  bool usable = true;
  std::string why;          // it is not usable
  bool over_ranks = false;  // of a mode: a process for each device
};

// How this process was started, and where among others.
struct Launched {
  std::string launcher = "alone";
  int rank = 0, world = 1, local_rank = 0;
  int local_world = 0;  // 0: not known
  std::string host;
  std::string problem;  // half a launch, or variables that contradict each other; else empty
  bool many_hosts() const { return local_world > 0 && local_world < world; }
};

struct Machine {
  int usable_cores = 1;
  int cpu_devices = 1;  // by default, with this many cores each:
  int cores_per_device = 1;
  std::vector<int> cores = {};     // OS ids, in the order in which devices take them
  std::vector<std::string> cuda;   // "cuda:0", ...; empty without kernels for them
  std::vector<std::string> uuids;  // of those, in their order
  std::vector<Part> models, modes, comms, kernels;
  Launched launch;
};
// As `howmany-devices --json` tells it.
Machine read_machine();
// Throws InputError when a launcher started this command more than once, "but " why not: each would
// measure by itself, on the same cores, and write to the same folder. By the environment alone.
void refuse_many_copies(const std::string& why_not);
Machine machine_from_json(const nlohmann::json& json, const std::string& source);

// {cpu, cores, memory_bytes, host, gpus, programs}; equal before and after a resume.
nlohmann::json machine_fingerprint();
// "cpu: A there, B here", or nothing when equal. The host name may differ.
std::string difference(const nlohmann::json& there, const nlohmann::json& here);

}  // namespace howmany::reports
