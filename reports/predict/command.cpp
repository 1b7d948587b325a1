// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "core/base/cli/number_check.h"
#include "core/base/cli/option.h"
#include "core/base/cli/output_options.h"
#include "core/base/error.h"
#include "core/base/schema/exit_codes.h"
#include "core/base/schema/flags.h"
#include "core/base/schema/parameters.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"
#include "core/base/text/table.h"
#include "reports/cluster/cluster.h"
#include "reports/predict/computed.h"
#include "reports/predict/forecast_json.h"
#include "reports/predict/rates.h"
#include "reports/predict/rehearsed.h"

namespace howmany::reports {
namespace {

struct PredictArguments {
  std::string path, rates;
  ForecastOptions options;
  std::string cluster;
  bool json = false;
  bool asks_devices_per_node = true;  // it was not given
};

void apply(const Cluster& cluster, ForecastOptions& options) {
  if (const std::string why = cluster.refusal(options.up_to); !why.empty())
    throw InputError(fmt::format("{} {}: {}", flag::kUpTo.name, options.up_to, why));
  options.devices_per_node = cluster.devices_per_node;
  options.price = cluster.price_per_device_hour;
}

// A file that does not begin as JSON does.
bool is_table(const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) return false;
  const std::string text = read_text(path);
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] != '{';
}

// Returns 0 if the run was on one node.
int devices_per_node_in(const Summary& summary) {
  for (const Measurement& m : summary.measurements) {
    const int nodes = std::atoi(parameter_of(m, parameter::kNodes).c_str());
    const int devices = std::atoi(parameter_of(m, parameter::kDevices).c_str());
    if (nodes > 1 && devices >= nodes) return devices / nodes;
  }
  return 0;
}

Forecast forecast_of(const PredictArguments& a) {
  ForecastOptions options = a.options;
  std::optional<Cluster> cluster;
  if (!a.cluster.empty()) {
    cluster = find_cluster(a.cluster);
    apply(*cluster, options);
  }
  if (a.path.empty() == a.rates.empty())
    throw InputError(fmt::format("give the folder of a howmany gpus, or {}", flag::kRates.name));
  const bool folder = std::filesystem::is_directory(a.path);
  const std::string table = !a.rates.empty() ? a.rates : is_table(a.path) ? a.path : "";
  if (!table.empty()) {
    const MeasuredRates known = parse_rates(table);
    return forecast({.rates = known.rates, .of_batches = known.of_batches}, options);
  }
  const Summary summary = read_summary(folder ? a.path + "/summary.json" : a.path);
  if (a.asks_devices_per_node)
    if (const int measured = devices_per_node_in(summary)) options.devices_per_node = measured;
  std::optional<ClusterSteps> steps;
  if (cluster && folder) steps = rehearsed_in(a.path, summary, *cluster);
  if (cluster && !steps) steps = computed_in(summary, *cluster, options);
  return forecast(trained_in(summary, steps), options, steps);
}

int run_predict(const PredictArguments& a) {
  const Forecast result = forecast_of(a);
  const bool color = color_wanted(STDOUT_FILENO);
  fmt::print("{}", a.json ? dump_json(to_json(result)) : render(result, color));
  return exit_code::kFine;
}

}  // namespace

void add_predict_command(CLI::App& sub, int& code) {
  const auto a = std::make_shared<PredictArguments>();
  sub.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  sub.add_option("path", a->path,
                 "Folder of a howmany gpus, its summary.json, or a table of N and rate")
      ->type_name("PATH");
  add_option(sub, flag::kRates, a->rates);
  add_option(sub, flag::kUpTo, a->options.up_to, "4 times the largest measured number")
      ->check(whole_between(2, kMaxPredicted));
  auto* const node = add_option(sub, flag::kDevicesPerNode, a->options.devices_per_node)
                         ->check(whole_between(1, 1024));
  add_option(sub, flag::kCluster, a->cluster, "")->excludes(node);
  add_option(sub, flag::kMinEfficiency, a->options.min_efficiency)->check(between(0.01, 1.0));
  add_count(sub, flag::kSamples, a->options.samples, "");
  add_option(sub, flag::kFinishWithin, a->options.finish_within_hours, "")->check(above_zero());
  add_option(sub, flag::kBudget, a->options.budget_device_hours, "")->check(above_zero());
  add_json(sub, a->json);
  sub.footer(
      "Nothing is measured. Intervals cover 90 % of published scaling curves.\n\n"
      "Examples:\n"
      "  howmany predict howmany-out/20260101T120000Z --up-to 16\n"
      "  howmany predict RUN --samples 90M --finish-within 24 --budget 500\n"
      "  howmany predict RUN --cluster h100x8 --up-to 64         # replays the rehearsal of RUN "
      "there\n"
      "  howmany predict --rates 1=412,2=801,8=2950 --up-to 64   # samples/s of your own logs\n"
      "  howmany predict --rates 1=0.42s,8=0.47s                 # seconds per step\n"
      "  howmany predict --rates 8=run8.log,16=run16.log         # lines of MLPerf's logger\n"
      "  howmany predict rates.csv                               # columns n and samples_per_s");
  sub.callback([a, node, &code] {
    a->asks_devices_per_node = node->count() == 0 && a->cluster.empty();
    code = run_predict(*a);
  });
}

}  // namespace howmany::reports
