// SPDX-License-Identifier: Apache-2.0
#include "benches/script/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "benches/script/record.h"
#include "benches/script/working_copy.h"
#include "core/base/error.h"
#include "core/base/fd.h"
#include "core/base/text/files.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "core/base/text/table.h"
#include "parallel/launch/mpirun.h"

namespace howmany::benches {
namespace {

constexpr const char *kCount = "{n}", *kPort = "{port}";
constexpr double kEndOnNodes = 10;  // seconds for the launcher to end the ranks of other nodes
const std::string kPythonPath = "PYTHONPATH=";
// Options of launchers. With the value 127.0.0.1, all ranks are on this host.
constexpr std::string_view kAddresses[] = {"--local-addr", "--main-address", "--main_process_ip"};
constexpr std::string_view kRecordStart = "rank", kProcessStart = "process.";  // of file names

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

// Another program may take it before the launcher does, which then reports that it is in use.
std::string free_port() {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  HM_ENSURE(socket && ::bind(socket.get(), any, size) == 0 &&
                ::getsockname(socket.get(), any, &size) == 0,
            "[script] no free port: {}", std::strerror(errno));
  return std::to_string(ntohs(address.sin_port));
}

// Names of GPUs are those of one node. Numbers are those of any.
bool has_names(const std::string& assignment) {
  return assignment.find_first_not_of("-0123456789,", assignment.find('=') + 1) != assignment.npos;
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

// Launchers end with an exception of their own if a rank has failed.
bool is_of_launcher(std::string_view exception) {
  return exception.starts_with("torch.distributed.elastic") ||
         exception.starts_with("subprocess.CalledProcessError");
}

// The last line of a Python traceback: "package.SomeError: text".
bool is_exception(std::string_view line) {
  const std::string_view type = line.substr(0, std::min(line.find(':'), line.size()));
  const bool name = !type.empty() && std::ranges::all_of(type, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.';
  });
  return name && (type.ends_with("Error") || type.ends_with("Exception")) && !is_of_launcher(line);
}

// True if the rank only missed another one, which ended before.
bool is_of_peer(std::string_view exception) {
  constexpr std::string_view kTexts[] = {
      "closed by peer",    "reset by peer",     "Broken pipe",    "DistBackendError",
      "recvValue failed",  "aborted",           "Socket Timeout", "DistNetworkError",
      "Connection closed", "Connection refused"};
  return std::ranges::any_of(kTexts, [&](std::string_view text) {
    return exception.find(text) != std::string_view::npos;
  });
}

// Lines that torchrun, accelerate and deepspeed print about the end of a rank. Theirs begin with a
// letter and the date, as "E1129 07:31:15.012", or with the date in brackets.
bool is_launchers_own(std::string_view line) {
  const auto digits = [&](size_t from, size_t count) {
    return line.size() >= from + count &&
           std::ranges::all_of(line.substr(from, count),
                               [](unsigned char c) { return std::isdigit(c) != 0; });
  };
  if (line.starts_with("srun: ")) return true;
  const bool logged = !line.empty() && std::string_view("IWEF").find(line[0]) != line.npos &&
                      digits(1, 4) && line.find("torch/distributed/") != line.npos;
  return logged || (line.starts_with("[2") && line.find("[launch.py:") != line.npos);
}

// Returns the lines before the traceback with which a launcher ends.
std::vector<std::string> lines_of_ranks(const std::string& err) {
  std::vector<std::string> all;
  std::istringstream lines(err);
  size_t traceback = std::string::npos;
  for (std::string line; std::getline(lines, line);) {
    if (is_of_launcher(line)) {
      all.resize(std::min(traceback, all.size()));
      return all;
    }
    if (line.starts_with("Traceback (")) traceback = all.size();
    if (is_exception(without_rank(line))) traceback = std::string::npos;  // it was that of a rank
    if (!is_launchers_own(line)) all.push_back(line);
  }
  return all;
}

// Returns "signal 9 (SIGKILL)" if torchrun names one. It sends SIGTERM to the other ranks itself.
std::string signal_of_rank(const std::string& err) {
  constexpr std::string_view kStart = "Signal ", kEnd = " received by PID";
  for (size_t at = err.find(kEnd); at != std::string::npos; at = err.find(kEnd, at + 1)) {
    const size_t start = err.rfind(kStart, at);
    if (start == std::string::npos || at - start > 32) continue;
    const std::string name = err.substr(start + kStart.size(), at - start - kStart.size());
    if (name.find("SIGTERM") == std::string::npos) return "signal " + name;
  }
  return "";
}

// torch.multiprocessing raises an exception whose text is the traceback of its child: its last
// line is the reason.
std::string without_traceback(const std::string& why) {
  const size_t end = why.find_last_not_of(" \n");
  if (why.find("Traceback (") == why.npos || end == why.npos) return why;
  const size_t begin = why.rfind('\n', end);
  return begin == why.npos ? why : why.substr(begin + 1, end - begin);
}

std::string reason_of(const ProcessResult& ended, const std::vector<Raised>& raised) {
  for (const Raised& one : raised)
    if (!is_of_peer(one.why)) return without_traceback(one.why);
  if (const std::string signal = signal_of_rank(ended.err); !signal.empty())
    return "a rank ended by " + signal;
  if (!raised.empty()) return without_traceback(raised.front().why);
  std::string exception, last;
  for (const std::string& line : lines_of_ranks(ended.err)) {
    const std::string_view text = without_rank(line);
    if (is_exception(text)) exception = text;
    if (text.find_first_not_of(" \t\r=-") != text.npos) last = text;
  }
  return exception.empty() ? last : exception;
}

std::string hook_archive() { return program_folder() + "/howmany_hook.zip"; }

std::string python_path(const std::string& given) {
  return given.empty() ? hook_archive() : hook_archive() + ":" + given;
}

// "env PYTHONPATH=src python t.py" would lose the hook.
void keep_hook(std::vector<std::string>& words) {
  for (std::string& word : words)
    if (word.starts_with(kPythonPath))
      word = kPythonPath + python_path(word.substr(kPythonPath.size()));
}

void add_hook(std::vector<std::string>& all, const ScriptCommand& command,
              const std::string& folder) {
  all.push_back(kPythonPath + python_path(variable("PYTHONPATH")));
  all.push_back("HOWMANY_SCRIPT_OUT=" + folder);
  all.push_back(fmt::format("HOWMANY_SCRIPT_SECONDS={:.3f}", command.seconds));
  all.push_back(fmt::format("HOWMANY_SCRIPT_MAX_STEPS={}", command.max_steps));
  all.push_back(fmt::format("HOWMANY_SCRIPT_DETAIL={}", command.detail_steps));
  all.push_back(fmt::format("HOWMANY_SCRIPT_SAMPLES={}", command.samples_per_step));
  if (command.try_ddp) all.emplace_back("HOWMANY_SCRIPT_TRY_DDP=1");
  if (command.tries) all.emplace_back("HOWMANY_SCRIPT_TRY=bf16");
  if (command.count_memory) all.emplace_back("HOWMANY_SCRIPT_MEMORY=1");
  if (!command.counted_for.empty()) all.push_back("HOWMANY_SCRIPT_COUNT=" + command.counted_for);
  if (command.rehearsal.given())
    all.push_back("HOWMANY_SCRIPT_REHEARSE=" + command.rehearsal.costs);
  add_turns(all, command.turns);
}

bool any_file(const std::string& folder, std::string_view start) {
  std::error_code none;
  return std::ranges::any_of(std::filesystem::directory_iterator(folder, none), [&](auto& entry) {
    return entry.path().filename().string().starts_with(start);
  });
}

ScriptEnd late_end(const ScriptCommand& command, const std::string& folder) {
  std::string how = fmt::format("took none in {:.0f} s (--start-timeout)", command.start_timeout);
  if (!any_file(folder, kProcessStart))
    how += fmt::format(
        ", and no Python imported torch with the hook: PYTHONPATH did not reach it, as in a "
        "container or with python -E. "
        "Start the script there by PYTHONPATH={} python -m howmany_hook SCRIPT",
        hook_archive());
  return {false, how, command.quote};
}

// Without the hook, a command that has no {n} is one process for all devices.
bool is_one_process(const ScriptCommand& command) {
  const bool ranks = std::ranges::any_of(command.words, [](const std::string& word) {
    return word.find(kCount) != std::string::npos;
  });
  return !command.rate.empty() && !ranks && command.nodes == 1;
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
                .grace_seconds = command.nodes > 1 ? kEndOnNodes : 1,
                .end_descendants = true};
  if (command.rate.empty()) keep_hook(start.argv);
  const std::string program = find_in_path(start.argv[0]);
  HM_REQUIRE(!program.empty(), "no program \"{}\" in PATH", start.argv[0]);
  start.argv[0] = program;
  return start;
}

ProcessResult run_there(const ScriptCommand& command, Command start) {
  const WorkingCopy copy(command.in_copy);
  start.folder = copy.path();
  return run_command(start);
}

}  // namespace

