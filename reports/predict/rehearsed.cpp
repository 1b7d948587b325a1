// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/rehearsed.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "core/base/schema/parameters.h"
#include "core/base/schema/samples.h"
#include "core/base/text/json.h"
#include "reports/results/bench_file.h"
#include "reports/results/plain_json.h"

namespace howmany::reports {
namespace {

constexpr const char* kSamplesFile = "/speedup.samples.jsonl";

// The one of the most devices, which comes last.
const Measurement* rehearsal_in(const Summary& summary) {
  const Measurement* last = nullptr;
  for (const Measurement& m : summary.measurements)
    if (m.suite == kRehearsalSuite) last = &m;
  return last;
}

std::string failure_of(const Measurement& m) {
  for (const std::string& flag : m.flags)
    if (flag.starts_with("failed: ")) return flag.substr(std::string("failed: ").size());
  return std::isfinite(value_of(m, "efficiency")) ? "" : "no step was rehearsed";
}

void refuse_failed(const Measurement& m) {
  if (const std::string why = failure_of(m); !why.empty())
    throw InputError("the rehearsal failed: " + why);
}

int world_of(const Measurement& m) {
  const int world = std::atoi(parameter_of(m, parameter::kDevices).c_str());
  if (world < 2 || world > kMaxPredicted)
    throw InputError("the rehearsal has no number of devices");
  return world;
}

std::vector<nlohmann::json> lines_in(const std::string& folder) {
  std::vector<nlohmann::json> lines;
  for (const SampleLine& line : read_samples(folder + kSamplesFile)) lines.push_back(line.json);
  return lines;
}

bool is_of(const nlohmann::json& line, int world) {
  const nlohmann::json& devices =
      json_member(json_member(line, sample_line::kParameters), parameter::kDevices);
  return !devices.is_string() || devices == std::to_string(world);
}

// The steps of all rounds.
StepLog logged_steps(const std::vector<nlohmann::json>& lines, int world) {
  StepLog log{world, {}};
  for (const nlohmann::json& line : lines) {
    if (line.is_null() || !is_of(line, world)) continue;  // null: of a run that failed
    const JsonNode node(line, sample_line::kSteps);
    const auto steps = node.find(sample_line::kSteps);
    if (!steps) continue;
    const StepLog round = step_log_from(steps->value(), world, sample_line::kSteps);
    log.steps.insert(log.steps.end(), round.steps.begin(), round.steps.end());
  }
  return log;
}

// Each number of devices that was rehearsed.
void add_each(const Summary& summary, ClusterSteps& r) {
  for (const Measurement& m : summary.measurements) {
    if (m.suite != kRehearsalSuite) continue;
    const std::string why = failure_of(m);
    if (why.empty())
      r.efficiency_by_devices[world_of(m)] = value_of(m, "efficiency");
    else
      r.failure_by_devices[world_of(m)] = why;
  }
}

}  // namespace

void refuse_other_devices(const Measurement& m, const Cluster& cluster) {
  const bool cpu = parameter_of(m, "device_list").starts_with("cpu");
  if (cpu == (cluster.device == kCpuDevice)) return;
  throw InputError(fmt::format("the run was on {}, and {} is of {} devices",
                               cpu ? "CPU cores" : "GPUs", cluster.name, cluster.device));
}

bool is_replayable(const std::string& mode) {
  if (mode.starts_with("tensor")) return mode.find("ways=") != std::string::npos;
  return mode.starts_with("ddp") || mode.starts_with("sharded") || mode == "fsdp";
}

ClusterSteps rehearsed_of(const Summary& summary, const std::vector<nlohmann::json>& lines,
                          const Cluster& cluster) {
  const Measurement* const m = rehearsal_in(summary);
  if (m == nullptr) throw InputError("no step was rehearsed");
  ClusterSteps r{cluster};
  r.replayable = is_replayable(parameter_of(*m, parameter::kMode)) &&
                 parameter_of(*m, parameter::kScaling) == "weak";
  r.log = logged_steps(lines, world_of(*m));
  r.efficiency = value_of(*m, "efficiency");
  if (!r.replayable) {
    add_each(summary, r);
    return r;
  }
  refuse_failed(*m);
  if (r.log.steps.empty()) throw InputError("no collective was called");
  r.spread = spread_of(r.log);
  return r;
}

std::optional<ClusterSteps> rehearsed_in(const std::string& folder, const Summary& summary,
                                         const Cluster& cluster) {
  const Measurement* const m = rehearsal_in(summary);
  if (m == nullptr || !std::filesystem::exists(folder + kSamplesFile)) return {};
  refuse_other_devices(*m, cluster);
  ClusterSteps r = rehearsed_of(summary, lines_in(folder), cluster);
  const nlohmann::json& beyond = json_member(summary.answer, "beyond");
  r.other_cluster = json_member(beyond, "cluster") != cluster.name;
  return r;
}

}  // namespace howmany::reports
