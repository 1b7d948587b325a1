// SPDX-License-Identifier: Apache-2.0
// The words of a user's training command: where its launcher is, and how several ranks are started.
// Values only, except that python_of() looks into PATH.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace howmany::reports {

using Words = std::vector<std::string>;

constexpr const char* kCount = "{n}";  // replaced by the number of ranks

// Replaced in a command for several nodes: their number, the ranks of each, the name of the first
// one, and a port that is free there.
constexpr const char *kNodes = "{nodes}", *kPerNode = "{per_node}", *kHead = "{head}",
                     *kPort = "{port}";

bool has_count(const Words& words);
bool has_nodes(const Words& words);
// Returns the words with `what` replaced.
Words replaced(Words words, const std::string& what, const std::string& with);

// If the command's launcher is srun and names no nodes, returns the words that start it on `nodes`.
// srun prefers idle nodes, and a step of this process makes the first one look busy.
Words with_nodelist(Words words, const std::vector<std::string>& nodes);

// A command that begins with a launcher, perhaps after wrappers: "env A=1 torchrun t.py".
struct LaunchWords {
  Words swept;         // {n} takes the place of the launcher's number
  Words plain;         // what each rank runs, without the launcher; empty if that is not known
  std::string notice;  // for people: the change; empty if there is none
};
// Returns nullopt if there is no launcher. Knows torchrun, accelerate, deepspeed, fabric, composer,
// horovodrun, mpirun, mpiexec and srun. Only the launcher's own words are changed: its number, and
// where it listens. Throws InputError if they are for more than one node.
std::optional<LaunchWords> launch_words(const Words& words);

// Returns the name that results show: the file or module that Python runs, else the program.
std::string name_of(const Words& words);

// Throws InputError for a Python that cannot be measured, such as python -c.
void refuse_flags_of_python(const Words& words);

// Returns the Python that a command starts: its first word, or the one beside a launcher such as
// torchrun. Empty if that is not known.
std::string python_of(const Words& words);

// Returns the words that start the command by torchrun with {n} ranks. torchrun listens on the
// loopback interface. `python` has torch; empty: python_of(words). Throws InputError if there is
// none.
Words under_torchrun(const Words& words, std::string python = "");

// Returns the words that start {per_node} ranks of the command on one of {nodes} nodes, by a
// torchrun on each. Its environment has the number of the node, as of srun or Open MPI's mpirun.
Words under_torchrun_on_nodes(const Words& words, const std::string& python);

// Returns the words that start `python train.py` by `fabric run` with {n} ranks. Empty if the
// command is not of this form.
Words under_fabric(const Words& words, const std::string& python, bool on_gpus);

}  // namespace howmany::reports