std::vector<int> gpu_indices(const std::vector<Device>& devices) {
  std::vector<int> gpus;
  for (const Device& device : devices)
    if (device.type == DeviceType::cuda) gpus.push_back(device.index);
  return gpus;
}

std::vector<std::string> words_for(const std::vector<std::string>& words, int ranks) {
  HM_REQUIRE(!words.empty() && !words[0].empty(), "no command after --");
  std::vector<std::string> all = words;
  std::string port;
  const auto replace = [](std::string& word, const std::string& what, const auto& with) {
    for (size_t at = 0; (at = word.find(what, at)) != std::string::npos;)
      word.replace(at, what.size(), with());
  };
  for (std::string& word : all) {
    replace(word, kCount, [&] { return std::to_string(ranks); });
    replace(word, kPort, [&] { return port = port.empty() ? free_port() : port; });
  }
  return all;
}

std::vector<std::string> environment_for(const ScriptCommand& command, const std::string& folder) {
  std::vector<std::string> all;
  if (command.rate.empty())
    add_hook(all, command, folder);
  else
    add_unless_set(all, "PYTHONUNBUFFERED", "1");  // else Python prints lines only in blocks
  add_unless_set(all, "WANDB_MODE", "offline");
  const auto is_loopback = [](const std::string& option, const std::string& value) {
    return value == "127.0.0.1" && std::ranges::find(kAddresses, option) != std::end(kAddresses);
  };
  if (std::ranges::adjacent_find(command.words, is_loopback) != command.words.end())
    if (std::string preload = loopback_preload(); !preload.empty()) all.push_back(preload);
  if (command.devices.empty()) return all;
  const bool gpus = on_gpus(command);
  const std::string shown = show_gpus(command.vendor, gpu_indices(command.devices));
  if (command.nodes == 1 || !has_names(shown)) all.push_back(shown);
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
    const bool by_name = name == "PYTHONPATH" || name == "LD_PRELOAD" ||
                         name.ends_with("_VISIBLE_DEVICES") ||
                         (name == "OMP_NUM_THREADS" && is_one_process(command));
    shown.push_back(by_name ? name : one);
  }
  return fmt::format("{}", fmt::join(shown, ", "));
}

