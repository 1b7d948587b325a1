// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/computed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/base/text/format.h"
#include "reports/predict/model_runs.h"
#include "reports/predict/rehearsed.h"

namespace howmany::reports {
namespace {

// One model and mode, as measured.
struct Measured {
  ReferenceStep step;
  std::string mode;
  bool strong = false;
  int devices = 1;  // the most
};

std::string precision_or_f32(const std::string& precision) {
  return precision.empty() ? "f32" : precision;
}

int devices_of(const Measurement& m) {
  return std::atoi(parameter_of(m, parameter::kDevices).c_str());
}

std::optional<Measured> measured_in(const Summary& summary, const std::string& mode_of_request) {
  Measured found;
  std::set<std::string> models, modes;
  for (const Measurement& m : summary.measurements) {
    if (m.suite != "speedup" || !std::isfinite(value_of(m, metric::kMedianS))) continue;
    if (!parameter_of(m, parameter::kScript).empty()) return {};
    const std::string mode = parameter_of(m, parameter::kMode);
    models.insert(parameter_of(m, parameter::kModel));
    if (mode != "single") {
      modes.insert(mode);
      found.devices = std::max(found.devices, devices_of(m));
      continue;
    }
    found.strong = parameter_of(m, parameter::kScaling) == "strong";
    found.step = {parameter_of(m, parameter::kModel),
                  precision_or_f32(parameter_of(m, parameter::kPrecision)),
                  std::atoll(parameter_of(m, parameter::kGlobalBatch).c_str()),
                  value_of(m, metric::kMedianS),
                  {}};
  }
  if (modes.empty() && !mode_of_request.empty()) modes.insert(mode_of_request);
  if (models.size() != 1 || modes.size() != 1 || found.step.samples < 1) return {};
  found.mode = *modes.begin();
  if (!is_computable(found.mode)) return {};
  return found;
}

// The samples of each device, rounded up.
int64_t share_of(int64_t batch, bool strong, int devices) {
  return strong ? (batch + devices - 1) / devices : batch;
}

// Why the batch cannot be divided; empty if it can.
std::string too_small(int64_t batch, bool strong, int devices) {
  if (!strong || batch >= devices) return "";
  return fmt::format("a batch of {} has none for some of {} devices", number(batch, "sample"),
                     devices);
}

}  // namespace

std::optional<ClusterSteps> computed_in(const Summary& summary, const Cluster& cluster,
                                        const ForecastOptions& options,
                                        const std::string& mode_of_request) {
  const std::optional<Measured> measured = measured_in(summary, mode_of_request);
  if (!measured) return {};
  refuse_other_devices(summary.measurements.front(), cluster);
  const auto& [step, mode, strong, last] = *measured;
  std::map<int, ShareOfDevice> shares;
  std::vector<int> counts = counts_up_to(up_to(options, last), 1);
  if (last > 1) counts.push_back(last);
  ClusterSteps steps{.cluster = cluster, .replayable = false, .computed = true};
  for (const int n : counts) {
    if (!cluster.refusal(n).empty()) continue;
    if (const std::string why = too_small(step.samples, strong, n); !why.empty())
      steps.failure_by_devices[n] = why;
    else
      shares[n] = {mode, share_of(step.samples, strong, n)};
  }
  for (const auto& [n, found] : computed_steps(step, cluster, shares)) {
    if (!found.why.empty())
      steps.failure_by_devices[n] = found.why;
    else
      steps.efficiency_by_devices[n] = step.seconds / found.seconds.value / (strong ? n : 1);
  }
  return steps;
}

void check_computable(const std::string& model, const std::string& precision,
                      const std::string& mode, int64_t batch, bool strong, const Cluster& cluster,
                      int devices) {
  if (const std::string why = too_small(batch, strong, devices); !why.empty())
    throw InputError(why);
  const ReferenceStep any{model, precision_or_f32(precision), batch, 1, {}};
  const ShareOfDevice share{mode, share_of(batch, strong, devices)};
  for (const auto& [n, step] : computed_steps(any, cluster, {{devices, share}}))
    if (!step.why.empty()) throw InputError(step.why);
}

}  // namespace howmany::reports
