// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/absent_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <stdexcept>

#include "core/base/process.h"
#include "core/base/schema/flags.h"
#include "core/base/text/format.h"
#include "core/base/text/table.h"
#include "reports/gpus/absent.h"
#include "reports/gpus/progress.h"
#include "reports/gpus/resolve.h"
#include "reports/gpus/resolve_devices.h"
#include "reports/predict/count_step.h"
#include "reports/predict/counted_steps.h"
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

// The GPU that the script takes for its own, one for each rank of a node.
PretendedGpu pretended_gpu(const Cluster& cluster) {
  const bool named = cluster.device.starts_with("NVIDIA") || cluster.device.starts_with("MI");
  return {.name = (named ? "" : "NVIDIA ") + cluster.device,
          .memory = static_cast<int64_t>(cluster.memory_gb.value_or(kUnknownMemory) * 1e9),
          .capability = capability_of(cluster.device),
          .devices = cluster.devices_per_node};
}

class Counter {
 public:
  Counter(const Script& script, const Cluster& cluster, ProgressReport& progress)
      : script_(script),
        progress_(progress),
        counter_(pretended_gpu(cluster), [&](const std::string& line) { progress.report(line); }) {}

  CountedStep count(int world) {
    progress_.report(fmt::format("counting a step of {}{} without a GPU", script_.name,
                                 world > 1 ? fmt::format(" as one of {} ranks", world) : ""));
    return counter_.count(script_, world);
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
    return counter_.count(*other_start(), 1);
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

  const Script& script_;
  ProgressReport& progress_;
  StepCounter counter_;
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
