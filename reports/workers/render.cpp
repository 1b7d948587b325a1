// SPDX-License-Identifier: Apache-2.0
// Writes the answer as JSON, and text from that JSON alone, so that `howmany report` prints the
// same text as the measurement.
#include "reports/workers/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/schema/metrics.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "core/base/text/table.h"
#include "reports/workers/advise.h"
#include "reports/workers/compare.h"
#include "reports/workers/points.h"

namespace howmany::reports {
namespace {

using Json = nlohmann::ordered_json;

// Null unless the value is finite.
Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }
Json optional(const std::optional<double>& value) { return value ? finite(*value) : Json(); }

// The ratio to the best number, within rounds.
Estimate of_best(const WorkersPoints& points, const WorkersPoint& p) {
  const WorkersPoint* best = best_of(points);
  if (best == nullptr || !p.counts()) return {kNaN, {}, 0, ""};
  return gain(points, p, *best);
}

Json row_json(const WorkersFacts& facts, const WorkersPoint& p) {
  const Metric rate = rate_of(p);
  const Metric stall = facts.shows_stall() ? stall_of(p) : Metric{kNaN, "ratio", {}, {}, 0, ""};
  const Estimate ratio = of_best(facts.points, p);
  const bool spread = ratio.interval && p.workers != best_of(facts.points)->workers;
  return {{"workers", p.workers},
          {"own", p.own && facts.trains()},
          {"runs", p.rates.size()},
          {metric::kSamplesPerS, p.error.empty() ? finite(rate.value) : Json()},
          {"samples_per_s_low", optional(rate.low)},
          {"samples_per_s_high", optional(rate.high)},
          {"of_best", finite(ratio.value)},
          {"of_best_low", spread ? finite(ratio.interval->low) : Json()},
          {"of_best_high", spread ? finite(ratio.interval->high) : Json()},
          {metric::kStallFraction, finite(stall.value)},
          {"stall_fraction_low", optional(stall.low)},
          {"stall_fraction_high", optional(stall.high)},
          {metric::kAloneSamplesPerS, finite(p.alone)},
          {"wait_p95_s", finite(p.wait_p95_s)},
          {metric::kFirstBatchS, finite(p.first_batch_s)},
          {metric::kBytesPerWorker, finite(p.bytes_per_worker)},
          {"failed", p.error}};
}

Json bounds_json(const std::vector<WorkerBound>& bounds) {
  Json all = Json::array();
  for (const WorkerBound& b : bounds)
    all.push_back({{"what", b.what}, {"most", b.most}, {"hard", b.hard}, {"because", b.because}});
  return all;
}

// Returns `otherwise` if the number is missing or negative.
double number_or(const JsonNode& node, const char* key, double otherwise) {
  const auto found = node.find(key);
  return found && found->number() >= 0 ? found->number() : otherwise;
}

// "0.98 (0.96 to 1.00)"
std::string ratio(const JsonNode& row) {
  const double value = number_or(row, "of_best", NAN);
  if (!std::isfinite(value)) return "-";
  const double low = number_or(row, "of_best_low", NAN), high = number_or(row, "of_best_high", NAN);
  if (!std::isfinite(low) || !std::isfinite(high)) return fmt::format("{:.2f}", value);
  return fmt::format("{:.2f} ({:.2f} to {:.2f})", value, low, high);
}

std::string share(double value) { return std::isfinite(value) ? format_percent(value, 1) : "-"; }

std::string count_of(const JsonNode& row, const char* key) {
  return format_count(number_or(row, key, NAN));
}

std::string seconds_of(const JsonNode& row, const char* key) {
  return format_seconds(number_or(row, key, NAN));
}

int64_t workers_of(const JsonNode& row) { return row.at("workers").integer_between(0, 1 << 20); }

struct Column {
  const char* title;
  std::string (*text)(const JsonNode& row);
};

const std::vector<Column> kColumns = {
    {"workers", [](const JsonNode& row) { return std::to_string(workers_of(row)); }},
    {"runs", [](const JsonNode& row) { return format_count(number_or(row, "runs", 1)); }},
    {"samples/s", [](const JsonNode& row) { return count_of(row, metric::kSamplesPerS); }},
    {"of the best", ratio},
    {"stall",
     [](const JsonNode& row) { return share(number_or(row, metric::kStallFraction, NAN)); }},
    {"alone", [](const JsonNode& row) { return count_of(row, metric::kAloneSamplesPerS); }},
    {"wait p95", [](const JsonNode& row) { return seconds_of(row, "wait_p95_s"); }},
    {"first batch", [](const JsonNode& row) { return seconds_of(row, metric::kFirstBatchS); }},
    {"memory/worker",
     [](const JsonNode& row) {
       const std::string bytes = count_of(row, metric::kBytesPerWorker);
       return bytes == "-" ? bytes : bytes + "B";
     }},
};

std::string curve(const JsonNode& answer, bool color) {
  const std::vector<JsonNode> rows = answer.at("table").items();
  std::vector<Table::Column> titles;
  std::vector<std::vector<std::string>> lines(rows.size());
  for (const Column& column : kColumns) {
    std::vector<std::string> texts;
    for (const JsonNode& row : rows) texts.push_back(column.text(row));
    if (!rows.empty() && std::ranges::all_of(texts, [](auto& text) { return text == "-"; }))
      continue;
    titles.push_back({column.title});
    for (size_t i = 0; i < rows.size(); ++i) lines[i].push_back(texts[i]);
  }
  titles.push_back({"", Table::Align::kLeft});
  Table table(titles);
  const auto recommended = answer.find("recommended");
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool chosen = recommended && recommended->integer() == workers_of(rows[i]);
    const bool failed = !rows[i].at("failed").string().empty();
    const auto own = rows[i].find("own");
    lines[i].emplace_back(chosen                  ? "<-"
                          : failed                ? "failed"
                          : own && own->boolean() ? "the script's"
                                                  : "");
    table.add(lines[i], chosen   ? Table::Style::kBold
                        : failed ? Table::Style::kDim
                                 : Table::Style::kPlain);
  }
  return table.text(color);
}