TrainingProcess read_process(const std::string& folder) {
  TrainingProcess found;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kProcessStart) || !name.ends_with(".json")) continue;
    const std::string pid = name.substr(
        kProcessStart.size(), name.find('.', kProcessStart.size()) - kProcessStart.size());
    const std::string record = folder + "/" + std::string(kRecordStart) + "0." + pid + ".jsonl";
    const bool trained = std::filesystem::exists(record);
    if (!trained && !found.python.empty()) continue;
    const nlohmann::json json = parse_json(read_text(entry.path()), entry.path());
    const JsonNode node(json, entry.path());
    found = {node.at("python").string(), node.at("uses").strings()};
    if (trained) break;
  }
  return found;
}

std::vector<Raised> read_raised(const std::string& folder) {
  std::vector<Raised> all;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    if (!entry.path().filename().string().starts_with("raised.")) continue;
    try {
      const nlohmann::json json = parse_json(read_text(entry.path()), entry.path());
      const JsonNode node(json, entry.path());
      all.push_back({node.at("at").number(), node.at("why").string()});
    } catch (const std::exception&) {  // a process was killed while it wrote
      continue;
    }
  }
  std::erase_if(all, [](const Raised& one) { return is_of_launcher(one.why); });
  std::ranges::sort(all, {}, &Raised::at);
  return all;
}

ScriptEnd end_of(const ProcessResult& ended, bool quote, const std::vector<Raised>& raised) {
  if (!quote) {
    ProcessResult silent = ended;
    silent.err.clear();
    return {ended.ok(), silent.describe(), false, "", ended.seconds};
  }
  ProcessResult printed = ended;
  if (ended.last_line().empty()) printed.err = ended.out;
  ScriptEnd end{ended.ok(), ended.describe(), true, printed.last_line(), ended.seconds};
  const std::string reason = reason_of(ended, raised);
  if (ended.how == ProcessResult::How::kExited && !reason.empty())
    end.how = fmt::format("exited with {}: {}", ended.code,
                          without_full_stop(without_controls(reason.substr(0, 500))));
  return end;
}

ScriptEnd run_script(const ScriptCommand& command, const std::string& folder,
                     double timeout_seconds) {
  HM_ENSURE(std::filesystem::exists(hook_archive()), "[script] {} is missing", hook_archive());
  Command start = start_of(command, folder, timeout_seconds);
  const auto begin = std::chrono::steady_clock::now();
  bool late = false, trains = false;
  start.is_done = [&] {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    trains = trains || any_file(folder, kRecordStart);
    if (trains && command.on_training) command.on_training();
    late = command.start_timeout > 0 && passed.count() > command.start_timeout && !trains;
    return late || std::filesystem::exists(folder + kFailedFile);
  };
  const ProcessResult ended = run_there(command, std::move(start));
  return late ? late_end(command, folder) : end_of(ended, command.quote, read_raised(folder));
}

ScriptEnd run_printing(const ScriptCommand& command, const Printed& printed,
                       double timeout_seconds) {
  if (!on_gpus(command)) bind_to(command.devices);
  Command start = start_of(command, "", timeout_seconds);
  start.on_stdout = printed.on_stdout;
  start.on_stderr = printed.on_stderr;
  start.is_done = printed.is_done;
  return end_of(run_there(command, std::move(start)), command.quote);
}

}  // namespace howmany::benches
