// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/beyond.h"

#include <fmt/format.h>

#include <cmath>

#include "core/base/schema/parameters.h"
#include "core/base/schema/samples.h"
#include "core/base/text/json.h"
#include "core/base/text/table.h"
#include "reports/predict/decide.h"
#include "reports/predict/forecast_json.h"

namespace howmany::reports {
namespace {

constexpr const char* kSource = "samples";

// The steps of all rounds.
StepLog logged_steps(const Plan& plan, const Results& results) {
  const std::vector<Configuration> all = configurations(plan.request);
  StepLog log{plan.request.beyond.up_to, {}};
  for (const BenchRun& run : results.runs) {
    if (!all[run.configuration].is_rehearsal() || run.samples.seconds.empty()) continue;
    const JsonNode line(run.samples.json, kSource);
    const auto steps = line.find(sample_line::kSteps);
    if (!steps) continue;
    StepLog round = step_log_from(steps->value(), log.world, kSource);
    log.steps.insert(log.steps.end(), round.steps.begin(), round.steps.end());
  }
  return log;
}

const Measurement& rehearsal_in(const Summary& summary) {
  for (const Measurement& m : summary.measurements) {
    if (m.suite != kRehearsalMode) continue;
    for (const std::string& flag : m.flags)
      if (flag.starts_with("failed: ")) throw InputError("the rehearsal " + flag);
    if (std::isfinite(value_of(m, "efficiency"))) return m;
  }
  throw InputError("no step was rehearsed");
}

std::optional<Rehearsed> rehearsed(const Plan& plan, const Results& results,
                                   const Summary& summary) {
  const BeyondPlan& beyond = plan.request.beyond;
  if (beyond.cluster.empty()) return {};
  const Measurement& m = rehearsal_in(summary);
  if (parameter_of(m, parameter::kScaling) != "weak")
    throw InputError("the batch per device depends on the number of devices: keep it");
  Rehearsed r{cluster_of(beyond), logged_steps(plan, results), value_of(m, "efficiency"),
              parameter_of(m, parameter::kMode) == "ddp"};
  if (r.log.steps.empty()) throw InputError("the script called no collective");
  return r;
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
  std::string what;
  const bool cpu = r && r->cluster.device == kCpuDevice;
  const std::vector<RateAt> rates = rates_of(summary, what, cpu);
  return forecast(what, rates, asked, r);
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
}

nlohmann::ordered_json beyond_again(const nlohmann::json& beyond, const BeyondAsked& asked) {
  if (beyond.is_object() && beyond.contains("refused")) return beyond;
  Forecast f = forecast_from_json(beyond, "summary.json");
  apply(asked, f.options);
  decide(f);
  return to_json(f);
}

std::string beyond_text(const nlohmann::json& answer, bool color) {
  const JsonNode root(answer, "summary.json");
  const auto beyond = root.find("beyond");
  if (!beyond) return "";
  if (const auto refused = beyond->find("refused"))
    return wrapped(fmt::format("\nNo answer for more devices: {}.", refused->string()), kTextWidth,
                   2) +
           "\n";
  return "\n" + render(forecast_from_json(beyond->value(), "summary.json"), color);
}

}  // namespace howmany::reports
