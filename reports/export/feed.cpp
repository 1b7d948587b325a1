// SPDX-License-Identifier: Apache-2.0
#include "reports/export/feed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <set>

#include "core/base/schema/context.h"
#include "core/base/schema/flags.h"
#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/base/text/table.h"
#include "reports/predict/forecast.h"
#include "reports/predict/forecast_json.h"
#include "reports/results/cell.h"
#include "reports/results/device_kind.h"
#include "reports/results/plain_json.h"

namespace howmany::reports {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxName = 200, kMaxSentence = 1000;  // characters

const FeedMetric &kStep = kFeedMetrics[0], &kSamples = kFeedMetrics[1], &kBatches = kFeedMetrics[2],
                 &kSpeedup = kFeedMetrics[3], &kEfficiency = kFeedMetrics[4];

std::string text_in(const Json& json, const std::string& key, size_t most = kMaxName) {
  const Json& value = json_member(json, key);
  return value.is_string() ? shortened(without_controls(value.get<std::string>()), most) : "";
}

void add_text(std::map<std::string, std::string>& texts, const std::string& key,
              const std::string& text) {
  if (!text.empty()) texts[key] = shortened(without_controls(text), kMaxName);
}

std::optional<double> finite(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? value : std::nullopt;
}

void add_metric(const Measurement& m, const char* name, const FeedMetric& metric, FeedRow& row) {
  const auto found = m.metrics.find(name);
  if (found == m.metrics.end() || !std::isfinite(found->second.value)) return;
  row.values[&metric] = {found->second.value, finite(found->second.low),
                         finite(found->second.high)};
}

// Finds the measurement of a row of the answer's table.
bool is_of_row(const Measurement& m, const std::string& model, const FeedRow& row) {
  return m.suite == "speedup" && parameter_of(m, parameter::kModel) == model &&
         parameter_of(m, parameter::kMode) == row.mode &&
         parameter_of(m, parameter::kBackend) == row.backend &&
         count_of(m, parameter::kDevices) == row.devices &&
         std::max(1, count_of(m, parameter::kNodes)) == row.nodes;
}

int count_in(const Json& row, const char* key) {
  return static_cast<int>(std::clamp(json_number(row, key).value_or(1), 1.0, 1e9));
}

void add_measured(const std::vector<Measurement>& measurements, const std::string& model,
                  const Json& table, Feed& feed) {
  for (const Json& json : table) {
    FeedRow row{.evidence = name_of(Evidence::kMeasured),
                .devices = count_in(json, parameter::kDevices),
                .nodes = count_in(json, parameter::kNodes),
                .mode = json_text(json_member(json, parameter::kMode)),
                .backend = json_text(json_member(json, parameter::kBackend)),
                .best = json_member(json, "best") == true,
                .valid = json_member(json, "valid") == true};
    const auto found = std::ranges::find_if(
        measurements, [&](const Measurement& m) { return is_of_row(m, model, row); });
    if (found == measurements.end()) continue;
    add_metric(*found, metric::kMedianS, kStep, row);
    add_metric(*found, metric::kSamplesPerS, kSamples, row);
    add_metric(*found, "speedup", kSpeedup, row);
    add_metric(*found, "efficiency", kEfficiency, row);
    row.mode = shortened(without_controls(row.mode), kMaxName);
    row.backend = shortened(without_controls(row.backend), kMaxName);
    feed.rows.push_back(std::move(row));
  }
}

void add_number(const Json& json, const char* name, const std::string& end,
                const FeedMetric& metric, FeedRow& row) {
  if (const auto value = json_number(json, name))
    row.values[&metric] = {*value, json_number(json, end + "low"), json_number(json, end + "high")};
}

void add_beyond(const Json& beyond, Feed& feed) {
  bool any = false;
  for (const Evidence evidence : {Evidence::kRehearsed, Evidence::kPredicted}) {
    const Json& rows = json_member(beyond, name_of(evidence));
    if (!rows.is_array()) continue;
    for (const Json& json : rows) {
      FeedRow row{.evidence = name_of(evidence),
                  .devices = count_in(json, parameter::kDevices),
                  .mode = text_in(json, parameter::kMode),
                  .best = true,
                  .valid = true};
      add_number(json, metric::kSamplesPerS, "",
                 json_member(beyond, "rate_unit").is_null() ? kSamples : kBatches, row);
      add_number(json, "efficiency", "efficiency_", kEfficiency, row);
      if (row.values.empty()) continue;  // refused
      feed.rows.push_back(std::move(row));
      any = true;
    }
  }
  if (!any) return;
  feed.answers.push_back(
      {name_of(Evidence::kPredicted), json_number(beyond, "recommended"), std::nullopt});
  add_text(feed.params, "cluster", text_in(beyond, "cluster"));
}

std::string device_name(const Summary& summary, const Measurement& m) {
  if (device_kind(parameter_of(m, "device_list")) == DeviceKind::kCpu)
    return text_in(summary.context, context::kCpu);
  const Json& gpus = json_member(json_member(summary.context, "howmany_machine"), "gpus");
  const bool listed = gpus.is_array() && !gpus.empty() && gpus[0].is_string();
  return listed ? gpus[0].get<std::string>() : text_in(summary.context, context::kGpu);
}

void add_params(const Summary& summary, const std::string& model, Feed& feed) {
  add_text(feed.params, "model", model);
  const auto first = std::ranges::find_if(summary.measurements, [&](const Measurement& m) {
    return m.suite == "speedup" && parameter_of(m, parameter::kModel) == model;
  });
  if (first == summary.measurements.end()) return;
  for (const char* key : {parameter::kScaling, parameter::kBatchPerDevice, parameter::kGlobalBatch,
                          parameter::kPrecision, parameter::kTorch})
    if (key != parameter::kGlobalBatch || parameter_of(*first, parameter::kScaling) == "strong")
      add_text(feed.params, key, parameter_of(*first, key));
  add_text(feed.params, "device", device_name(summary, *first));
}

void add_texts_of_rows(Feed& feed) {
  std::set<int> counts;
  std::set<std::string> evidence;
  for (const FeedRow& row : feed.rows) {
    counts.insert(row.devices);
    evidence.insert(row.evidence);
  }
  add_text(feed.params, "device_counts", fmt::format("{}", fmt::join(counts, ",")));
  add_text(feed.tags, "evidence", fmt::format("{}", fmt::join(evidence, ",")));
}

std::optional<double> unix_seconds(const std::string& date) {
  std::tm parts = {};
  const char* const end = strptime(date.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return static_cast<double>(timegm(&parts));
}

void add_context(const Summary& summary, Feed& feed) {
  add_text(feed.tags, "version", text_in(summary.context, "howmany_version"));
  add_text(feed.tags, context::kCommit, text_in(summary.context, context::kCommit));
  feed.unix_seconds = unix_seconds(text_in(summary.context, "howmany_date"));
}

Feed feed_of_case(const Summary& summary, const Json& answer) {
  Feed feed{.model = text_in(answer, parameter::kModel),
            .because = text_in(answer, "because", kMaxSentence)};
  const std::string model = json_text(json_member(answer, parameter::kModel));
  add_params(summary, model, feed);
  add_text(feed.tags, "reason", text_in(answer, "reason"));
  const Json& certain = json_member(answer, "certain");
  FeedAnswer measured{name_of(Evidence::kMeasured), json_number(answer, "recommended"), {}};
  if (certain.is_boolean()) measured.certain = certain.get<bool>();
  feed.answers.push_back(measured);
  if (const Json& table = json_member(answer, "table"); table.is_array())
    add_measured(summary.measurements, model, table, feed);
  return feed;
}

bool counts(const FeedRow& row) { return row.best && !row.values.empty(); }

}  // namespace

std::vector<Feed> feeds_of(const Summary& summary) {
  std::vector<Feed> feeds;
  const Json& cases = json_member(json_member(summary.answer, "gpus"), "cases");
  if (cases.is_array())
    for (const Json& answer : cases) feeds.push_back(feed_of_case(summary, answer));
  const Json& beyond = json_member(summary.answer, "beyond");
  if (!feeds.empty()) {
    const auto same = std::ranges::find(feeds, text_in(beyond, "what"), &Feed::model);
    add_beyond(beyond, same == feeds.end() ? feeds.front() : *same);
  }
  std::erase_if(feeds, [](const Feed& feed) { return std::ranges::none_of(feed.rows, counts); });
  if (feeds.empty())
    throw InputError(fmt::format(
        "{}: there is nothing to export, because the answer has no valid row", flag::kExport.name));
  for (Feed& feed : feeds) {
    add_context(summary, feed);
    add_texts_of_rows(feed);
  }
  return feeds;
}

}  // namespace howmany::reports
