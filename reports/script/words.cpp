// SPDX-License-Identifier: Apache-2.0
#include "reports/script/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <utility>

#include "core/base/process.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

namespace fs = std::filesystem;

using Names = std::vector<std::string>;

// A program that starts ranks. The first name of a number is added if none is given.
struct Launcher {
  std::string name, command;  // command: "launch" of accelerate
  Names counts;               // names of the number of ranks
  Names nodes;                // of the number of nodes
  Names switches;             // options without a value
  bool runs_python = true;    // takes a script, not a program
  std::string address = {};   // option that makes it listen on one address
};
// Options of a launcher that listens where these say.
const Names kAddresses = {"--rdzv",       "--master-addr",  "--master_addr",  "--local-addr",
                          "--local_addr", "--main-address", "--main_address", "--main_process_ip"};
const Names kTorchrunCounts = {"--nproc-per-node", "--nproc_per_node"};
const Names kTorchrunNodes = {"--nnodes"};
const Names kTorchrunSwitches = {"--standalone", "--module",   "-m",
                                 "--no-python",  "--run-path", "--no_python"};
const std::vector<Launcher> kLaunchers = {
    {"torchrun", "", kTorchrunCounts, kTorchrunNodes, kTorchrunSwitches, true, "--local-addr"},
    {"torch.distributed.run", "", kTorchrunCounts, kTorchrunNodes, kTorchrunSwitches, true,
     "--local-addr"},
    {"torch.distributed.launch", "", kTorchrunCounts, kTorchrunNodes, kTorchrunSwitches, true,
     "--local-addr"},
    {"accelerate",
     "launch",
     {"--num_processes", "--num-processes"},
     {"--num_machines", "--num-machines"},
     {"--cpu", "--multi_gpu", "--multi-gpu", "--tpu", "--use_deepspeed", "--use_fsdp", "-m",
      "--use_megatron_lm", "--module", "--no_python", "--debug", "--quiet", "-q", "--use_xpu",
      "--enable_cpu_affinity", "--ipex", "--mps"},
     true,
     "--main_process_ip"},
    {"deepspeed",
     "",
     {"--num_gpus"},
     {"--num_nodes"},
     {"--no_ssh", "--force_multi", "--save_pid", "--bind_cores_to_rank", "--no_local_rank",
      "--module", "--no_python"}},
    {"fabric", "run", {"--devices"}, {"--num-nodes", "--num_nodes"}, {}, true, "--main-address"},
    {"composer", "", {"-n", "--nproc"}, {}, {"-m", "--module_mode", "-c", "--command_mode", "-v"}},
    {"horovodrun", "", {"-np", "--num-proc"}, {}, {"--gloo", "--mpi", "--verbose"}, false},
    {"mpirun",
     "",
     {"-np", "-n", "--np", "--n", "-c"},
     {},
     {"--oversubscribe", "--allow-run-as-root", "-q", "--quiet", "-v", "--report-bindings"},
     false},
    {"mpiexec",
     "",
     {"-n", "-np", "--np", "--n"},
     {},
     {"--oversubscribe", "--allow-run-as-root", "-l", "-q", "-v"},
     false},
    {"srun",
     "",
     {"-n", "--ntasks"},
     {"-N", "--nodes"},
     {"--exclusive", "--exact", "--overlap", "-l", "--label", "-u", "--unbuffered", "-v", "-Q",
      "--pty", "--overcommit", "-O"},
     false},
};
const Names kTwoValues = {"--mca", "-mca", "--gmca", "-genv", "-env"};

// The number of the node, for torchrun's --node-rank.
constexpr const char* kNodeRank =
    R"(PET_NODE_RANK=${OMPI_COMM_WORLD_RANK:-$SLURM_NODEID} exec "$@")";

bool any_has(const Words& words, const char* what) {
  return std::ranges::any_of(
      words, [&](const std::string& word) { return word.find(what) != std::string::npos; });
}

