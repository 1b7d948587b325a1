// SPDX-License-Identifier: Apache-2.0
// The nodes of an allocation, and the words that start programs on the first of them. Within a job
// of Slurm, srun starts them; within one of PBS or LSF, and on the hosts of a file, Open MPI's
// mpirun. Use from one thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/temporary.h"

namespace howmany::reports {

constexpr double kEndOnNodes = 15;  // seconds for a program to end its ranks on several nodes

struct Nodes {
  std::vector<std::string> names;  // in order: k nodes are the first k. Empty: only this host
  std::string launcher;            // "srun" or "mpirun"; empty without names
  std::string source;              // for people: "Slurm job 17", "PBS_NODEFILE", "hosts.txt"

  int count() const { return static_cast<int>(names.size()); }
  bool many() const { return names.size() > 1; }
  bool operator==(const Nodes&) const = default;
};

// Returns the nodes of `hosts_file` (a name per line, perhaps with words after it), if it is given,
// else those of the job that this process is in: SLURM_JOB_NODELIST, PBS_NODEFILE or LSB_HOSTS.
// If mpirun starts programs there, this host is the first if it is one of them; srun keeps Slurm's
// order. Returns none if the launcher of the job is not in PATH (mpirun: of Open MPI). Throws
// InputError if a list cannot be read, or if a name has other characters than letters, digits,
// dots, dashes and underscores.
Nodes find_nodes(const std::string& hosts_file);

// The name of this host among the nodes: SLURMD_NODENAME, else without its domain.
std::string name_of_this_node();

// Returns the words that start `per_node` copies of a program on each of the first `count` nodes.
// Copy 0 is on the first one. The words of the program follow.
std::vector<std::string> start_on(const Nodes& nodes, int count, int per_node);

// Ends programs that start_on() started under srun, whatever happens to this process: steps of the
// job, and never the job. mpirun does so by itself.
class StepsGuard {
 public:
  explicit StepsGuard(const Nodes& nodes);
  void ask_to_end();  // the steps that still run; does not wait
  void end_steps();   // the same, and waits until they have ended

 private:
  std::vector<std::string> arguments_;  // empty: no srun
  std::optional<EndGuard> guard_;
};

// Calls `measure` where that belongs, and returns its exit code: here, or, by running this command
// again and copying its output,
// - as `per_node` ranks on each of the first `count` nodes of the job, if `count` is above 1,
// - on the first node of a Slurm job if this host is another one, as with salloc.
// After SIGINT or SIGTERM, the command there ends as it would here. Throws InputError if there are
// fewer nodes.
int measure_within_job(int count, int per_node, const std::function<int()>& measure);

}  // namespace howmany::reports
