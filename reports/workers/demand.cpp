// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/demand.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "core/base/process.h"
#include "core/base/schema/flags.h"
#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"
#include "reports/results/bench_file.h"
#include "reports/results/machine.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

namespace fs = std::filesystem;
constexpr double kMaxWait = 0.95;  // of a step: with more waiting, the demand is unknown

struct Step {
  int devices = 0;
  double samples_per_s = 0;  // of all devices
  double wait = 0;           // share of a step
  std::string what;
};

double per_device(const Step& s) {
  return s.samples_per_s / s.devices / (1 - std::clamp(s.wait, 0.0, kMaxWait));
}

// Returns the number in "devices:4" of a bench name, or 0.
int devices_of(const std::string& name) {
  const size_t at = name.find("devices:");
  return at == std::string::npos ? 0 : std::atoi(name.c_str() + at + 8);
}

std::vector<Step> steps_of_summary(const nlohmann::json& json, const std::string& path) {
  std::vector<Step> steps;
  for (const Measurement& m : summary_from_json(json, path).measurements) {
    const auto devices = m.parameters.find(parameter::kDevices);
    const auto rate = m.metrics.find(metric::kSamplesPerS),
               wait = m.metrics.find(metric::kDataWaitFraction);
    if (m.suite != "speedup" || devices == m.parameters.end() || rate == m.metrics.end()) continue;
    const double waited = wait == m.metrics.end() ? 0 : wait->second.value;
    steps.push_back({std::atoi(devices->second.c_str()), rate->second.value,
                     std::isfinite(waited) ? waited : 0, m.name});
  }
  return steps;
}

std::vector<Step> steps_of_bench(const nlohmann::json& json, const std::string& path) {
  std::vector<Step> steps;
  for (const BenchRow& row : bench_from_json(json, path).rows) {
    const auto rate = row.counters.find(metric::kSamplesPerS),
               wait = row.counters.find(metric::kDataWaitFraction);
    if (!row.error.empty() || rate == row.counters.end()) continue;
    steps.push_back({devices_of(row.name), rate->second,
                     wait == row.counters.end() ? 0 : wait->second, row.name});
  }
  return steps;
}

// Returns the fastest step on the largest number of devices up to `devices`. Larger numbers do not
// predict smaller ones.
std::optional<Step> fastest(const std::vector<Step>& steps, int devices) {
  std::optional<Step> best;
  for (const Step& s : steps) {
    if (s.devices < 1 || s.devices > devices || !(s.samples_per_s > 0)) continue;
    const bool nearer = best && s.devices > best->devices;
    const bool faster = best && s.devices == best->devices && per_device(s) > per_device(*best);
    if (!best || nearer || faster) best = s;
  }
  return best;
}

std::string file_of(const std::string& path) {
  if (!fs::is_directory(path)) return path;
  for (const char* name : {"/summary.json", "/speedup.json"})
    if (fs::exists(path + name)) return path + name;
  throw InputError(fmt::format("--from {}: neither summary.json nor speedup.json is in it", path));
}

}  // namespace

Demand demand_from_file(const std::string& path, int devices) {
  const std::string file = file_of(path);
  const nlohmann::json json = parse_json(read_text(file), file);
  const bool summary = json.is_object() && json.contains("schema");
  const auto step =
      fastest(summary ? steps_of_summary(json, file) : steps_of_bench(json, file), devices);
  if (!step)
    throw InputError(
        fmt::format("--from {}: no training step on {} device{} or fewer was measured there", file,
                    devices, devices == 1 ? "" : "s"));
  return {per_device(*step), fmt::format("{} on {} in {}", step->what, step->devices, file)};
}

Demand demand_of_model(const std::string& model, const std::string& device, int64_t batch,
                       double seconds, const std::string& folder) {
  const std::string out = folder + "/.demand.json";
  Command command{.argv = {find_program("speedup_bench"), flag::kModel, model, flag::kMode,
                           "single", flag::kDevices, device, flag::kBatchPerDevice,
                           std::to_string(batch), flag::kCaseBudget, fmt::format("{:.2f}", seconds),
                           "--benchmark_out=" + out, "--benchmark_out_format=json"},
                  .timeout_seconds = seconds + 120};
  const ProcessResult ended = run_command(command);
  if (!ended.ok()) {
    ::unlink(out.c_str());
    if (interrupted()) return {};
    if (ended.how == ProcessResult::How::kExited && ended.code == 2)
      throw InputError(ended.last_line());
    throw InputError(fmt::format("--model {}: speedup_bench {}", model, ended.describe()));
  }
  const nlohmann::json json = parse_json(read_text(out), out);
  ::unlink(out.c_str());
  const auto step = fastest(steps_of_bench(json, out), 1);
  if (!step) throw InputError(fmt::format("--model {}: no step could be measured", model));
  return {per_device(*step), fmt::format("{} on {} here", model, device)};
}

}  // namespace howmany::reports
