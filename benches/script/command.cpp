// SPDX-License-Identifier: Apache-2.0
#include "benches/script/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "benches/script/record.h"
#include "benches/script/working_copy.h"
#include "core/base/error.h"
#include "core/base/text/table.h"

namespace howmany::benches {
namespace {

constexpr const char* kCount = "{n}";

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void add_unless_set(std::vector<std::string>& all, const char* name, const std::string& value) {
  if (variable(name).empty()) all.push_back(fmt::format("{}={}", name, value));
}

void add_turns(std::vector<std::string>& all, const WorkerTurns& turns) {
  if (!turns.given()) return;
  all.push_back(fmt::format("HOWMANY_SCRIPT_WORKERS={}", fmt::join(turns.numbers, ",")));
  all.push_back(fmt::format("HOWMANY_SCRIPT_ROUNDS={}", turns.rounds));
  all.push_back(fmt::format("HOWMANY_SCRIPT_MOST={}", turns.most));
  all.push_back(fmt::format("HOWMANY_SCRIPT_PREFETCH={}", turns.prefetch));
  all.push_back(fmt::format("HOWMANY_SCRIPT_LOADER={}", turns.loader));
}

bool on_gpus(const ScriptCommand& command) {
  return std::ranges::all_of(command.devices,
                             [](const Device& d) { return d.type == DeviceType::cuda; });
}

// CUDA_VISIBLE_DEVICES of this process may already be a selection, to which the indices refer.
std::string visible_gpus(const std::vector<Device>& devices) {
  std::vector<std::string> visible;
  const std::string given = variable("CUDA_VISIBLE_DEVICES");
  for (size_t at = 0; at < given.size();) {
    const size_t end = std::min(given.find(',', at), given.size());
    visible.push_back(given.substr(at, end - at));
    at = end + 1;
  }
  std::vector<std::string> chosen;
  for (const Device& device : devices) {
    const auto index = static_cast<size_t>(device.index);
    chosen.push_back(index < visible.size() ? visible[index] : std::to_string(index));
  }
  return fmt::format("{}", fmt::join(chosen, ","));
}

std::string core_lists(const std::vector<Device>& devices) {
  std::vector<std::string> lists;
  for (const Device& device : devices)
    lists.push_back(fmt::format("{}", fmt::join(cpu_slice(device.index), ",")));
  return fmt::format("{}", fmt::join(lists, ";"));
}

// Removes the prefix "[rank0]: ", which PyTorch adds to tracebacks.
std::string_view without_rank(std::string_view line) {
  const size_t end = line.starts_with("[rank") ? line.find("]: ") : line.npos;
  return end == line.npos ? line : line.substr(end + 3);
}

// The last line of a Python traceback: "package.SomeError: text". The exceptions of torchrun are
// about ranks.
bool is_exception(std::string_view line) {
  const std::string_view type = line.substr(0, std::min(line.find(':'), line.size()));
  const bool name = !type.empty() && std::ranges::all_of(type, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.';
  });
  return name && (type.ends_with("Error") || type.ends_with("Exception")) &&
         !type.starts_with("torch.distributed.elastic");
}

std::string hook_archive() { return program_folder() + "/howmany_hook.zip"; }

std::string python_path() {
  const std::string given = variable("PYTHONPATH");
  return given.empty() ? hook_archive() : hook_archive() + ":" + given;
}

void add_hook(std::vector<std::string>& all, const ScriptCommand& command,
              const std::string& folder) {
  all.push_back("PYTHONPATH=" + python_path());
  all.push_back("HOWMANY_SCRIPT_OUT=" + folder);
  all.push_back(fmt::format("HOWMANY_SCRIPT_SECONDS={:.3f}", command.seconds));
  all.push_back(fmt::format("HOWMANY_SCRIPT_MAX_STEPS={}", command.max_steps));
  all.push_back(fmt::format("HOWMANY_SCRIPT_DETAIL={}", command.detail_steps));
  all.push_back(fmt::format("HOWMANY_SCRIPT_SAMPLES={}", command.samples_per_step));
  if (command.try_ddp) all.emplace_back("HOWMANY_SCRIPT_TRY_DDP=1");
  if (command.count_memory) all.emplace_back("HOWMANY_SCRIPT_MEMORY=1");
  if (command.rehearsal.given())
    all.push_back("HOWMANY_SCRIPT_REHEARSE=" + command.rehearsal.costs);
  add_turns(all, command.turns);
}

// Without the hook, a command that has no {n} is one process for all devices.
bool is_one_process(const ScriptCommand& command) {
  const bool ranks = std::ranges::any_of(command.words, [](const std::string& word) {
    return word.find(kCount) != std::string::npos;
  });
  return !command.rate.empty() && !ranks;
}

// Binds this process, and so the command, to the cores of the devices.
void bind_to(const std::vector<Device>& devices) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const Device& device : devices)
    for (const int core : cpu_slice(device.index)) CPU_SET(static_cast<size_t>(core), &set);
  HM_ENSURE(::sched_setaffinity(0, sizeof set, &set) == 0, "[script] cannot bind to the cores: {}",
            std::strerror(errno));
}