bool contains(const Names& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

std::string file_name(const std::string& word) { return fs::path(word).filename(); }

bool is_python(const std::string& word) {
  const std::string name = file_name(word);
  return name.starts_with("python") &&
         name.find_first_not_of("0123456789.", std::string_view("python").size()) == name.npos;
}

bool is_option(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

// Ends the search for a launcher: the script, which has words of its own.
bool is_script(const std::string& word) { return word.ends_with(".py") || word.ends_with(".sh"); }

struct Found {
  const Launcher* launcher = nullptr;
  size_t begin = 0;  // of the launcher: "python" of python -m torch.distributed.run
  size_t own = 0;    // its first option
};

std::optional<Found> find_launcher(const Words& words) {
  for (size_t i = 0; i < words.size() && !is_script(words[i]); ++i) {
    const bool module = is_python(words[i]) && i + 2 < words.size() && words[i + 1] == "-m";
    const size_t at = module ? i + 2 : i;
    for (const Launcher& launcher : kLaunchers) {
      if (file_name(words[at]) != launcher.name) continue;
      if (launcher.command.empty()) return Found{&launcher, i, at + 1};
      if (at + 1 < words.size() && words[at + 1] == launcher.command)
        return Found{&launcher, i, at + 2};
    }
    if (is_python(words[i])) return {};
  }
  return {};
}

// True for "-n4", with one of the names.
bool has_value(const std::string& option, const Names& names) {
  return std::ranges::any_of(names, [&](const std::string& name) {
    return !name.starts_with("--") && option.starts_with(name) && option.size() > name.size() &&
           (std::isdigit(static_cast<unsigned char>(option[name.size()])) != 0 ||
            option.substr(name.size()) == kCount);
  });
}

// Returns the place after the option at `i` and its values.
size_t after_option(const Words& words, size_t i, const Launcher& launcher) {
  const std::string& option = words[i];
  const size_t left = words.size() - i;
  if (contains(kTwoValues, option)) return i + std::min<size_t>(3, left);
  const bool attached = option.find('=') != option.npos || has_value(option, launcher.counts) ||
                        has_value(option, launcher.nodes);
  if (attached || contains(launcher.switches, option) || left < 2) return i + 1;
  const std::string& next = words[i + 1];
  return is_option(next) || is_script(next) || is_python(next) ? i + 1 : i + 2;
}

// Returns the end of the launcher's own words.
size_t end_of_own(const Words& words, const Found& found) {
  size_t i = found.own;
  while (i < words.size() && is_option(words[i]) && words[i] != "--")
    i = after_option(words, i, *found.launcher);
  return std::min(i, words.size());
}

// The value of an option: its word, and the place in it.
struct Place {
  size_t word = 0, from = 0;
  std::string value;
};

std::optional<Place> find_value(const Words& words, size_t begin, size_t end, const Names& names) {
  for (size_t i = begin; i < end; ++i)
    for (const std::string& name : names) {
      const std::string& word = words[i];
      if (word == name && i + 1 < end) return Place{i + 1, 0, words[i + 1]};
      if (word.starts_with(name + "="))
        return Place{i, name.size() + 1, word.substr(name.size() + 1)};
      if (has_value(word, {name})) return Place{i, name.size(), word.substr(name.size())};
    }
  return {};
}

void refuse_many_nodes(const Words& words, const Found& found, size_t end) {
  const auto nodes = find_value(words, found.own, end, found.launcher->nodes);
  if (!nodes || nodes->value == "1" || nodes->value == "1:1" || nodes->value == kNodes) return;
  throw InputError(
      fmt::format("{} has {} nodes: write {} for the number to measure, or leave {} out",
                  found.launcher->name, nodes->value, kNodes, words[nodes->word]));
}

Words put_count(const Words& words, const Found& found, size_t end, std::string* notice) {
  Words swept = words;
  const Launcher& launcher = *found.launcher;
  if (const auto place = find_value(words, found.own, end, launcher.counts)) {
    swept[place->word].replace(place->from, std::string::npos, kCount);
    if (place->value != kCount)
      *notice = fmt::format("{} {} is replaced by the number of devices to measure", launcher.name,
                            place->value);
    return swept;
  }
  const auto at = swept.begin() + static_cast<std::ptrdiff_t>(found.own);
  swept.insert(at, {launcher.counts[0], kCount});
  *notice = fmt::format("{} gets {} with the number of devices to measure", launcher.name,
                        launcher.counts[0]);
  return swept;
}

// On one host, a launcher needs no other interface. `words` are those that were given.
void listen_on_loopback(Words& swept, const Words& words, const Found& found, size_t end) {
  const auto says_where = [](const std::string& word) {
    return std::ranges::any_of(kAddresses,
                               [&](const auto& name) { return word.starts_with(name); });
  };
  const auto begin = static_cast<std::ptrdiff_t>(found.own);
  if (found.launcher->address.empty() || has_nodes(words) ||
      std::any_of(words.begin() + begin, words.begin() + static_cast<std::ptrdiff_t>(end),
                  says_where))
    return;
  swept.insert(swept.begin() + begin, {found.launcher->address, "127.0.0.1"});
}

// Returns the command of a rank, without the launcher.
Words plain_of(const Words& words, const Found& found, size_t end) {
  Words plain(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(found.begin));
  if (end < words.size() && words[end] == "--") ++end;
  if (end >= words.size()) return {};
  const auto own = [&](const Names& names) {
    return std::any_of(words.begin() + static_cast<std::ptrdiff_t>(found.own),
                       words.begin() + static_cast<std::ptrdiff_t>(end),
                       [&](const std::string& word) { return contains(names, word); });
  };
  if (found.launcher->runs_python && !own({"--no-python", "--no_python"})) {
    const std::string& program = words[found.begin];
    const std::string beside = python_of({program});
    plain.push_back(is_python(program)                 ? program
                    : plain.empty() && !beside.empty() ? beside
                                                       : "python");
    if (own({"-m", "--module"})) plain.emplace_back("-m");
  }
  plain.insert(plain.end(), words.begin() + static_cast<std::ptrdiff_t>(end), words.end());
  return plain;
}

}  // namespace

bool has_count(const Words& words) { return any_has(words, kCount); }
bool has_nodes(const Words& words) { return any_has(words, kNodes); }

Words replaced(Words words, const std::string& what, const std::string& with) {
  for (std::string& word : words)
    for (size_t at = 0; (at = word.find(what, at)) != std::string::npos; at += with.size())
      word.replace(at, what.size(), with);
  return words;
}

Words with_nodelist(Words words, const std::vector<std::string>& nodes) {
  const std::optional<Found> found = find_launcher(words);
  if (!found || found->launcher->name != "srun" ||
      find_value(words, found->own, end_of_own(words, *found), {"-w", "--nodelist"}))
    return words;
  words.insert(words.begin() + static_cast<std::ptrdiff_t>(found->own),
               fmt::format("--nodelist={}", fmt::join(nodes, ",")));
  return words;
}

std::optional<LaunchWords> launch_words(const Words& words) {
  const std::optional<Found> found = find_launcher(words);
  if (!found) return {};
  const size_t end = end_of_own(words, *found);
  refuse_many_nodes(words, *found, end);
  LaunchWords launch;
  const bool is_swept = has_count(words) || has_nodes(words);
  launch.swept = is_swept ? words : put_count(words, *found, end, &launch.notice);
  listen_on_loopback(launch.swept, words, *found, end);
  launch.plain = plain_of(words, *found, end);
  if (has_count(launch.plain) || has_nodes(launch.plain)) launch.plain.clear();
  return launch;
}

std::string name_of(const Words& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (is_script(words[i])) return file_name(words[i]);
    const bool launcher = i + 1 < words.size() && words[i + 1].starts_with("torch.distributed.");
    if ((words[i] == "-m" || words[i] == "--module") && i + 1 < words.size() && !launcher)
      return words[i + 1];
  }
  return file_name(words[0]);
}