std::string bounds(const JsonNode& answer, bool color) {
  Table table({{"bound", Table::Align::kLeft}, {"workers"}, {"because", Table::Align::kLeft}});
  for (const JsonNode& bound : answer.at("bounds").items())
    table.add(
        {bound.at("what").string(),
         (bound.at("hard").boolean() ? "" : "about ") + std::to_string(bound.at("most").integer()),
         bound.at("because").string()});
  return table.text(color);
}

std::string legend(const JsonNode& answer) {
  const bool trained = answer.at("as").string() == "script";
  return fmt::format(
      "In each round, every number of workers had one turn{}. \"of the best\" is the ratio of "
      "samples/s within rounds, with its 95 % interval; it decides.",
      trained ? " while the script trained" : "");
}

}  // namespace

nlohmann::ordered_json to_json(const WorkersFacts& facts, const WorkersAdvice& advice) {
  Json demand, table = Json::array();
  if (facts.has_demand())
    demand = {{"samples_per_s_per_device", facts.asked.demand}, {"from", facts.demand_from}};
  for (const WorkersPoint& p : facts.points) table.push_back(row_json(facts, p));
  Json answer = {{"recommended", advice.recommended ? Json(*advice.recommended) : Json()},
                 {"reason", advice.reason},
                 {"because", advice.because},
                 {"certain", advice.certain},
                 {"disturbed", advice.disturbed},
                 {"feeds", facts.shows_stall() ? Json(advice.feeds) : Json()},
                 {"demand", demand},
                 {"most_stall_fraction", facts.max_stall},
                 {"devices", facts.asked.devices},
                 {"batch", facts.asked.batch},
                 {"prefetch", facts.asked.prefetch},
                 {"as", facts.as},
                 {"notes", advice.notes},
                 {"bounds", bounds_json(facts.bounds)},
                 {"cold_samples_per_s", optional(facts.cold_rate)},
                 {"pytorch", advice.pytorch},
                 {"slurm", advice.slurm},
                 {"table", table}};
  if (!facts.script.empty()) answer["script"] = facts.script;
  return answer;
}

std::string render_workers(const nlohmann::json& answer, const std::string& source, bool color) {
  const JsonNode root(answer, source);
  std::string text =
      styled(wrapped(root.at("because").string(), kTextWidth, 2), Table::Style::kBold, color) +
      "\n";
  for (const char* line : {"pytorch", "slurm"})
    if (const std::string value = root.at(line).string(); !value.empty())
      text += printable(value) + "\n";
  for (const std::string& note : root.at("notes").strings())
    text += wrapped(note, kTextWidth, 2) + "\n";
  text += "\n" + curve(root, color) + wrapped(legend(root), kTextWidth, 2) + "\n\n";
  return text + bounds(root, color);
}

}  // namespace howmany::reports