Command start_of(const ScriptCommand& command, const std::string& folder, double timeout_seconds) {
  Command start{.argv = words_for(command.words, command.ranks),
                .environment = environment_for(command, folder),
                .timeout_seconds = timeout_seconds,
                .grace_seconds = 1,
                .end_descendants = true};
  const std::string program = find_in_path(start.argv[0]);
  HM_REQUIRE(!program.empty(), "no program \"{}\" in PATH", start.argv[0]);
  start.argv[0] = program;
  return start;
}

ScriptEnd run_there(const ScriptCommand& command, Command start) {
  const WorkingCopy copy(command.in_copy);
  start.folder = copy.path();
  return end_of(run_command(start), command.quote);
}

}  // namespace

std::vector<std::string> words_for(const std::vector<std::string>& words, int ranks) {
  HM_REQUIRE(!words.empty() && !words[0].empty(), "no command after --");
  std::vector<std::string> all = words;
  for (std::string& word : all)
    for (size_t at = 0; (at = word.find(kCount, at)) != std::string::npos;)
      word.replace(at, std::string(kCount).size(), std::to_string(ranks));
  return all;
}

std::vector<std::string> environment_for(const ScriptCommand& command, const std::string& folder) {
  std::vector<std::string> all;
  if (command.rate.empty())
    add_hook(all, command, folder);
  else
    add_unless_set(all, "PYTHONUNBUFFERED", "1");  // else Python prints lines only in blocks
  add_unless_set(all, "WANDB_MODE", "offline");
  if (command.devices.empty()) return all;
  const bool gpus = on_gpus(command);
  all.push_back("CUDA_VISIBLE_DEVICES=" + (gpus ? visible_gpus(command.devices) : ""));
  if (!gpus && command.rate.empty())
    all.push_back("HOWMANY_SCRIPT_CORES=" + core_lists(command.devices));
  add_unless_set(all, "OMP_NUM_THREADS",
                 std::to_string(command.threads * (is_one_process(command) ? command.ranks : 1)));
  return all;
}

std::string shown_environment(const ScriptCommand& command) {
  std::vector<std::string> shown;
  for (const std::string& one : environment_for(command, "")) {
    const std::string name = one.substr(0, one.find('='));
    if (name.starts_with("HOWMANY_")) continue;
    const bool by_name = name == "PYTHONPATH" || name == "CUDA_VISIBLE_DEVICES" ||
                         (name == "OMP_NUM_THREADS" && is_one_process(command));
    shown.push_back(by_name ? name : one);
  }
  return fmt::format("{}", fmt::join(shown, ", "));
}

ScriptEnd end_of(const ProcessResult& ended, bool quote) {
  if (!quote) {
    ProcessResult silent = ended;
    silent.err.clear();
    return {ended.ok(), silent.describe(), false};
  }
  ScriptEnd end{ended.ok(), ended.describe()};
  std::istringstream lines(ended.err);
  std::string found;
  for (std::string line; std::getline(lines, line);)
    if (is_exception(without_rank(line))) found = without_rank(line);
  if (ended.how == ProcessResult::How::kExited && !found.empty())
    end.how = fmt::format("exited with {}: {}", ended.code, without_controls(found.substr(0, 500)));
  return end;
}

ScriptEnd run_script(const ScriptCommand& command, const std::string& folder,
                     double timeout_seconds) {
  HM_ENSURE(std::filesystem::exists(hook_archive()), "[script] {} is missing", hook_archive());
  Command start = start_of(command, folder, timeout_seconds);
  start.is_done = [&] { return std::filesystem::exists(folder + kFailedFile); };
  return run_there(command, std::move(start));
}

ScriptEnd run_printing(const ScriptCommand& command, const Printed& printed,
                       double timeout_seconds) {
  if (!on_gpus(command)) bind_to(command.devices);
  Command start = start_of(command, "", timeout_seconds);
  start.on_stdout = printed.on_stdout;
  start.on_stderr = printed.on_stderr;
  start.is_done = printed.is_done;
  return run_there(command, std::move(start));
}

}  // namespace howmany::benches
