// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/absent_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "core/base/private_folder.h"
#include "core/base/process.h"
#include "core/base/schema/flags.h"
#include "core/base/schema/samples.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "core/base/text/table.h"
#include "reports/gpus/absent.h"
#include "reports/gpus/progress.h"
#include "reports/gpus/resolve.h"
#include "reports/gpus/resolve_devices.h"
#include "reports/predict/counted_steps.h"
#include "reports/results/bench_file.h"
#include "reports/results/machine.h"

namespace howmany::reports {
namespace {

constexpr double kUsualStart = 280;    // seconds until the first step; shapes of a large model
constexpr double kUnknownMemory = 80;  // GB

void refuse_options_of_measurements(const Arguments& a) {
  std::vector<std::string> given = only_for_measurements(a);
  const auto add = [&](bool is_given, const Flag& flag) {
    if (is_given) given.emplace_back(flag.name);
  };
  add(!a.nodes.empty(), flag::kNodes);
  add(!a.counts.empty(), flag::kDeviceCount);
  add(!a.hosts.empty(), flag::kHosts);
  add(a.tries, flag::kTry);
  if (given.empty()) return;
  throw InputError(
      fmt::format("no GPU is here, so the step of your command is counted and nothing is measured: "
                  "{} cannot be given",
                  fmt::join(given, ", ")));
}

Script script_to_count(const Arguments& a, ProgressReport& progress) {
  refuse_options_of_models(a);
  refuse_options_of_measurements(a);
  if (!a.up_to)
    throw InputError(fmt::format("{} needs {}, the largest number of devices", flag::kCluster.name,
                                 flag::kUpTo.name));
  std::string notice;
  Script script = script_from(a.command, &notice);
  if (!notice.empty()) progress.report(notice);
  if (find_in_path(a.command[0]).empty())
    throw InputError(fmt::format("no program \"{}\" in PATH", a.command[0]));
  script.in_copy = a.in_copy;
  script.try_ddp = a.try_ddp;
  script.samples_per_step = a.samples_per_step.value_or(0);
  script.start_timeout = a.start_timeout.value_or(kUsualStart);
  if (a.keep_private) make_private(script);
  return script;
}

// The GPU that the script takes for its own, one for each rank of a node. `real`: the CPU computes
// its tensors; else they have shapes alone.
std::string pretended_gpu(const Cluster& cluster, int world, bool real) {
  const bool named = cluster.device.starts_with("NVIDIA") || cluster.device.starts_with("MI");
  const nlohmann::ordered_json json = {
      {"name", (named ? "" : "NVIDIA ") + cluster.device},
      {"memory", static_cast<int64_t>(cluster.memory_gb.value_or(kUnknownMemory) * 1e9)},
      {"capability", capability_of(cluster.device)},
      {"devices", std::min(world, cluster.devices_per_node)},
      {"real", real}};
  return json.dump();
}

// The step cannot be followed by the shapes of its tensors.
class NeedsValues : public InputError {
 public:
  using InputError::InputError;
};

// The hook raises it within the script.
constexpr std::string_view kRefused = "howmany_hook.pretend.Refused: ";
constexpr std::string_view kMetaTensor = "meta";  // in PyTorch's errors, if values were needed
constexpr std::string_view kBenchStart = "[script] ";

// Throws NeedsValues if the hook refused the step or PyTorch missed values, and std::runtime_error
// if the script failed.
void run_counting(const Script& script, const Words& flags, int world,
                  const BenchScratch& scratch) try {
  run_once(script, flags, world, 0, scratch);
} catch (const InputError&) {
  throw;
} catch (const std::runtime_error& error) {
  const std::string_view why = error.what();
  const size_t refused = why.find(kRefused);
  if (refused != std::string_view::npos)
    throw NeedsValues(std::string(why.substr(refused + kRefused.size())));
  const size_t name = why.find(kBenchStart);
  if (name == std::string_view::npos) throw;
  const std::string text(why.substr(name + kBenchStart.size()));
  if (text.find(kMetaTensor) != std::string::npos) throw NeedsValues(text);
  throw std::runtime_error(text);
}

// Throws InputError if nothing follows from the count, and std::runtime_error if the script fails.
CountedStep count_once(const Script& script, const Cluster& cluster, int world, bool real) {
  const PrivateFolder folder;
  const BenchScratch scratch(folder.path());
  run_counting(script, {flag::kCount, pretended_gpu(cluster, world, real)}, world, scratch);
  const std::vector<SampleLine> lines = read_samples(scratch.samples);
  if (lines.size() != 1) throw InputError("script_bench: expected one counted step");
  const JsonNode line(lines[0].json, "script_bench");
  CountedStep step = counted_from(line.at(sample_line::kCounted).value(), sample_line::kCounted);
  if (!step.refused.empty()) throw InputError(step.refused);
  if (step.samples == 0) step.samples = static_cast<double>(script.samples_per_step);
  return step;
}

class Counter {
 public:
  Counter(const Script& script, const Cluster& cluster, ProgressReport& progress)
      : script_(script), cluster_(cluster), progress_(progress) {}

