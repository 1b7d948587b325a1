// SPDX-License-Identifier: Apache-2.0
#include "reports/script/script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/base/process.h"
#include "core/base/schema/context.h"
#include "core/base/schema/flags.h"
#include "core/base/schema/parameters.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"
#include "reports/cluster/cluster.h"
#include "reports/results/bench_file.h"
#include "reports/results/machine.h"

namespace howmany::reports {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;
constexpr const char* kCount = "{n}";
constexpr double kProbeTimeout = 300;

// A program that starts ranks, and its flags for their number. The first flag is added if none is
// given.
struct Launcher {
  const char* name;
  std::vector<std::string> flags;
};
const std::vector<Launcher> kLaunchers = {
    {"torchrun", {"--nproc-per-node", "--nproc_per_node"}},
    {"torch.distributed.run", {"--nproc-per-node", "--nproc_per_node"}},
    {"torch.distributed.launch", {"--nproc-per-node", "--nproc_per_node"}},
    {"accelerate", {"--num_processes", "--num-processes"}},
    {"deepspeed", {"--num_gpus"}},
    {"mpirun", {"-np", "-n", "--np", "--n"}},
    {"mpiexec", {"-n", "-np", "--np", "--n"}},
    {"srun", {"-n", "--ntasks"}},
};

std::string file_name(const std::string& word) { return fs::path(word).filename(); }

bool is_python(const std::string& word) {
  const std::string name = file_name(word);
  return name.starts_with("python") &&
         name.find_first_not_of("0123456789.", std::string_view("python").size()) == name.npos;
}

// Returns the place of the launcher's name; words.size() if there is none.
size_t place_of_launcher(const Words& words, const Launcher& launcher) {
  const size_t end = std::min<size_t>(words.size(), 3);  // python -m torch.distributed.run
  for (size_t i = 0; i < end; ++i)
    if (file_name(words[i]) == launcher.name) return i;
  return words.size();
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// Replaces the number after a flag, "-n 4" or "--ntasks=4". Returns the old number if there was
// one.
std::optional<std::string> replace_count(Words& words, const Launcher& launcher) {
  for (size_t i = 0; i < words.size(); ++i) {
    for (const std::string& flag : launcher.flags) {
      if (words[i] == flag && i + 1 < words.size() && is_number(words[i + 1]))
        return std::exchange(words[i + 1], kCount);
      const std::string start = flag + "=";
      if (words[i].starts_with(start) && is_number(words[i].substr(start.size()))) {
        const std::string old = words[i].substr(start.size());
        words[i] = start + kCount;
        return old;
      }
    }
  }
  return {};
}

void put_count(Words& words, std::string* notice) {
  for (const Launcher& launcher : kLaunchers) {
    const size_t at = place_of_launcher(words, launcher);
    if (at == words.size()) continue;
    if (const auto old = replace_count(words, launcher)) {
      *notice =
          fmt::format("{} {} is replaced by the number of devices to measure", launcher.name, *old);
      return;
    }
    const size_t after = at + (launcher.name == std::string_view("accelerate") ? 2 : 1);
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(std::min(after, words.size())),
                 {launcher.flags[0], kCount});
    *notice = fmt::format("{} gets {} with the number of devices to measure", launcher.name,
                          launcher.flags[0]);
    return;
  }
}

// The name that results show: the file or module that Python runs, else the program.
std::string name_of(const Words& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].ends_with(".py")) return file_name(words[i]);
    const bool launcher = i + 1 < words.size() && words[i + 1].starts_with("torch.distributed.");
    if ((words[i] == "-m" || words[i] == "--module") && i + 1 < words.size() && !launcher)
      return words[i + 1];
  }
  return file_name(words[0]);
}

void refuse_flags_of_python(const Words& words) {
  if (!is_python(words[0])) return;
  for (size_t i = 1; i < words.size() && words[i].starts_with("-"); ++i) {
    if (words[i] == "-m") return;
    if (words[i] == "-c") throw InputError("python -c cannot be measured: write a script file");
    if (words[i] == "-E" || words[i] == "-I")
      throw InputError(fmt::format(
          "python {} ignores PYTHONPATH, through which the steps are measured; leave it out",
          words[i]));
  }
}

}  // namespace

void make_private(Script& script) {
  script.keep_private = true;
  script.name = "script";
}

