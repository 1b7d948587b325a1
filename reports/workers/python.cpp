// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/python.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include <embedded/reports/workers/python_probe.py.h>
#include "core/base/process.h"
#include "core/base/schema/flags.h"
#include "core/base/schema/metrics.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

constexpr double kProbeTimeout = 60, kCheckTimeout = 90;
constexpr const char* kSampleSeconds = "1.5";

nlohmann::json answer_of(const std::vector<std::string>& argv, double timeout) {
  const ProcessResult ended = run_command({.argv = argv, .timeout_seconds = timeout});
  if (!ended.ok()) throw InputError(fmt::format("{} {}", argv.front(), ended.describe()));
  return parse_json(ended.out, argv.front());
}

}  // namespace

double PythonCost::worker_start_s() const {
  const auto it = start_s.find(method);
  return it == start_s.end() ? 0 : it->second;
}

PythonCost python_cost_from(const nlohmann::json& probe, const std::string& method) {
  const JsonNode root(probe, "the Python probe");
  PythonCost cost;
  cost.version = root.at("version").string();
  if (const auto torch = root.find("torch"); torch)
    cost.version += " with torch " + torch->string();
  cost.method = method.empty() ? root.at("method").string() : method;
  cost.batch_s = root.at("batch_s").number();
  for (const auto& [name, seconds] : root.at("start_s").members())
    cost.start_s[name] = seconds.number();
  if (!cost.start_s.contains(cost.method))
    throw InputError(
        fmt::format("Python {} cannot start processes by {}", cost.version, cost.method));
  return cost;
}

void add_sample_cost(PythonCost& cost, const nlohmann::json& check, double cores) {
  const JsonNode root(check, "the check script");
  for (const JsonNode& row : root.at("rows").items()) {
    const double rate = row.at(metric::kSamplesPerS).number();
    const auto workers = row.at("workers").integer_between(0, 1 << 20);
    if (!(rate > 0)) continue;
    if (workers == 0) cost.alone_s = 1 / rate;
    if (workers == 1) cost.sample_s = 1 / rate;
    if (workers <= 1) continue;
    cost.oversubscribed = static_cast<int>(workers);
    cost.oversubscribed_s = cores / rate;
  }
  cost.how = root.at("how").string();
}

PythonCost measure_python(const std::string& python, const std::string& method,
                          const std::string& check, const std::string& folder, double cores,
                          int oversubscribed) {
  const std::string program = find_in_path(python), probe = folder + "/python-probe.py";
  PythonCost cost;
  try {
    if (program.empty()) throw InputError(python + " is not in PATH");
    write_text(probe, embedded::kPythonProbe);
    cost = python_cost_from(answer_of({program, probe}, kProbeTimeout), method);
    const auto measure = [&](const std::string& workers) {
      add_sample_cost(cost,
                      answer_of({program, "-W", "ignore", check, flag::kWorkers, workers,
                                 flag::kJson, "--seconds", kSampleSeconds},
                                kCheckTimeout),
                      cores);
    };
    const bool makes_samples = !check.empty() && cost.version.find("torch") != std::string::npos;
    if (makes_samples) measure("0,1");
    if (makes_samples && oversubscribed > 1) measure(std::to_string(oversubscribed));
  } catch (const InputError& error) {
    cost.why_not = error.what();
  }
  std::filesystem::remove(probe);
  return cost;
}

nlohmann::ordered_json to_json(const PythonCost& cost) {
  nlohmann::ordered_json starts = nlohmann::ordered_json::object();
  for (const auto& [method, seconds] : cost.start_s) starts[method] = seconds;
  return {{"version", cost.version},
          {"why_not", cost.why_not},
          {"start_method", cost.method},
          {"start_s", starts},
          {"batch_s", cost.batch_s},
          {metric::kSampleS, cost.sample_s},
          {"alone_s", cost.alone_s},
          {"how", cost.how},
          {"crowded", cost.oversubscribed},
          {"crowded_s", cost.oversubscribed_s},
          {"more_s", cost.more_s},
          {"more_alone_s", cost.more_alone_s},
          {"more_crowded_s", cost.more_oversubscribed_s}};
}

}  // namespace howmany::reports