  CountedStep count(int world) {
    progress_.report(fmt::format("counting a step of {}{} without a GPU", script_.name,
                                 world > 1 ? fmt::format(" as one of {} ranks", world) : ""));
    return count_words(script_, world);
  }

  // Under its launcher or without it, as it takes one rank.
  CountedStep count_alone() {
    try {
      return count(1);
    } catch (const InputError&) {
      throw;
    } catch (const std::runtime_error&) {
      if (interrupted() || !other_start()) throw;
    }
    return count_words(*other_start(), 1);
  }

  // Returns nullopt and reports why if the script fails. Throws InputError if nothing follows from
  // the count.
  std::optional<CountedStep> count_if(int world) try {
    return world == 1 ? count_alone() : count(world);
  } catch (const InputError&) {
    throw;
  } catch (const std::runtime_error& why) {
    if (interrupted()) return std::nullopt;
    progress_.report(fmt::format("it fails {}: {}",
                                 world == 1 ? "alone" : fmt::format("as one of {} ranks", world),
                                 printable(why.what())));
    return std::nullopt;
  }

 private:
  // The script without its launcher, or under torchrun if it has none.
  std::optional<Script> other_start() const {
    Script other = script_;
    if (script_.has_count())
      other.words = script_.one;
    else if (!python_of(script_.words).empty())
      other.words = under_torchrun(script_.words);
    else
      return std::nullopt;
    return other.words.empty() ? std::nullopt : std::optional(other);
  }

  // By shapes, or by the CPU if that is not possible.
  CountedStep count_words(const Script& script, int world) {
    try {
      return count_once(script, cluster_, world, real_);
    } catch (const NeedsValues& why) {
      if (real_) throw;
      progress_.report(
          fmt::format("its step needs values, so this CPU computes it: {}", printable(why.what())));
    }
    real_ = true;
    return count_once(script, cluster_, world, real_);
  }

  const Script& script_;
  const Cluster& cluster_;
  ProgressReport& progress_;
  bool real_ = false;
};

// The ranks of a node, but at most the largest number.
int usual_world(const Cluster& cluster, int up_to) {
  return std::min(std::max(cluster.devices_per_node, 2), up_to);
}

CountedScript count_all(const Script& script, const Cluster& cluster, int up_to,
                        ProgressReport& progress) {
  Counter counter(script, cluster, progress);
  CountedScript counted{script.name, {}};
  const int world = usual_world(cluster, up_to);
  const std::optional<CountedStep> group = counter.count_if(world);
  if (interrupted()) return counted;
  if (!group) {
    counted.counts[1] = counter.count_alone();
    return counted;
  }
  counted.counts[group->world > 1 ? world : 1] = *group;
  if (group->world == 1) return counted;
  if (const std::optional<CountedStep> alone = counter.count_if(1)) counted.counts[1] = *alone;
  if (!is_strong(counted)) return counted;
  for (const int n : counts_up_to(up_to, 1))
    if (n != world && !interrupted())
      if (const std::optional<CountedStep> step = counter.count_if(n)) counted.counts[n] = *step;
  return counted;
}

}  // namespace

bool of_absent_gpus_and_script(const Arguments& a) {
  if (a.command.empty() || !a.resume.empty() || a.cluster.empty() || !a.rate.empty() ||
      find_cluster(a.cluster).device == kCpuDevice)
    return false;
  return a.devices.empty() && gpus_of_this_job() == 0 && read_machine().gpus.empty();
}

std::optional<Forecast> predict_script(const Arguments& a) {
  refuse_many_copies("it starts the command itself: start it once");
  ProgressReport progress(a.quiet);
  const Script script = script_to_count(a, progress);
  const Cluster cluster = find_cluster(a.cluster);
  refuse_beyond(cluster, *a.up_to);
  const ForecastOptions options = forecast_options(a, cluster);
  check(options, false);
  capability_of(cluster.device);
  catch_interrupts();
  try {
    const CountedScript counted = count_all(script, cluster, *a.up_to, progress);
    if (interrupted()) return std::nullopt;
    return forecast(counted, cluster, options);
  } catch (const InputError& why) {
    if (interrupted()) return std::nullopt;
    throw InputError(fmt::format("no answer for {}: {}", script.name, why.what()));
  } catch (const std::runtime_error&) {
    if (interrupted()) return std::nullopt;
    throw;
  }
}

}  // namespace howmany::reports
