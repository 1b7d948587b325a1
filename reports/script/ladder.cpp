// SPDX-License-Identifier: Apache-2.0
#include "reports/script/ladder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/base/process.h"
#include "core/base/schema/flags.h"
#include "core/base/schema/parameters.h"
#include "core/base/schema/samples.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "reports/results/bench_file.h"
#include "reports/results/device_kind.h"

namespace howmany::reports {
namespace {

constexpr double kSeconds = 0.5;    // of timed steps
constexpr double kMostSteps = 600;  // seconds, if the steps are slow
constexpr double kSilence = 20;     // seconds between words to the user
// On several nodes, the first step comes within a few starts on one, or not at all.
constexpr double kStarts = 3, kLeastStart = 45;

// script_bench writes it. A launcher would not change that.
constexpr const char* kEndedWithZero = "the command ended with code 0";

constexpr const char* kOfLauncher[] = {"RANK", "WORLD_SIZE", "MASTER_", "environment variable"};

struct Interrupted {};

void read_start(const SampleLine& line, Start& start) {
  const JsonNode root(line.json, "script_bench");
  const JsonNode parameters = root.at(sample_line::kParameters);
  const std::string mode = parameters.at(parameter::kMode).string();
  start.ok = true;
  start.world = static_cast<int>(root.at(sample_line::kWorld).integer());
  start.processes = std::atoi(parameters.at(parameter::kRanks).string().c_str());
  start.group = !parameters.at(parameter::kBackend).string().empty();
  start.ddp = mode == "ddp" || mode == "fsdp";
  start.python = parameters.at(parameter::kPython).string();
  start.uses = parameters.at(parameter::kUses).string();
}

// "script_bench: [script] before its first step the command exited with 1: KeyError: 'RANK'"
std::string own_reason(const std::string& line) {
  constexpr std::string_view kStart = "[script] ";
  const size_t at = line.find(kStart);
  return at == std::string::npos ? line : line.substr(at + kStart.size());
}

class Ladder {
 public:
  Ladder(Script& script, const LadderOptions& options, const BenchScratch& scratch)
      : script_(script), options_(options), scratch_(scratch) {}

  void climb() {
    if (script_.has_count())
      with_launcher();
    else
      without_launcher();
    if (options_.nodes.many() && !script_.alone && script_.own_ranks == 0 && !on_nodes_)
      on_two_nodes();
  }

 private:
  int devices() const { return static_cast<int>(options_.devices.size()); }
  int several() const { return options_.nodes.many() ? 2 : std::min(2, devices()); }
  bool on_gpus() const { return device_kind(options_.devices.front()) == DeviceKind::kGpu; }

  double start_timeout(int count) const {
    return count > devices()
               ? std::min(script_.start_timeout, kLeastStart + kStarts * start_seconds_)
               : script_.start_timeout;
  }

  std::vector<std::string> argv(const Words& words, int count, bool try_ddp) const {
    Script script = script_;
    script.try_ddp = try_ddp;
    script.start_timeout = start_timeout(count);
    std::vector<std::string> all = bench_words(script, kSeconds, kMostSteps, scratch_);
    const int nodes = count > devices() ? count / devices() : 1;
    const std::vector<std::string> first(options_.devices.begin(),
                                         options_.devices.begin() + count / nodes);
    all.insert(all.end(), {flag::kDevices, fmt::format("{}", fmt::join(first, ",")),
                           flag::kCoresPerDevice, std::to_string(options_.cores_per_device),
                           flag::kNodes, std::to_string(nodes), flag::kRanks, "0", "--"});
    const Words each = nodes > 1 ? on_nodes(script_, options_.nodes, nodes, count)
                                 : filled(words, options_.nodes, 1, count);
    all.insert(all.end(), each.begin(), each.end());
    return all;
  }

