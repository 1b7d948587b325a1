// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/history_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/process.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"
#include "core/base/text/table.h"
#include "reports/regression/command.h"
#include "reports/regression/text.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMaxShownSteps = 8;
constexpr int64_t kMaxHistoryBytes = int64_t{512} << 20;

std::string git(const std::vector<std::string>& words) {
  std::vector<std::string> argv = {"/usr/bin/env", "git"};
  argv.insert(argv.end(), words.begin(), words.end());
  const ProcessResult ended = run_command({.argv = argv, .timeout_seconds = 120});
  if (!ended.ok()) throw InputError(fmt::format("git {}: {}", words[0], ended.describe()));
  return ended.out;
}

// Reads every *.jsonl of the branch without checking anything out.
std::vector<HistoryText> of_branch(const std::string& branch) {
  if (branch.empty() || branch[0] == '-') {
    throw InputError(fmt::format("git:{} is not a branch", branch));
  }
  std::vector<HistoryText> texts;
  const std::string list = git({"ls-tree", "-r", "--name-only", "-z", branch});
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find('\0', at), list.size());
    const std::string path = list.substr(at, end - at);
    if (path.ends_with(".jsonl")) {
      texts.push_back({branch + ":" + path, git({"show", branch + ":" + path})});
    }
    at = end + 1;
  }
  return texts;
}

std::vector<HistoryText> of_folder(const std::string& folder) {
  std::vector<std::string> paths;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().extension() == ".jsonl") {
      paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<HistoryText> texts;
  for (const std::string& path : paths) texts.push_back({path, read_text(path, kMaxHistoryBytes)});
  return texts;
}

std::vector<HistoryText> read_source(const std::string& source) {
  if (source.starts_with("git:")) return of_branch(source.substr(4));
  if (fs::is_directory(source)) return of_folder(source);
  return {{source, read_text(source, kMaxHistoryBytes)}};
}

// A commit's hash has 40 letters.
std::string commit(const HistoryPoint& point) { return shortened(point.commit, 44); }

std::string range(const Series& series, const LevelChange& step) {
  return commit(series.points[step.last_good]) + ".." + commit(series.points[step.first_bad]);
}

nlohmann::ordered_json to_json(const Series& series, const Finding& finding) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const LevelChange& step : finding.steps) {
    steps.push_back({{"after", series.points[step.last_good].commit},
                     {"not_later_than", series.points[step.first_bad].commit},
                     {"change", step.change},
                     {"p", step.p}});
  }
  return {{"benchmark", series.benchmark},
          {"metric", series.metric},
          {"points", series.points.size()},
          {"status", name_of(finding.status)},
          {"ratio_to_anchor", finding.level},
          {"drift", finding.drift},
          {"steps", steps}};
}

// Returns the drift or the steps of a finding, with the commits.
std::string details(const Series& series, const Finding& finding) {
  if (finding.status == Finding::Status::kDrift) {
    return fmt::format("{} from {} to {}", change_text(finding.drift, 1),
                       commit(series.points.front()), commit(series.points.back()));
  }
  std::string text;
  size_t shown = 0;
  for (const LevelChange& step : finding.steps) {
    if (++shown > kMaxShownSteps) continue;
    text += fmt::format("{}{} in {}", text.empty() ? "" : "; ", change_text(step.change, 1),
                        range(series, step));
  }
  if (shown > kMaxShownSteps) text += fmt::format("; {} more (--json)", shown - kMaxShownSteps);
  return text;
}

std::vector<std::string> table_row(const Series& series, const Finding& finding) {
  const std::string name =
      series.benchmark + (series.metric == "real_time" ? "" : " " + series.metric);
  return {name_of(finding.status), shortened(name, kNameWidth),
          std::to_string(series.points.size()), ratio_text(finding.level),
          details(series, finding)};
}

HistoryPoint point_from(const JsonNode& node) {
  const JsonNode ratio = node.at("ratio");
  HistoryPoint point{node.at("commit").string(), node.at("date").string(), ratio.number()};
  if (point.ratio <= 0) ratio.fail("is not above 0");
  return point;
}

}  // namespace

std::vector<Series> series_of(const std::vector<HistoryText>& texts) {
  std::map<std::pair<std::string, std::string>, std::vector<HistoryPoint>> points;
  for (const auto& [source, text] : texts) {
    size_t number = 0;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      const std::string line = text.substr(at, end - at);
      ++number;
      at = end + 1;
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      const std::string place = fmt::format("{}:{}", source, number);
      const nlohmann::json json = parse_json(line, place);
      const JsonNode node(json, place);
      points[{node.at("benchmark").string(), node.at("metric").string()}].push_back(
          point_from(node));
    }
  }
  std::vector<Series> all;
  for (auto& [name, of] : points) {
    std::ranges::stable_sort(of, {}, &HistoryPoint::date);
    all.push_back({name.first, name.second, std::move(of)});
  }
  return all;
}

int run_history(const HistoryArguments& arguments) {
  HistoryOptions options;
  if (!arguments.min_effect.empty()) {
    options.min_effect = parse_share("--min-effect", arguments.min_effect);
  }
  const std::vector<Series> all = series_of(read_source(arguments.source));
  if (all.empty()) throw InputError(fmt::format("{} holds no history (*.jsonl)", arguments.source));
  Table table({{"status", Table::Align::kLeft},
               {"benchmark", Table::Align::kLeft},
               {"points"},
               {"to anchor"},
               {"what and where", Table::Align::kLeft}});
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Series& series : all) {
    const Finding finding = analyse(series, options);
    if (arguments.json) {
      list.push_back(to_json(series, finding));
    } else {
      table.add(table_row(series, finding));
    }
  }
  fmt::print("{}", arguments.json ? dump_json({{"schema", "howmany.history/1"}, {"series", list}})
                                  : table.text());
  return 0;  // a history is too uncertain to fail a build
}

}  // namespace howmany::reports
