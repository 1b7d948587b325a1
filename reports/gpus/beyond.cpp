// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/beyond.h"

#include <fmt/format.h>

#include <vector>

#include "core/base/schema/reasons.h"
#include "core/base/text/json.h"
#include "core/base/text/table.h"
#include "reports/predict/computed.h"
#include "reports/predict/decide.h"
#include "reports/predict/forecast_json.h"
#include "reports/predict/rehearsed.h"
#include "reports/results/plain_json.h"

namespace howmany::reports {
namespace {

std::vector<nlohmann::json> lines_of(const Results& results) {
  std::vector<nlohmann::json> lines;
  for (const BenchRun& run : results.runs) lines.push_back(run.samples.json);
  return lines;
}

void apply(const ForecastLimits& limits, ForecastOptions& options) {
  if (limits.min_efficiency) options.min_efficiency = *limits.min_efficiency;
  if (limits.samples) options.samples = limits.samples;
  if (limits.finish_within_hours) options.finish_within_hours = limits.finish_within_hours;
  if (limits.budget_device_hours) options.budget_device_hours = limits.budget_device_hours;
}

Forecast forecast_beyond(const Plan& plan, const Results& results, const Summary& summary,
                         const ForecastLimits& limits) {
  if (plan.request.script.alone)
    throw InputError(
        "the script trains on one device, however it is started; --try-ddp puts "
        "DistributedDataParallel around its model");
  ForecastOptions options;
  options.up_to = plan.request.beyond.up_to;
  if (plan.request.across.nodes.many())
    options.devices_per_node = static_cast<int>(plan.request.devices.size());
  apply(limits, options);
  const BeyondPlan& beyond = plan.request.beyond;
  if (beyond.cluster.empty()) return forecast(trained_in(summary), options);
  const Cluster cluster = cluster_of(beyond);
  options.devices_per_node = cluster.devices_per_node;
  options.price = cluster.price_per_device_hour;
  const std::optional<ClusterSteps> steps =
      plan.request.script.given() ? rehearsed_of(summary, lines_of(results), cluster)
                                  : computed_in(summary, cluster, options, plan.request.modes[0]);
  return forecast(trained_in(summary, steps), options, steps);
}

}  // namespace

nlohmann::ordered_json beyond_json(const Plan& plan, const Results& results, const Summary& summary,
                                   const ForecastLimits& limits) {
  try {
    return to_json(forecast_beyond(plan, results, summary, limits));
  } catch (const InputError& why) {
    return {{"refused", why.what()}};
  }
}

void check(const ForecastLimits& limits) {
  if (!limits.samples && (limits.finish_within_hours || limits.budget_device_hours))
    throw InputError("a limit of time or device-hours needs --samples");
}

nlohmann::ordered_json beyond_again(const nlohmann::json& beyond, const ForecastLimits& limits) {
  if (beyond.is_object() && beyond.contains("refused")) return beyond;
  Forecast f = forecast_from_json(beyond, "summary.json");
  apply(limits, f.options);
  decide(f);
  return to_json(f);
}

bool is_beyond_first(const nlohmann::json& answer) {
  const nlohmann::json& beyond = json_member(answer, "beyond");
  return beyond.is_object() && !beyond.contains("refused") &&
         json_member(json_member(answer, "gpus"), "reason") == reason::kOneDeviceMeasured;
}

std::string beyond_text(const nlohmann::json& answer, bool color) {
  const JsonNode root(answer, "summary.json");
  const auto beyond = root.find("beyond");
  if (!beyond) return "";
  if (const auto refused = beyond->find("refused"))
    return "\n" +
           wrapped(fmt::format("No answer for more devices: {}.", refused->string()), kTextWidth,
                   2) +
           "\n";
  return "\n" + render(forecast_from_json(beyond->value(), "summary.json"), color);
}

}  // namespace howmany::reports