  // `how`: "as it is"
  Start start(const Words& words, int count, const std::string& how, bool try_ddp = false) {
    options_.report(fmt::format("Starting {} {}.", script_.name, how));
    if (count > devices()) check_nodes();
    double told = 0;
    const auto begin = std::chrono::steady_clock::now();
    const auto passed = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    scratch_.clear();
    Command command{.argv = argv(words, count, try_ddp),
                    .timeout_seconds = kSeconds + kMostSteps + 10};
    if (count > devices()) {
      command.environment = environment_;
      command.grace_seconds = kEndOnNodes;
    }
    command.on_tick = [&] {
      if (passed() - told < kSilence) return;
      told = passed();
      options_.report(fmt::format("  {} has run for {:.0f} s. It has {:.0f} s for its first step.",
                                  script_.name, told, start_timeout(count)));
    };
    const ProcessResult ended = run_command(command);
    if (ended.how == ProcessResult::How::kInterrupted) throw Interrupted{};
    if (ended.how == ProcessResult::How::kExited && ended.code == 2)
      throw InputError(ended.last_line());
    Start start;
    start.seconds = ended.seconds;
    const std::vector<SampleLine> lines =
        ended.ok() ? read_samples(scratch_.samples) : std::vector<SampleLine>();
    if (lines.size() == 1)
      read_start(lines[0], start);
    else
      start.why = own_reason(ended.last_line());
    options_.report("  " + seen(start));
    // A start that failed for want of a group also loaded the script's libraries.
    if (start.ok || count <= devices()) start_seconds_ = std::max(start_seconds_, start.seconds);
    if (start.ok) script_.start_seconds = std::max(script_.start_seconds, start.seconds);
    if (!start.python.empty()) python_ = start.python;
    return start;
  }

  // Nodes that are not alike are an error, not a property of the script.
  void check_nodes() {
    if (on_nodes_) return;
    on_nodes_ = true;
    if (options_.check_nodes)
      environment_ = options_.check_nodes(python_.empty() ? python_of(script_.one) : python_);
  }

  static std::string seen(const Start& start) {
    const std::string after = fmt::format(" ({})", format_seconds(start.seconds));
    if (!start.ok) return start.why + after;
    if (start.world > 1) return fmt::format("It forms a group of {} ranks{}.", start.world, after);
    if (start.processes > 1) return fmt::format("Each rank trains alone{}.", after);
    return start.group ? fmt::format("It forms a group of 1 rank{}.", after)
                       : fmt::format("It trains on 1 device{}.", after);
  }

  // The command has {n}, mostly for a launcher. The baseline is the command of a rank, if that
  // works on its own.
  void with_launcher() {
    if (script_.one.empty()) return;  // {n} is in the script's own words
    const Start one = start(script_.one, 1, "without its launcher, on 1 device");
    prepare_nodes(script_.one, one.python);
    if (!one.ok) script_.one.clear();
    if (several() < 2) return;
    const Start two = start(script_.words, 2, "with 2 ranks");
    if (two.ok && two.world == 2) return ask_for_one_rank(one);
    // accelerate starts one process on CPUs; srun and mpirun say no RANK.
    if (one.ok && !one.python.empty() && (!two.ok || two.processes == 1) && devices() > 1) {
      const Words torchrun = under_torchrun(script_.one, one.python);
      const Start again = start(torchrun, 2, "with 2 ranks under torchrun");
      if (again.ok && again.world == 2) {
        script_.words = torchrun;
        return ask_for_one_rank(one);
      }
    }
    if (!one.ok && !two.ok) throw std::runtime_error("[script] " + two.why);
    stay_alone(two);
  }

  void without_launcher() {
    const Words plain = script_.words;
    const Start alone = start(plain, devices(), "as it is");
    if (alone.ok && alone.world > 1) return take_own_ranks(alone);
    if (alone.why.starts_with(kEndedWithZero)) throw std::runtime_error("[script] " + alone.why);
    if (alone.ok && several() < 2 && !options_.rehearses) return;
    script_.one = plain;
    const std::string python = alone.python.empty() ? python_of(plain) : alone.python;
    if (python.empty()) {
      if (alone.ok) return stay_alone(alone);
      throw std::runtime_error("[script] " + alone.why);
    }
    script_.words = under_torchrun(plain, python);
    prepare_nodes(plain, python);
    const bool try_ddp = script_.try_ddp && alone.ok && !alone.group;
    const Start two = start(script_.words, several(), with_ranks("torchrun"), try_ddp);
    if (two.ok && two.group && (two.world > 1 || several() < 2)) {
      script_.try_ddp = try_ddp;
      if (!alone.ok) script_.one.clear();
      return ask_for_one_rank(alone);
    }
    const bool names_ddp = uses(alone, "DistributedDataParallel");
    if (two.ok && several() < 2 && (try_ddp || names_ddp)) return;  // one of many forms a group
    if (!alone.ok) throw std::runtime_error("[script] " + reason_of(alone, two));
    if (try_fabric(plain, alone)) return;
    script_.has_group = !script_.try_ddp && names_ddp;
    script_.try_ddp = false;
    stay_alone(two);
  }

