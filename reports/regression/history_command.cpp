#include "reports/regression/history_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/base/process.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"
#include "core/base/text/table.h"
#include "reports/regression/command.h"
#include "reports/regression/history.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kMaxHistoryBytes = int64_t{512} << 20;

struct Texts {
  std::vector<std::pair<std::string, std::string>> named;  // source, text
};

std::string git(const std::vector<std::string>& words) {
  std::vector<std::string> argv = {"/usr/bin/env", "git"};
  argv.insert(argv.end(), words.begin(), words.end());
  const Ended ended = run_command({.argv = argv, .timeout_seconds = 120});
  if (!ended.ok()) throw InputError(fmt::format("git {}: {}", words[0], ended.describe()));
  return ended.out;
}

// Reads every *.jsonl of the branch without checking anything out.
Texts of_branch(const std::string& branch) {
  if (branch.empty() || branch[0] == '-') {
    throw InputError(fmt::format("git:{} is not a branch", branch));
  }
  Texts texts;
  const std::string list = git({"ls-tree", "-r", "--name-only", "-z", branch});
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find('\0', at), list.size());
    const std::string path = list.substr(at, end - at);
    if (path.ends_with(".jsonl")) {
      texts.named.emplace_back(branch + ":" + path, git({"show", branch + ":" + path}));
    }
    at = end + 1;
  }
  return texts;
}

Texts of_folder(const std::string& folder) {
  std::vector<std::string> paths;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().extension() == ".jsonl") {
      paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  Texts texts;
  for (const std::string& path : paths)
    texts.named.emplace_back(path, read_text(path, kMaxHistoryBytes));
  return texts;
}

Texts read_source(const std::string& source) {
  if (source.starts_with("git:")) return of_branch(source.substr(4));
  if (fs::is_directory(source)) return of_folder(source);
  return {{{source, read_text(source, kMaxHistoryBytes)}}};
}

void merge(std::vector<Series>& all, std::vector<Series> more) {
  for (Series& series : more) {
    const auto known = std::find_if(all.begin(), all.end(), [&](const Series& one) {
      return one.benchmark == series.benchmark && one.metric == series.metric;
    });
    if (known == all.end()) {
      all.push_back(std::move(series));
    } else {
      known->points.insert(known->points.end(), series.points.begin(), series.points.end());
    }
  }
}

void put_in_order(Series& series) {
  std::stable_sort(series.points.begin(), series.points.end(),
                   [](const HistoryPoint& a, const HistoryPoint& b) { return a.date < b.date; });
}

std::string range(const Series& series, const LevelChange& step) {
  return series.points[step.last_good].commit + ".." + series.points[step.first_bad].commit;
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

std::string told(const Series& series, const Finding& finding) {
  if (finding.status == Finding::Status::kDrift) {
    return fmt::format("{:+.1f} % from {} to {}", 100 * finding.drift, series.points.front().commit,
                       series.points.back().commit);
  }
  std::string text;
  if (finding.status != Finding::Status::kStep) return text;
  for (const LevelChange& step : finding.steps) {
    text += fmt::format("{}{:+.1f} % in {}", text.empty() ? "" : "; ", 100 * step.change,
                        range(series, step));
  }
  return text;
}

}  // namespace

std::vector<Series> history_from_text(const std::string& text, const std::string& source) {
  std::map<std::pair<std::string, std::string>, Series> all;
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at),
                      place = fmt::format("{}:{}", source, ++number);
    at = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const nlohmann::json json = parse_json(line, place);
    const JsonNode node(json, place);
    const JsonNode ratio = node.at("ratio");
    const std::string benchmark = node.at("benchmark").string(),
                      metric = node.at("metric").string();
    const HistoryPoint point{node.at("commit").string(), node.at("date").string(), ratio.number()};
    if (point.ratio <= 0) ratio.fail("is not above 0");
    Series& series = all[{benchmark, metric}];
    series.benchmark = benchmark;
    series.metric = metric;
    series.points.push_back(point);
  }
  std::vector<Series> list;
  for (auto& [key, series] : all) list.push_back(std::move(series));
  return list;
}

int run_history(const HistoryArguments& arguments) {
  HistoryOptions options;
  if (!arguments.min_effect.empty()) {
    options.min_effect = parse_share("--min-effect", arguments.min_effect);
  }
  std::vector<Series> all;
  for (const auto& [source, text] : read_source(arguments.source).named) {
    merge(all, history_from_text(text, source));
  }
  if (all.empty()) throw InputError(fmt::format("{} holds no history (*.jsonl)", arguments.source));
  Table table({{"status", Table::Align::kLeft},
               {"benchmark", Table::Align::kLeft},
               {"points"},
               {"to anchor"},
               {"what and where", Table::Align::kLeft}});
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (Series& series : all) {
    put_in_order(series);
    const Finding finding = analyse(series, options);
    list.push_back(to_json(series, finding));
    table.add({name_of(finding.status),
               series.benchmark + (series.metric == "real_time" ? "" : " " + series.metric),
               std::to_string(series.points.size()), fmt::format("{:.3f}", finding.level),
               told(series, finding)});
  }
  fmt::print("{}", arguments.json ? dump_json({{"schema", "howmany.history/1"}, {"series", list}})
                                  : table.text());
  return 0;  // a history is too uncertain to fail a build
}

}  // namespace howmany::reports