void refuse_flags_of_python(const Words& words) {
  const auto python = std::ranges::find_if(words, is_python);
  if (python == words.end()) return;
  for (auto word = python + 1; word != words.end() && is_option(*word); ++word) {
    if (*word == "-m") return;
    if (*word == "-c") throw InputError("python -c cannot be measured: write a script file");
    if (*word == "-E" || *word == "-I")
      throw InputError(fmt::format(
          "python {} ignores PYTHONPATH, through which the steps are measured; leave it out",
          *word));
    if (*word == "-W" || *word == "-X") ++word;  // its value
    if (word == words.end()) return;
  }
}

std::string python_of(const Words& words) {
  if (words.empty()) return "";
  const std::string program = find_in_path(words[0]);
  if (is_python(words[0])) return program;
  const bool installed_by_pip =
      file_name(words[0]) == "ipython" ||
      std::ranges::any_of(kLaunchers, [&](const Launcher& launcher) {
        return launcher.runs_python && file_name(words[0]) == launcher.name;
      });
  if (!installed_by_pip) return "";
  const fs::path beside = fs::path(program).parent_path() / "python3";
  return !program.empty() && fs::exists(beside) ? beside.string() : "";
}

Words under_torchrun(const Words& words, std::string python) {
  if (python.empty() && !words.empty()) python = is_python(words[0]) ? words[0] : python_of(words);
  if (python.empty())
    throw InputError(
        fmt::format("unknown how to start {} with several ranks: write {} where its number belongs",
                    words.empty() ? "" : words[0], kCount));
  Words all = {
      python,         "-m",        "torch.distributed.run", "--standalone",
      "--local-addr", "127.0.0.1", "--nproc-per-node",      kCount,
      "--no-python",  "--"};  // else torchrun takes --log of the command for one of its own
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

Words under_torchrun_on_nodes(const Words& words, const std::string& python) {
  Words all = {"sh",
               "-c",
               kNodeRank,
               "sh",
               python,
               "-m",
               "torch.distributed.run",
               "--nnodes",
               kNodes,
               "--nproc-per-node",
               kPerNode,
               "--master-addr",
               kHead,
               "--master-port",
               kPort,
               "--no-python",
               "--"};  // else torchrun takes --log of the command for one of its own
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

Words under_fabric(const Words& words, const std::string& python, bool on_gpus) {
  if (words.size() < 2 || !is_python(words[0]) || !is_script(words[1])) return {};
  Words all = {python,      "-m",   "lightning.fabric.cli", "--main-address",        "127.0.0.1",
               "--devices", kCount, "--accelerator",        on_gpus ? "cuda" : "cpu"};
  all.insert(all.end(), words.begin() + 1, words.end());
  return all;
}

}  // namespace howmany::reports
