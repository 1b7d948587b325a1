// SPDX-License-Identifier: Apache-2.0
#include "reports/nodes/nodes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

#include "core/base/error.h"
#include "core/base/process.h"
#include "core/base/schema/exit_codes.h"
#include "core/base/schema/flags.h"
#include "core/base/text/files.h"
#include "core/base/text/format.h"
#include "core/base/text/lines.h"
#include "core/base/text/print_stderr.h"

namespace howmany::reports {
namespace {

using Words = std::vector<std::string>;

constexpr double kAskSeconds = 30;  // of Slurm
constexpr double kEndSeconds = 20;  // for the command on the first node to write its files
// srun would wait without end for tasks of a host that died. Rank 0 of a script waits 20 s for the
// records of others.
constexpr int kWaitForTasks = 30;  // seconds after the first one has ended
constexpr size_t kMostNodes = 4096;
constexpr size_t kLongestName = 253;  // of DNS

// Variables that script_bench sets, which mpirun does not pass on by itself.
constexpr const char* kPassed[] = {"PATH",
                                   "LD_LIBRARY_PATH",
                                   "PYTHONPATH",
                                   "OMP_NUM_THREADS",
                                   "WANDB_MODE",
                                   "GLOO_SOCKET_IFNAME",
                                   "HOWMANY_STEPS",
                                   "HOWMANY_SCRIPT_OUT",
                                   "HOWMANY_SCRIPT_SECONDS",
                                   "HOWMANY_SCRIPT_MAX_STEPS",
                                   "HOWMANY_SCRIPT_DETAIL",
                                   "HOWMANY_SCRIPT_SAMPLES",
                                   "HOWMANY_SCRIPT_TRY_DDP",
                                   "HOWMANY_SCRIPT_CORES"};

// "$1" is the job, "$2" the name of the steps, and "$3" the step that this process is in.
// scancel without --signal kills at once, and a command on the first node writes files at its end.
constexpr const char* kEndSteps = R"sh(
steps() {
  squeue --noheader --steps --job="$1" --format="%i %j" | while read -r id name; do
    [ "$name" = "$2" ] && [ "$id" != "$1.$3" ] && echo "$id"
  done
}
for id in $(steps "$@"); do scancel --signal=TERM "$id"; done
for _ in 1 2 3 4 5 6 7 8 9 10; do
  [ -z "$(steps "$@")" ] && exit
  sleep 1
done
for id in $(steps "$@"); do scancel "$id"; done
)sh";

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void check_name(std::string_view name, const std::string& source) {
  const bool good = !name.empty() && name.size() <= kLongestName && name[0] != '-' &&
                    std::ranges::all_of(name, [](unsigned char c) {
                      return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
                    });
  if (!good) throw InputError(fmt::format("{}: \"{}\" is no name of a host", source, name));
}

void add_once(Words& names, std::string_view name, const std::string& source) {
  check_name(name, source);
  if (std::ranges::find(names, name) == names.end()) names.emplace_back(name);
  if (names.size() > kMostNodes)
    throw InputError(fmt::format("{}: more than {} hosts", source, kMostNodes));
}

// The first word of each line that is no comment.
Words names_in(const std::string& text, const std::string& source) {
  Words names;
  for (const std::string_view line : lines_of(text))
    if (!line.empty() && line[0] != '#')
      add_once(names, line.substr(0, line.find_first_of(" \t")), source);
  if (names.empty()) throw InputError(fmt::format("{} names no host", source));
  return names;
}

Words words_in(const std::string& text, const std::string& source) {
  Words names;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
    if (end > at) add_once(names, text.substr(at, end - at), source);
    at = end + 1;
  }
  return names;
}

Nodes nodes_of_slurm() {
  const std::string list = variable("SLURM_JOB_NODELIST"), source = "SLURM_JOB_NODELIST";
  const std::string scontrol = find_in_path("scontrol");
  if (scontrol.empty()) return {};
  const ProcessResult told =
      run_command({.argv = {scontrol, "show", "hostnames", list}, .timeout_seconds = kAskSeconds});
  if (!told.ok()) throw InputError(fmt::format("scontrol {}", told.describe()));
  return {names_in(told.out, source), "srun",
          fmt::format("Slurm job {}", variable("SLURM_JOB_ID"))};
}

std::string_view without_domain(std::string_view name) { return name.substr(0, name.find('.')); }

void put_this_host_first(Words& names) {
  const std::string name = name_of_this_node();
  const auto here = std::ranges::find(names, without_domain(name), without_domain);
  if (here != names.end()) std::rotate(names.begin(), here, here + 1);
}

// Other MPIs have other options.
bool can_start(const std::string& launcher) {
  const std::string program = find_in_path(launcher);
  if (program.empty() || launcher == "srun") return !program.empty();
  const ProcessResult told =
      run_command({.argv = {program, "--version"}, .timeout_seconds = kAskSeconds});
  return told.out.find("Open MPI") != std::string::npos;
}

// One name for all steps of a command, also if measure_within_job() started it.
constexpr const char* kSteps = "HOWMANY_STEPS";
std::string step_name() {
  const std::string given = variable(kSteps);
  return given.empty() ? fmt::format("howmany-{}-{}", name_of_this_node(), ::getpid()) : given;
}

