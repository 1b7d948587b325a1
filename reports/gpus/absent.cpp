// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/absent.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/schema/flags.h"
#include "core/base/text/options.h"
#include "reports/gpus/resolve.h"
#include "reports/predict/model_runs.h"
#include "reports/predict/preset.h"

namespace howmany::reports {
namespace {

void check(const Arguments& a) {
  refuse_options_of_scripts(a);
  const std::vector<std::string> given = only_for_measurements(a);
  if (!given.empty())
    throw InputError(
        fmt::format("{} without your own command after -- predicts from published rates and "
                    "measures nothing, so {} cannot be given",
                    flag::kCluster.name, fmt::join(given, ", ")));
  if (a.models.size() != 1)
    throw InputError(
        fmt::format("{} needs your own PyTorch script after --, or one {} (such as {} resnet50)",
                    flag::kCluster.name, flag::kModel.name, flag::kModel.name));
  if (!a.up_to)
    throw InputError(fmt::format("{} needs {}, the largest number of devices", flag::kCluster.name,
                                 flag::kUpTo.name));
}

// Throws InputError if a mode has no steps that can be computed without a GPU.
std::vector<std::string> modes_of(const Arguments& a) {
  std::vector<std::string> modes = join_options(a.modes);
  if (modes.empty()) modes = {kPlainMode};
  for (const std::string& mode : modes)
    if (!is_computable(mode))
      throw InputError(fmt::format(
          "{} {}: on GPUs that are not here, ddp, sharded, tensor, pipeline and hybrid over ranks "
          "are predicted",
          flag::kMode.name, mode));
  return modes;
}

// The forecast of the mode, or that of the fastest mode on each number of GPUs.
Forecast forecast_of(const Arguments& a, const std::vector<std::string>& modes,
                     const PresetOptions& options, Preset p) {
  const std::string &model = a.models[0], &precision = options.precision;
  const ForecastOptions asked = forecast_options(a, p.cluster);
  if (modes == std::vector<std::string>{kPlainMode})
    p.basis += " " + memory_sentence(model, precision, p);
  else
    p.basis += fmt::format(
        " The exchanges of {} own code, run without computing. A row is empty if its step "
        "does not fit with adamw.",
        modes.size() == 1 ? modes[0] + " are those of its" : "the modes are those of their");
  std::vector<int> counts = counts_up_to(asked.up_to, 1);
  counts.insert(counts.begin(), 1);
  std::vector<Forecast> all;
  for (const std::string& mode : modes) {
    p.mode = mode;
    p.steps = steps_of_mode(model, precision, p, counts);
    all.push_back(forecast(model, p, asked));
  }
  return all.size() == 1 ? all[0] : fastest_of(all, modes);
}

PresetOptions preset_options(const Arguments& a) {
  const auto given = a.forwarded.find(flag::kPrecision.bare_name());
  const std::string word = given == a.forwarded.end() ? "" : given->second.value_or("");
  ForwardedOptions precision;
  if (!word.empty()) precision.set(flag::kPrecision.bare_name(), word);
  precision.check({"cuda:0"});
  return {word, a.batch_per_device.value_or(0), a.global_batch.value_or(0)};
}

}  // namespace

bool of_absent_gpus(const Arguments& a) {
  return a.command.empty() && a.resume.empty() && !a.cluster.empty() &&
         find_cluster(a.cluster).device != kCpuDevice;
}

Forecast predict_absent_gpus(const Arguments& a) {
  check(a);
  const Cluster cluster = find_cluster(a.cluster);
  refuse_beyond(cluster, *a.up_to);
  const std::vector<std::string> modes = modes_of(a);
  const ModelWork work = read_work(a.models[0]);
  const PresetOptions options = preset_options(a);
  return forecast_of(a, modes, options, preset(work, cluster, options));
}

std::vector<std::string> only_for_measurements(const Arguments& a) {
  std::vector<std::string> given;
  const auto add = [&](bool is_given, const Flag& flag) {
    if (is_given) given.emplace_back(flag.name);
  };
  add(!a.backends.empty(), flag::kBackend);
  add(!a.devices.empty(), flag::kDevices);
  add(a.cores_per_device.has_value(), flag::kCoresPerDevice);
  add(a.workers.has_value(), flag::kWorkers);
  add(a.rounds.has_value(), flag::kRounds);
  add(a.time_budget.has_value(), flag::kTimeBudget);
  add(a.run_timeout.has_value(), flag::kRunTimeout);
  add(a.seed.has_value(), flag::kSeed);
  add(a.sync_batchnorm, flag::kSyncBatchnorm);
  add(a.profile, flag::kProfile);
  add(a.oversubscribe, flag::kOversubscribe);
  add(!a.out.empty(), flag::kOut);
  add(!a.emit.empty(), flag::kEmit);
  for (const auto& [name, word] : a.forwarded)
    if (word && "--" + name != flag::kPrecision.name) given.push_back("--" + name);
  return given;
}

ForecastOptions forecast_options(const Arguments& a, const Cluster& cluster) {
  ForecastOptions options;
  options.up_to = *a.up_to;
  options.devices_per_node = cluster.devices_per_node;
  options.price = cluster.price_per_device_hour;
  options.samples = a.samples;
  options.finish_within_hours = a.finish_within;
  options.budget_device_hours = a.budget;
  if (a.min_efficiency) options.min_efficiency = *a.min_efficiency;
  return options;
}

void refuse_beyond(const Cluster& cluster, int up_to) {
  if (const std::string why = cluster.refusal(up_to); !why.empty())
    throw InputError(fmt::format("{} {}: {}", flag::kUpTo.name, up_to, why));
}

}  // namespace howmany::reports
