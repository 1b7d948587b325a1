// SPDX-License-Identifier: Apache-2.0
// Starts the user's own training command for a number of devices, with the hook in its Python.
//
// Nodes. If the ranks are on several, the words start them there, and each record reaches this
//   host by the group's store (torch_hook/howmany_hook/store.py).
// Hook. PYTHONPATH begins with howmany_hook.zip of this program's folder. PyTorch loads it
//   through its entry points (torch_hook/howmany_hook/__init__.py).
// Devices. If given, the command sees the first n GPUs (show_gpus()). On CPUs, the hook binds local
// rank r
//   to the cores of device r. OMP_NUM_THREADS is the same for every n: torchrun would set it to 1
//   only if n > 1. A command without the hook is bound to the cores of all n devices.
// Side effects. WANDB_MODE=offline, unless it is set.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "benches/common/gpus.h"
#include "core/base/process.h"
#include "core/tensor/device.h"

namespace howmany::benches {

// Numbers of loader workers that take turns while the script trains (torch_hook/turns.py).
struct WorkerTurns {
  std::vector<int> numbers;  // empty: the loader stays as it is
  int rounds = 3;            // of turns
  int most = 1024;           // workers of all ranks
  int prefetch = 0;          // batches ahead of each worker; 0: as the script says
  int loader = 0;            // the n-th DataLoader used; 0: the one that feeds training
  bool given() const { return !numbers.empty(); }
};

struct ScriptCommand {
  std::vector<std::string> words;  // {n}: `ranks`; {port}: one that is free on this host
  // If empty, the command gets the devices, cores and threads that it would have without howmany.
  std::vector<Device> devices;
  GpuVendor vendor = GpuVendor::nvidia;  // of the GPUs that `devices` are, or that are hidden
  int ranks = 1;
  int nodes = 1;  // over which `words` start the ranks; `devices` are those of each
  WorkerTurns turns;
  int threads = 1;            // per rank
  double seconds = 3;         // of timed steps
  int max_steps = 10'000;     // timed
  int detail_steps = 0;       // after the timed ones: the most (torch_hook/detail.py)
  bool count_memory = false;  // of a step (torch_hook/memory.py)
  // JSON of the GPU that the command takes for its own while its step is counted: {"name": "NVIDIA
  // A100", "memory": bytes, "capability": [8, 0], "devices": 4}, of a node. Empty: steps are timed.
  std::string counted_for = {};
  bool try_ddp = false;          // put DistributedDataParallel around the model
  bool tries = false;            // changes that may help, in the steps after the timed ones
  int64_t samples_per_step = 0;  // per rank; 0: as the batches show
  // If given, the rate is read from the lines that the command prints (rate.h), without the hook.
  std::string rate = {};
  // If given, the script's group has more ranks than are started (torch_hook/rehearsal.py).
  struct Rehearsal {
    std::string costs;  // file with the cost table
    int world = 0;      // its ranks; 0: no rehearsal
    bool given() const { return world > 0; }
  } rehearsal = {};
  bool any_world = false;    // the script says how many ranks there are
  double start_timeout = 0;  // seconds until the first step; 0: no limit
  bool quote = true;         // its messages in errors
  bool in_copy = false;      // of the current folder (working_copy.h)
  // Called about five times a second while it trains, from its first step on.
  std::function<void()> on_training = {};
};

// Returns the indices of those that are GPUs.
std::vector<int> gpu_indices(const std::vector<Device>& devices);

// Returns the words with {n} and {port} replaced. Throws std::invalid_argument if there are no
// words.
std::vector<std::string> words_for(const std::vector<std::string>& words, int ranks);
// Returns the variables that the command gets in addition to this process's environment. `folder`
// receives the records of the ranks.
std::vector<std::string> environment_for(const ScriptCommand& command, const std::string& folder);

// Returns the variables of environment_for() for people: "WANDB_MODE=offline, OMP_NUM_THREADS=4".
// Leaves out those of the hook, and the values that hold paths or depend on the devices.
std::string shown_environment(const ScriptCommand& command);

struct ScriptEnd {
  bool ok = true;              // exited with 0
  std::string how;             // "exited with 1: ValueError: no data"
  bool quote = true;           // messages of the command may be shown
  std::string last_line = {};  // that it printed; empty: none, or it may not be shown
  double seconds = 0;          // from its start
};
// An exception that ended a process of the command, as the hook wrote it.
struct Raised {
  double at = 0;  // Unix time
  std::string why;
};
// Returns the exceptions in `folder` by time. Leaves out files that the hook did not write.
std::vector<Raised> read_raised(const std::string& folder);

// The Python that trained, as the hook wrote it.
struct TrainingProcess {
  std::string python;             // its path; empty: no Python imported torch under the hook
  std::vector<std::string> uses;  // lightning.fabric, DistributedDataParallel
};
// Reads it from `folder`: the process that took steps, else any.
TrainingProcess read_process(const std::string& folder);

// Describes the end of the command by its own reason, in this order: the first exception of a rank
// that does not only miss another rank, a signal that a launcher names, the last exception on
// stderr, and the last line before a launcher's own messages. Without `quote`, texts of the command
// are left out.
ScriptEnd end_of(const ProcessResult& ended, bool quote = true,
                 const std::vector<Raised>& raised = {});

// Runs the command until it ends, the hook fails, no first step came in time, `timeout_seconds`
// have passed or this process is interrupted. No process of it is left. Throws
// std::invalid_argument if the program is not in PATH.
ScriptEnd run_script(const ScriptCommand& command, const std::string& folder,
                     double timeout_seconds);

struct Printed {
  std::function<void(std::string_view)> on_stdout, on_stderr;
  std::function<bool()> is_done;  // if true, the command is ended
};
// As run_script(), for a command with `rate`.
ScriptEnd run_printing(const ScriptCommand& command, const Printed& printed,
                       double timeout_seconds);

}  // namespace howmany::benches