namespace {

constexpr double kNoTime = 1e-9;

Cluster without_costs(int ranks) {
  Cluster cluster;
  cluster.name = "free";
  cluster.devices_per_node = ranks;
  cluster.node.all_reduce[ranks] = {{1, kNoTime}, {1e15, 2 * kNoTime}};
  return cluster;
}

}  // namespace

bool Script::has_count() const {
  return std::ranges::any_of(
      words, [](const std::string& word) { return word.find(kCount) != std::string::npos; });
}

Script script_from(const Words& words, std::string* notice, Script::Count count) {
  if (words.empty()) throw InputError("no command after --");
  refuse_flags_of_python(words);
  Script script;
  script.words = words;
  script.name = name_of(words);
  if (count == Script::Count::kSwept && !script.has_count()) put_count(script.words, notice);
  return script;
}

std::string python_of(const Words& words) {
  if (words.empty()) return "";
  const std::string program = find_in_path(words[0]);
  if (is_python(words[0])) return program;
  const fs::path beside = fs::path(program).parent_path() / "python3";
  return !program.empty() && fs::exists(beside) ? beside.string() : "";
}

Words under_torchrun(const Words& words) {
  if (words.empty() || !is_python(words[0]))
    throw InputError(
        fmt::format("unknown how to start {} with several ranks: write {} where its number belongs",
                    words.empty() ? "" : words[0], kCount));
  Words all = {words[0], "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", kCount};
  size_t i = 1;
  for (; i < words.size() && words[i].starts_with("-"); ++i) {
    if (words[i] == "-m") break;
    if (words[i] != "-u" && words[i] != "-B")
      throw InputError(
          fmt::format("torchrun cannot pass {} on to Python: write the whole command, "
                      "with {} for the number of devices",
                      words[i], kCount));
  }
  if (i < words.size() && words[i] == "-m") {
    all.emplace_back("--module");
    ++i;
  }
  all.insert(all.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
  return all;
}

Words flags_of(const Script& script) {
  Words flags;
  if (script.try_ddp) flags.emplace_back(flag::kTryDdp);
  if (script.in_copy) flags.emplace_back(flag::kInCopy);
  if (script.keep_private) flags.emplace_back(flag::kPrivate);
  if (!script.rate.empty()) flags.insert(flags.end(), {flag::kRate, script.rate});
  if (script.samples_per_step > 0)
    flags.insert(flags.end(), {flag::kSamplesPerStep, std::to_string(script.samples_per_step)});
  return flags;
}

Words bench_words(const Script& script, double seconds, double timeout,
                  const BenchScratch& scratch) {
  Words argv = {find_program("script_bench"),
                flag::kModel,
                script.name,
                flag::kCaseBudget,
                fmt::format("{:.3f}", seconds),
                flag::kRunTimeout,
                fmt::format("{:.3f}", timeout),
                flag::kSamplesFile,
                scratch.samples,
                "--benchmark_out=" + scratch.bench,
                "--benchmark_out_format=json"};
  const Words flags = flags_of(script);
  argv.insert(argv.end(), flags.begin(), flags.end());
  return argv;
}

void run_once(const Script& script, const Words& flags, int ranks, double seconds,
              const BenchScratch& scratch) {
  Words argv = bench_words(script, seconds, kProbeTimeout, scratch);
  argv.insert(argv.end(), flags.begin(), flags.end());
  if (ranks > 1) {
    write_text(scratch.costs, dump_json(cost_table_with_groups(without_costs(ranks), ranks)));
    argv.insert(argv.end(), {flag::kRehearse, scratch.costs});
  }
  const bool starts_ranks = ranks == 1 || script.has_count();
  const Words words = starts_ranks ? script.words : under_torchrun(script.words);
  argv.emplace_back("--");
  argv.insert(argv.end(), words.begin(), words.end());
  const ProcessResult ended =
      run_command({.argv = argv, .timeout_seconds = seconds + kProbeTimeout + 10});
  if (ended.how == ProcessResult::How::kExited && ended.code == 2)
    throw InputError(ended.last_line());
  if (!ended.ok()) throw std::runtime_error(ended.last_line());
}

std::string environment_note(const Summary& summary) {
  const auto found = summary.context.find(context::kScriptEnvironment);
  if (found == summary.context.end() || !found->is_string()) return "";
  return fmt::format("Set for your command: {}.", found->get<std::string>());
}

}  // namespace howmany::reports