// Whole nodes: each task sees all cores and GPUs that the job has there.
Words srun_words(const Nodes& nodes, int count, int per_node) {
  const std::span<const std::string> first(nodes.names.data(), static_cast<size_t>(count));
  // A job's own numbers of tasks and of cores per task are not those of the step.
  return {"env",
          "-u",
          "SLURM_CPUS_PER_TASK",
          "-u",
          "SLURM_TRES_PER_TASK",
          "-u",
          "SLURM_CPU_BIND",
          "srun",
          "--quiet",
          "--overlap",
          fmt::format("--nodes={}", count),
          fmt::format("--ntasks={}", count * per_node),
          fmt::format("--ntasks-per-node={}", per_node),
          "--distribution=block",
          fmt::format("--nodelist={}", fmt::join(first, ",")),
          "--cpu-bind=none",
          "--export=ALL",
          "--kill-on-bad-exit=1",
          fmt::format("--wait={}", kWaitForTasks),
          fmt::format("--job-name={}", step_name())};
}

Words mpirun_words(const Nodes& nodes, int count, int per_node) {
  std::string hosts;
  for (int i = 0; i < count; ++i)
    hosts +=
        fmt::format("{}{}:{}", i == 0 ? "" : ",", nodes.names[static_cast<size_t>(i)], per_node);
  Words words = {"mpirun",
                 "--host",
                 hosts,
                 "-np",
                 std::to_string(count * per_node),
                 "--map-by",
                 fmt::format("ppr:{}:node", per_node),
                 "--bind-to",
                 "none"};
  if (::geteuid() == 0) words.emplace_back("--allow-run-as-root");
  for (const char* const name : kPassed) words.insert(words.end(), {"-x", name});
  return words;
}

// Runs this command again, behind the words that start it elsewhere.
int run_again(Words words, const Nodes& nodes) {
  catch_interrupts();
  StepsGuard guard(nodes);
  Words argv = arguments_of_this_process();
  argv.at(0) = program_path();
  words.insert(words.end(), argv.begin(), argv.end());
  words[0] = find_in_path(words[0]);
  Command command{.argv = std::move(words),
                  .environment = {fmt::format("{}={}", kSteps, step_name())},
                  .grace_seconds = kEndSeconds};
  if (nodes.launcher == "srun") command.ask_to_end = [&] { guard.ask_to_end(); };
  command.on_stdout = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  command.on_stderr = [](std::string_view text) { print_stderr("{}", text); };
  const ProcessResult ended = run_command(command);
  if (!ended.ok()) guard.end_steps();  // those that it has left
  if (ended.how == ProcessResult::How::kInterrupted) return exit_code::kInterrupted;
  return ended.how == ProcessResult::How::kExited ? ended.code : exit_code::kMeasurementFailed;
}

}  // namespace

std::string name_of_this_node() {
  if (const std::string name = variable("SLURMD_NODENAME"); !name.empty()) return name;
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return std::string(without_domain(name));
}

Nodes find_nodes(const std::string& hosts_file) {
  Nodes nodes;
  if (!hosts_file.empty())
    nodes = {names_in(read_text(hosts_file), hosts_file), "mpirun", hosts_file};
  else if (!variable("SLURM_JOB_ID").empty() && !variable("SLURM_JOB_NODELIST").empty())
    nodes = nodes_of_slurm();
  else if (const std::string file = variable("PBS_NODEFILE"); !file.empty())
    nodes = {names_in(read_text(file), file), "mpirun", "PBS_NODEFILE"};
  else if (const std::string hosts = variable("LSB_HOSTS"); !hosts.empty())
    nodes = {words_in(hosts, "LSB_HOSTS"), "mpirun", "LSB_HOSTS"};
  if (nodes.launcher == "mpirun") put_this_host_first(nodes.names);
  if (!nodes.many() || can_start(nodes.launcher)) return nodes;
  if (!hosts_file.empty())
    throw InputError(
        fmt::format("{}: the mpirun of Open MPI starts its hosts, and is not in PATH", hosts_file));
  return {};
}

Words start_on(const Nodes& nodes, int count, int per_node) {
  return nodes.launcher == "srun" ? srun_words(nodes, count, per_node)
                                  : mpirun_words(nodes, count, per_node);
}

StepsGuard::StepsGuard(const Nodes& nodes) {
  if (nodes.launcher != "srun") return;
  arguments_ = {variable("SLURM_JOB_ID"), step_name(), variable("SLURM_STEP_ID")};
  guard_.emplace(kEndSteps, arguments_);
}

void StepsGuard::ask_to_end() {
  if (guard_) guard_->run_now();
}

void StepsGuard::end_steps() {
  if (!guard_) return;
  guard_->run_now();
  guard_.reset();
  guard_.emplace(kEndSteps, arguments_);
}

int measure_within_job(int count, int per_node, const std::function<int()>& measure) {
  const bool in_slurm = !variable("SLURM_JOB_ID").empty() && !find_in_path("srun").empty();
  if (!variable(kSteps).empty() || (count < 2 && !in_slurm)) return measure();
  const Nodes nodes = find_nodes("");
  if (count > std::max(1, nodes.count()))
    throw InputError(fmt::format("{} {}: this job has {}", flag::kNodes.name, count,
                                 number(std::max(1, nodes.count()), "node")));
  const bool here = nodes.names.empty() || nodes.names.front() == name_of_this_node();
  if (count < 2 && here) return measure();
  if (!here)
    print_stderr("{} is not the first node of {}: measuring there.\n", name_of_this_node(),
                 nodes.source);
  return run_again(start_on(nodes, std::max(1, count), count < 2 ? 1 : per_node), nodes);
}

}  // namespace howmany::reports
