// SPDX-License-Identifier: Apache-2.0
// MLflow and W&B: trackers.py writes the runs with their own libraries, in the user's Python.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include <embedded/reports/export/writers/trackers.py.h>
#include "core/base/schema/flags.h"
#include "core/base/text/files.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "core/base/text/shell.h"
#include "reports/export/exporter.h"
#include "reports/results/user_python.h"

namespace howmany::reports {
namespace {

constexpr double kTimeout = 300;  // seconds: a database is made, perhaps in a network folder

std::string metric_name(const FeedRow& row, const FeedMetric& metric, const char* end) {
  return fmt::format("{}/{}{}_{}", row.evidence, metric.name, end, metric.unit);
}

// One point per number of devices: the best configuration.
nlohmann::json points_of(const Feed& feed) {
  nlohmann::json points = nlohmann::json::array();
  for (const FeedRow& row : feed.rows) {
    if (!row.best) continue;
    nlohmann::json metrics = nlohmann::json::object();
    for (const FeedMetric& metric : kFeedMetrics) {
      const auto found = row.values.find(&metric);
      if (found == row.values.end()) continue;
      metrics[metric_name(row, metric, "")] = found->second.value;
      if (found->second.low) metrics[metric_name(row, metric, "_low")] = *found->second.low;
      if (found->second.high) metrics[metric_name(row, metric, "_high")] = *found->second.high;
    }
    points.push_back({{"devices", row.devices}, {"metrics", metrics}});
  }
  return points;
}

nlohmann::json run_of(const Feed& feed) {
  nlohmann::json totals = nlohmann::json::object();
  for (const FeedAnswer& answer : feed.answers) {
    const std::string start = std::string(answer.evidence) + "/";
    if (answer.devices) totals[start + "recommended_devices"] = *answer.devices;
    if (answer.certain) totals[start + "certain"] = *answer.certain ? 1 : 0;
  }
  return {{"name", feed.model},
          {"because", feed.because},
          {"params", feed.params},
          {"tags", feed.tags},
          {"unix_seconds", number_or_null(feed.unix_seconds)},
          {"totals", totals},
          {"points", points_of(feed)}};
}

// Throws InputError that names the option.
nlohmann::json answer_of(const std::string& python, const PythonCall& call,
                         const std::string& option) {
  try {
    return run_python(python, call);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}: {}", option, python, error.what()));
  }
}

std::string write_runs(const char* library, const std::vector<Feed>& feeds,
                       const ExportTarget& target) {
  const std::string option = fmt::format("{} {}", flag::kExport.name, library);
  const std::vector<std::string> pythons = user_pythons(target.python);
  nlohmann::json runs = nlohmann::json::array();
  for (const Feed& feed : feeds) runs.push_back(run_of(feed));
  PythonCall call{.code = embedded::kTrackers,
                  .arguments = {library, std::filesystem::absolute(target.path).string()},
                  .timeout_seconds = kTimeout};
  call.input = dump_json_line(runs);
  for (const std::string& python : pythons) {
    const nlohmann::json answer = answer_of(python, call, option);
    const JsonNode root(answer, python);
    if (!root.at("found").boolean()) continue;
    if (const std::string problem = root.at("problem").string(); !problem.empty())
      throw InputError(fmt::format("{}: {}", option, without_full_stop(problem)));
    return root.at("done").string();
  }
  const std::string python = pythons.empty() ? "python3" : pythons.front();
  throw InputError(
      pythons.empty()
          ? fmt::format("{}: there is no {}; name your Python with {}", option,
                        target.python.empty() ? "python3 in PATH" : target.python,
                        flag::kPython.name)
          : fmt::format("{0}: {1} has no {2}; run {3} -m pip install {2}, or name another Python "
                        "with {4}",
                        option, fmt::join(pythons, " and "), library, shell_word(python),
                        flag::kPython.name));
}

}  // namespace

std::string export_mlflow(const std::vector<Feed>& feeds, const ExportTarget& target) {
  return write_runs("mlflow", feeds, target);
}

std::string export_wandb(const std::vector<Feed>& feeds, const ExportTarget& target) {
  return write_runs("wandb", feeds, target);
}

}  // namespace howmany::reports
