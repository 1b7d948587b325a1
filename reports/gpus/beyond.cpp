// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/beyond.h"

#include <fmt/format.h>

#include <vector>

#include "core/base/schema/reasons.h"
#include "core/base/text/json.h"
#include "core/base/text/table.h"
#include "reports/predict/decide.h"
#include "reports/predict/forecast_json.h"
#include "reports/predict/rehearsed.h"
#include "reports/predict/slurm_wait.h"
#include "reports/results/plain_json.h"

namespace howmany::reports {
namespace {

std::optional<Rehearsed> rehearsed(const Plan& plan, const Results& results,
                                   const Summary& summary) {
  if (plan.request.beyond.cluster.empty()) return {};
  std::vector<nlohmann::json> lines;
  for (const BenchRun& run : results.runs) lines.push_back(run.samples.json);
  return rehearsed_of(summary, lines, cluster_of(plan.request.beyond));
}

void apply(const BeyondAsked& asked, ForecastOptions& options) {
  if (asked.min_efficiency) options.min_efficiency = *asked.min_efficiency;
  if (asked.samples) options.samples = asked.samples;
  if (asked.finish_within_hours) options.finish_within_hours = asked.finish_within_hours;
  if (asked.budget_device_hours) options.budget_device_hours = asked.budget_device_hours;
}

Forecast forecast_beyond(const Plan& plan, const Results& results, const Summary& summary,
                         const BeyondAsked& limits) {
  if (plan.request.script.alone)
    throw InputError(
        "the script trains on one device, however it is started; --try-ddp puts "
        "DistributedDataParallel around its model");
  ForecastOptions asked;
  asked.up_to = plan.request.beyond.up_to;
  apply(limits, asked);
  const std::optional<Rehearsed> r = rehearsed(plan, results, summary);
  if (r) asked.devices_per_node = r->cluster.devices_per_node;
  if (r) asked.price = r->cluster.price_per_device_hour;
  return forecast(trained_in(summary, r), asked, r);
}

}  // namespace

nlohmann::ordered_json beyond_json(const Plan& plan, const Results& results, const Summary& summary,
                                   const BeyondAsked& asked) {
  try {
    return to_json(forecast_beyond(plan, results, summary, asked));
  } catch (const InputError& why) {
    return {{"refused", why.what()}};
  }
}

void check(const BeyondAsked& asked) {
  if (!asked.samples && (asked.finish_within_hours || asked.budget_device_hours))
    throw InputError("a limit of time or device-hours needs --samples");
  ForecastOptions options;
  apply(asked, options);
  if (asked.slurm_wait) check_slurm_wait(options);
}

nlohmann::ordered_json beyond_again(const nlohmann::json& beyond, const BeyondAsked& asked) {
  if (beyond.is_object() && beyond.contains("refused")) return beyond;
  Forecast f = forecast_from_json(beyond, "summary.json");
  apply(asked, f.options);
  decide(f);
  return to_json(f);
}

nlohmann::ordered_json with_slurm_waits(const nlohmann::json& beyond) {
  if (beyond.contains("refused")) return beyond;
  Forecast f = forecast_from_json(beyond, "summary.json");
  ask_slurm(f);
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
