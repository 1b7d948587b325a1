// SPDX-License-Identifier: Apache-2.0
// Finds the programs, reads the machine from `howmany-devices`, and takes the fingerprint that
// --resume compares. The fingerprint holds only stable facts (CPU, cores, memory, GPUs, programs),
// because clock, load and temperature vary.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace howmany::reports {

// Returns the path of a program in HOWMANY_BENCH_DIR if that is set, else in the folder of the
// running executable. Throws InputError if the program is missing.
std::string find_program(const std::string& name);

// A model, mode, communication backend or kernel backend of this build.
struct Part {
  std::string name;
  bool usable = true;
  std::string why;          // reason if it is not usable
  bool over_ranks = false;  // for a mode: one process per device
};

// The launcher of this process and its rank.
struct Launched {
  std::string launcher = "alone";
  int rank = 0, world = 1, local_rank = 0;
  int local_world = 0;  // 0: unknown
  std::string host;
  std::string problem;  // incomplete or contradictory launcher variables; empty if none
  bool many_hosts() const { return local_world > 0 && local_world < world; }
};

// A GPU that the driver shows to this process.
struct MachineGpu {
  std::string device;  // "cuda:0", as PyTorch names it
  std::string uuid;    // empty if unknown
  std::string name = {};
  double memory_bytes = 0;  // 0: unknown
  bool amd = false;         // else NVIDIA's
  bool integrated = false;  // part of the processor
};

struct Machine {
  int usable_cores = 1;
  int cpu_devices = 1;  // default number, each with this many cores:
  int cores_per_device = 1;
  std::vector<int> cores = {};    // OS ids, in the order in which devices use them
  std::vector<MachineGpu> gpus;   // for your own script; our models cannot use those of AMD
  std::string gpus_because;       // why there are none
  bool gpus_unknown = false;      // there are none, and some may be here
  std::vector<std::string> cuda;  // devices of our models; empty if this build cannot use GPUs
  std::vector<Part> models, modes, comms, kernels;
  Launched launch;
};
// Runs `howmany-devices --json`. Throws InputError if it fails.
Machine read_machine();
// "8 GPUs: AMD Instinct MI250X, 68.7 GB each". Names each kind.
std::string gpus_text(const std::vector<MachineGpu>& gpus);
// Throws InputError if a launcher started this command more than once. `why_not` completes the
// sentence "..., but". The copies would measure on the same cores and write to the same folder.
// Reads only the environment.
void refuse_many_copies(const std::string& why_not);
Machine machine_from_json(const nlohmann::json& json, const std::string& source);

// Returns {cpu, cores, memory_bytes, host, gpus, programs}. A resumed plan requires equality,
// except of the host.
nlohmann::json machine_fingerprint();
// Returns "cpu: A there, B here" for the first difference, or "" if there is none. Ignores the
// host, and 2 % of the memory.
std::string difference(const nlohmann::json& there, const nlohmann::json& here);

}  // namespace howmany::reports
