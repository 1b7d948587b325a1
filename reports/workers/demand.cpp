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
  double samples_per_s = 0;  // per device, while it does not wait for data
  std::string what;
};

// `rate`: of all devices. `wait`: share of a step; not finite if unknown.
void add_step(std::vector<Step>& steps, int devices, double rate, double wait,
              const std::string& what) {
  if (devices < 1 || !(rate > 0)) return;
  const double works = 1 - (std::isfinite(wait) ? std::clamp(wait, 0.0, kMaxWait) : 0);
  steps.push_back({devices, rate / devices / works, what});
}

// Returns the steps of a summary.json or of a file of speedup_bench.
std::vector<Step> steps_in(const std::string& path) {
  const nlohmann::json json = parse_json(read_text(path), path);
  std::vector<Step> steps;
  if (json.is_object() && json.contains("schema")) {
    for (const Measurement& m : summary_from_json(json, path).measurements)
      if (m.suite == "speedup")
        add_step(steps, std::atoi(parameter_of(m, parameter::kDevices).c_str()),
                 value_of(m, metric::kSamplesPerS), value_of(m, metric::kDataWaitFraction), m.name);
    return steps;
  }
  for (const BenchRow& row : bench_from_json(json, path).rows) {
    const auto counter = [&](const char* name) {
      const auto found = row.counters.find(name);
      return found == row.counters.end() || !row.error.empty() ? kNaN : found->second;
    };
    const size_t at = row.name.find("devices:");
    if (at != std::string::npos)
      add_step(steps, std::atoi(row.name.c_str() + at + 8), counter(metric::kSamplesPerS),
               counter(metric::kDataWaitFraction), row.name);
  }
  return steps;
}

// Returns the fastest step on the largest number of devices up to `devices`. Larger numbers do not
// predict smaller ones.
std::optional<Step> fastest(const std::vector<Step>& steps, int devices) {
  std::optional<Step> best;
  for (const Step& s : steps) {
    if (s.devices > devices) continue;
    const bool nearer = best && s.devices > best->devices;
    const bool faster = best && s.devices == best->devices && s.samples_per_s > best->samples_per_s;
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
  const auto step = fastest(steps_in(file), devices);
  if (!step)
    throw InputError(
        fmt::format("--from {}: no training step on {} device{} or fewer was measured there", file,
                    devices, devices == 1 ? "" : "s"));
  return {step->samples_per_s, fmt::format("{} on {} in {}", step->what, step->devices, file)};
}

Demand demand_of_model(const std::string& model, const std::string& device, int64_t batch,
                       double seconds, const std::string& folder) {
  const std::string out = folder + "/.demand.json";
  const ProcessResult ended = run_command(
      {.argv = {find_program("speedup_bench"), flag::kModel, model, flag::kMode, "single",
                flag::kDevices, device, flag::kBatchPerDevice, std::to_string(batch),
                flag::kCaseBudget, fmt::format("{:.2f}", seconds), "--benchmark_out=" + out,
                "--benchmark_out_format=json"},
       .timeout_seconds = seconds + 120});
  const auto step = ended.ok() ? fastest(steps_in(out), 1) : std::nullopt;
  ::unlink(out.c_str());
  if (interrupted()) return {};
  if (ended.how == ProcessResult::How::kExited && ended.code == 2)
    throw InputError(ended.last_line());
  if (!ended.ok())
    throw InputError(fmt::format("--model {}: speedup_bench {}", model, ended.describe()));
  if (!step) throw InputError(fmt::format("--model {}: no step could be measured", model));
  return {step->samples_per_s, fmt::format("{} on {} here", model, device)};
}

}  // namespace howmany::reports
