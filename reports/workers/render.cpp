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
#include "reports/workers/json.h"
#include "reports/workers/points.h"

namespace howmany::reports {
namespace {

using Json = nlohmann::ordered_json;

Json row_json(const WorkersFacts& facts, const WorkersPoint& p) {
  const double devices = facts.asked.devices;
  const Metric rate = rate_of(p), stall = stall_of(p);
  Json row = {{"workers", p.workers},
              {"runs", p.rates.size()},
              {metric::kSamplesPerS, p.error.empty() ? finite(rate.value) : Json()},
              {"samples_per_s_low", optional(rate.low)},
              {"samples_per_s_high", optional(rate.high)},
              {"samples_per_s_predicted",
               finite(devices * predicted_rate(facts.probes, facts.asked, p.workers))},
              {metric::kStallFraction, finite(stall.value)},
              {"stall_fraction_low", optional(stall.low)},
              {"stall_fraction_high", optional(stall.high)},
              {"stall_fraction_predicted", Json()},
              {"wait_p95_s", finite(p.wait_p95_s)},
              {metric::kFirstBatchS, finite(p.first_batch_s)},
              {metric::kBytesPerWorker, finite(p.bytes_per_worker)},
              {"failed", p.error}};
  if (facts.asked.demand > 0)
    row["stall_fraction_predicted"] = predicted_stall(facts.probes, facts.asked, p.workers);
  return row;
}

Json table_json(const WorkersFacts& facts) {
  Json table = Json::array();
  for (const WorkersPoint& p : facts.points) table.push_back(row_json(facts, p));
  return table;
}

Json stages_json(const LoaderProbes& p) {
  return {{metric::kSampleS, p.sample_s},
          {metric::kReadS, p.read_s},
          {"waiting_s", p.waiting_s},
          {metric::kDecodeS, p.decode_s},
          {metric::kTransformS, p.transform_s},
          {metric::kRestS, p.rest_s},
          {"collate_s", p.collate_s},
          {"handover_s", p.handover_s},
          {"batch_cv", finite(coefficient_of_batches(p))},
          {"cores", p.cores}};
}

// Returns `otherwise` if the number is missing or negative.
double number_or(const JsonNode& node, const char* key, double otherwise) {
  const auto found = node.find(key);
  return found && found->number() >= 0 ? found->number() : otherwise;
}

std::string interval(const JsonNode& row, const char* name) {
  const double low = number_or(row, (std::string(name) + "_low").c_str(), NAN);
  const double high = number_or(row, (std::string(name) + "_high").c_str(), NAN);
  if (!std::isfinite(low) || !std::isfinite(high)) return "-";
  return format_count(low) + " to " + format_count(high);
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
    {"95 % interval", [](const JsonNode& row) { return interval(row, metric::kSamplesPerS); }},
    {"gain", [](const JsonNode&) { return std::string(); }},  // see gain_column()
    {"predicted", [](const JsonNode& row) { return count_of(row, "samples_per_s_predicted"); }},
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

// The gain of each row over the one before that was measured.
std::vector<std::string> gain_column(const std::vector<JsonNode>& rows) {
  std::vector<std::string> texts;
  double before = NAN;
  for (const JsonNode& row : rows) {
    const double rate = number_or(row, metric::kSamplesPerS, NAN);
    const double gain = rate / before - 1;
    texts.push_back(std::isfinite(gain) ? (gain < 0 ? "" : "+") + format_percent(gain) : "-");
    if (std::isfinite(rate)) before = rate;
  }
  return texts;
}

std::vector<std::string> texts_of(const Column& column, const std::vector<JsonNode>& rows) {
  if (std::string_view(column.title) == "gain") return gain_column(rows);
  std::vector<std::string> texts;
  for (const JsonNode& row : rows) texts.push_back(column.text(row));
  return texts;
}

std::string curve(const JsonNode& answer, bool color) {
  const std::vector<JsonNode> rows = answer.at("table").items();
  std::vector<Table::Column> titles;
  std::vector<std::vector<std::string>> lines(rows.size());
  for (const Column& column : kColumns) {
    const std::vector<std::string> texts = texts_of(column, rows);
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

std::string stages(const JsonNode& answer) {
  const auto found = answer.find("stages");
  if (!found) return "";
  const JsonNode s = *found;
  std::string text =
      fmt::format("One worker, a sample: {}", format_seconds(number_or(s, metric::kSampleS, NAN)));
  const char* separator = ", of which ";
  for (const auto& [key, what] : {std::pair{metric::kReadS, "reading"},
                                  {metric::kDecodeS, "decoding"},
                                  {metric::kTransformS, "resizing and normalising"},
                                  {metric::kRestS, "the rest"}}) {
    const double seconds = number_or(s, key, 0);
    if (seconds <= 0) continue;
    text += fmt::format("{}{} {}", separator, what, format_seconds(seconds));
    const double waiting =
        key == std::string_view(metric::kReadS) ? number_or(s, "waiting_s", 0) : 0;
    if (waiting > 0) text += fmt::format(" ({} of it waiting)", format_seconds(waiting));
    separator = ", ";
  }
  text += fmt::format(". The loader itself: {} a sample. Batches vary by {}.",
                      format_seconds(number_or(s, "handover_s", NAN)),
                      format_percent(number_or(s, "batch_cv", 0)));
  return wrapped(text, kTextWidth, 2) + "\n";
}

std::string levers(const JsonNode& answer) {
  std::string text;
  for (const JsonNode& lever : answer.at("levers").items())
    text += fmt::format("  {:.2g} times the samples/s: {}\n", lever.at("gain").number(),
                        printable(lever.at("what").string()));
  return text.empty() ? "" : "Predicted gains:\n" + text;
}

std::string intervals(const JsonNode& answer) {
  const bool trained = answer.find("script") && answer.at("as").string() != "pytorch";
  return fmt::format(
      "Intervals are 95 %: where the median of as many new turns is expected. In each round, every "
      "number of workers had one turn{}.",
      trained ? " while the script trained" : "");
}

}  // namespace

nlohmann::ordered_json bounds_json(const std::vector<WorkerBound>& bounds) {
  Json all = Json::array();
  for (const WorkerBound& b : bounds)
    all.push_back({{"what", b.what}, {"most", b.most}, {"hard", b.hard}, {"because", b.because}});
  return all;
}

nlohmann::ordered_json to_json(const WorkersFacts& facts, const WorkersAdvice& advice) {
  Json levers = Json::array();
  for (const WorkersLever& l : advice.levers)
    levers.push_back({{"what", l.what}, {"gain", finite(l.gain)}});
  Json demand;
  if (facts.asked.demand > 0)
    demand = {{"samples_per_s_per_device", facts.asked.demand}, {"from", facts.demand_from}};
  return {{"recommended", advice.recommended ? Json(*advice.recommended) : Json()},
          {"reason", advice.reason},
          {"because", advice.because},
          {"certain", advice.certain},
          {"disturbed", advice.disturbed},
          {"feeds", facts.asked.demand > 0 ? Json(advice.feeds) : Json()},
          {"demand", demand},
          {"most_stall_fraction", facts.most_stall},
          {"devices", facts.asked.devices},
          {"batch", facts.asked.batch},
          {"prefetch", facts.asked.prefetch},
          {"as", facts.as},
          {"limit", advice.limit},
          {"notes", advice.notes},
          {"bounds", bounds_json(facts.bounds)},
          {"stages", stages_json(facts.probes)},
          {"cold_samples_per_s", optional(facts.cold_rate)},
          {"levers", levers},
          {"pytorch", advice.pytorch},
          {"slurm", advice.slurm},
          {"table", table_json(facts)}};
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
  const std::string more = stages(root) + levers(root);
  text += "\n" + curve(root, color) + "\n" + more + (more.empty() ? "" : "\n");
  return text + bounds(root, color) + wrapped(intervals(root), kTextWidth, 2) + "\n";
}

}  // namespace howmany::reports