  std::string with_ranks(const char* launcher) const {
    return fmt::format("with {} under {}{}", number(several(), "rank"), launcher,
                       several() > devices() ? " on 2 nodes" : "");
  }

  // The plain command often only misses the launcher's variables.
  static std::string reason_of(const Start& alone, const Start& two) {
    if (two.ok || two.why == alone.why) return alone.why;
    const auto names = [&](const char* text) { return alone.why.find(text) != std::string::npos; };
    return std::ranges::any_of(kOfLauncher, names) ? two.why : alone.why;
  }

  static bool uses(const Start& start, const char* name) {
    return start.uses.find(name) != std::string::npos;
  }

  bool try_fabric(const Words& plain, const Start& alone) {
    if (!uses(alone, "lightning.fabric")) return false;
    const Words fabric = under_fabric(plain, alone.python, on_gpus());
    if (fabric.empty()) return false;
    const Start two = start(fabric, several(), with_ranks("fabric run"));
    if (!two.ok || two.world < 2) return false;
    script_.words = fabric;
    ask_for_one_rank(alone);
    return true;
  }

  // Some scripts form a group only for several ranks. One rank then trains as the plain command
  // does.
  void ask_for_one_rank(const Start& alone) {
    script_.one_rank = false;
    if (script_.one.empty() || alone.ddp || script_.try_ddp || several() < 2) return;
    const Start one = start(script_.words, 1, "with 1 rank there");
    script_.one_rank = one.ok && one.group;
  }

  // On several nodes, a torchrun on each takes the place of the launcher.
  void prepare_nodes(const Words& plain, const std::string& python) {
    if (!options_.nodes.many() || has_nodes(script_.words) || plain.empty()) return;
    const std::string known = python.empty() ? python_of(plain) : python;
    if (!known.empty()) script_.across = under_torchrun_on_nodes(plain, known);
  }

  void on_two_nodes() {
    if (script_.across.empty() && !has_nodes(script_.words)) {
      script_.why_one_node =
          fmt::format("unknown how to start it there: write {} where their number belongs", kNodes);
      return;
    }
    const int ranks = 2 * devices();
    const Start both = start(script_.words, ranks, "on 2 nodes", script_.try_ddp);
    if (both.ok && both.world == ranks) return;
    script_.why_one_node =
        !both.ok ? both.why
        : both.world == 1 && both.processes > 1
            ? "each of its ranks is rank 0 of a group of 1"
            : fmt::format("it forms a group of {}, not of {}", number(both.world, "rank"), ranks);
  }

  // mp.spawn and the like. If one device makes one rank, the number follows the devices.
  void take_own_ranks(const Start& all) {
    script_.own_ranks = all.world;
    if (all.world > devices())
      throw std::runtime_error(
          fmt::format("[script] it starts {} ranks itself, and there are {}. {}", all.world,
                      number(devices(), "device"), advice()));
    if (all.world != devices() || devices() == 1) return;
    const Start one = start(script_.words, 1, "on 1 device");
    if (one.ok && one.world == 1) script_.own_ranks = 0;
  }

  static std::string advice() {
    return "Write {n} where the command has that number, such as: howmany gpus -- python train.py "
           "--nproc {n}";
  }

  void stay_alone(const Start& two) {
    script_.alone = true;
    if (!script_.one.empty()) script_.words = script_.one;
    script_.one.clear();
    script_.one_rank = false;
    if (!two.ok) script_.why_alone = script_.keep_private ? "its messages are private" : two.why;
  }

  Script& script_;
  const LadderOptions& options_;
  const BenchScratch& scratch_;
  bool on_nodes_ = false;                 // ranks on several nodes were tried
  std::vector<std::string> environment_;  // of those
  std::string python_;
  double start_seconds_ = 0;
};

}  // namespace

bool find_start(Script& script, const LadderOptions& options, const BenchScratch& scratch) try {
  Ladder(script, options, scratch).climb();
  return true;
} catch (const Interrupted&) {
  return false;
}

}  // namespace howmany::reports
