// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/schema/metrics.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "core/base/text/table.h"
#include "reports/script/script.h"

namespace howmany::reports {
namespace {

using Json = nlohmann::ordered_json;

Json row_json(const WorkersFacts& facts, const WorkersPoint& p) {
  const Metric rate = rate_of(p);
  const Metric stall = facts.shows_stall() ? stall_of(p) : Metric{kNaN, "ratio", {}, {}, 0, ""};
  const WorkersPoint* best = best_of(facts.points);
  Estimate ratio{kNaN, {}, 0, ""};
  if (best != nullptr && p.counts()) ratio = gain(facts.points, p, *best);
  const bool spread = ratio.interval && &p != best;
  return {{"workers", p.workers},
          {"own", p.own && facts.trains()},
          {"runs", p.rates.size()},
          {metric::kSamplesPerS, p.error.empty() ? number_or_null(rate.value) : Json()},
          {"samples_per_s_low", number_or_null(rate.low)},
          {"samples_per_s_high", number_or_null(rate.high)},
          {"of_best", number_or_null(ratio.value)},
          {"of_best_low", spread ? number_or_null(ratio.interval->low) : Json()},
          {"of_best_high", spread ? number_or_null(ratio.interval->high) : Json()},
          {metric::kStallFraction, number_or_null(stall.value)},
          {"stall_fraction_low", number_or_null(stall.low)},
          {"stall_fraction_high", number_or_null(stall.high)},
          {metric::kAloneSamplesPerS, number_or_null(p.alone)},
          {"wait_p95_s", number_or_null(p.wait_p95_s)},
          {metric::kFirstBatchS, number_or_null(p.first_batch_s)},
          {metric::kBytesPerWorker, number_or_null(p.bytes_per_worker)},
          {"failed", p.error}};
}

// Returns `otherwise` if the number is missing or negative.
double number_or(const JsonNode& node, const char* key, double otherwise = NAN) {
  const auto found = node.find(key);
  return found && found->number() >= 0 ? found->number() : otherwise;
}

// "0.98 (0.96 to 1.00)"
std::string ratio(const JsonNode& row) {
  const double value = number_or(row, "of_best");
  if (!std::isfinite(value)) return "-";
  const double low = number_or(row, "of_best_low"), high = number_or(row, "of_best_high");
  if (!std::isfinite(low) || !std::isfinite(high)) return fmt::format("{:.2f}", value);
  return fmt::format("{:.2f} ({:.2f} to {:.2f})", value, low, high);
}

int64_t workers_of(const JsonNode& row) { return row.at("workers").integer_between(0, 1 << 20); }

using Texts = std::vector<std::string>;

// Returns the cells of a row, without the mark at its end.
Texts cells(const JsonNode& row) {
  const double stall = number_or(row, metric::kStallFraction);
  const double bytes = number_or(row, metric::kBytesPerWorker);
  return {std::to_string(workers_of(row)),
          format_count(number_or(row, "runs", 1)),
          format_count(number_or(row, metric::kSamplesPerS)),
          ratio(row),
          std::isfinite(stall) ? format_percent(stall, 1) : "-",
          format_count(number_or(row, metric::kAloneSamplesPerS)),
          format_seconds(number_or(row, "wait_p95_s")),
          format_seconds(number_or(row, metric::kFirstBatchS)),
          std::isfinite(bytes) ? format_count(bytes) + "B" : "-"};
}

std::string curve(const JsonNode& answer, bool color) {
  const std::vector<JsonNode> rows = answer.at("table").items();
  std::vector<Texts> lines, kept(rows.size());
  for (const JsonNode& row : rows) lines.push_back(cells(row));
  std::vector<Table::Column> titles;
  size_t column = 0;
  for (const char* title : {"workers", "runs", "samples/s", "of the best", "stall", "alone",
                            "wait p95", "first batch", "memory/worker"}) {
    const size_t c = column++;
    const bool is_empty = std::ranges::all_of(lines, [&](auto& line) { return line[c] == "-"; });
    if (is_empty && !rows.empty()) continue;
    titles.push_back({title});
    for (size_t i = 0; i < rows.size(); ++i) kept[i].push_back(lines[i][c]);
  }
  titles.push_back({"", Table::Align::kLeft});
  Table table(titles);
  const auto recommended = answer.find("recommended");
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool chosen = recommended && recommended->integer() == workers_of(rows[i]);
    const bool failed = !rows[i].at("failed").string().empty();
    const auto own = rows[i].find("own");
    kept[i].emplace_back(chosen                  ? "<-"
                         : failed                ? "failed"
                         : own && own->boolean() ? "the script's"
                                                 : "");
    table.add(kept[i], chosen   ? Table::Style::kBold
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

}  // namespace

nlohmann::ordered_json to_json(const WorkersFacts& facts, const WorkersAdvice& advice) {
  Json demand, table = Json::array(), bounds = Json::array();
  if (facts.has_demand())
    demand = {{"samples_per_s_per_device", facts.asked.demand}, {"from", facts.demand_from}};
  for (const WorkersPoint& p : facts.points) table.push_back(row_json(facts, p));
  for (const WorkerBound& b : facts.bounds)
    bounds.push_back(
        {{"what", b.what}, {"most", b.most}, {"hard", b.hard}, {"because", b.because}});
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
                 {"bounds", bounds},
                 {"cold_samples_per_s", number_or_null(facts.cold_rate)},
                 {"pytorch", advice.pytorch},
                 {"slurm", advice.slurm},
                 {"table", table}};
  if (!facts.script.empty()) answer["script"] = facts.script;
  return answer;
}

std::string render_workers(const nlohmann::json& answer, const std::string& source, bool color) {
  const JsonNode root(answer, source);
  const auto paragraph = [](const std::string& text) {
    return wrapped(text, kTextWidth, 2) + "\n";
  };
  std::string text =
      styled(wrapped(root.at("because").string(), kTextWidth, 2), Table::Style::kBold, color) +
      "\n";
  for (const char* line : {"pytorch", "slurm"})
    if (const std::string value = root.at(line).string(); !value.empty())
      text += printable(value) + "\n";
  for (const std::string& note : root.at("notes").strings()) text += paragraph(note);
  const bool trained = root.at("as").string() == "script";
  const std::string legend = fmt::format(
      "In each round, every number of workers had one turn{}. \"of the best\" is the ratio of "
      "samples/s within rounds, with its 95 % interval; it decides.",
      trained ? " while the script trained" : "");
  return text + "\n" + curve(root, color) + paragraph(legend) + "\n" + bounds(root, color);
}

std::string workers_text(const Summary& summary, const std::string& path, const std::string& folder,
                         bool color) {
  const nlohmann::json& answer = summary.answer.at("workers");
  const bool own_command = answer.contains("as") && answer["as"] == "script";
  std::string note = own_command ? environment_note(summary) : "";
  if (!note.empty()) note = wrapped(note, kTextWidth, 2) + "\n";
  return fmt::format("{}{}Files: {}\n", render_workers(answer, path, color), note,
                     printable(folder));
}

}  // namespace howmany::reports
