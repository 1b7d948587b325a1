// SPDX-License-Identifier: Apache-2.0
// Writes the answer as JSON, and text from that JSON alone, so that `howmany report` prints the
// same text as the measurement.
#include "reports/workers/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/schema/metrics.h"
#include "core/base/statistics.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "core/base/text/table.h"
#include "reports/workers/advise.h"
#include "reports/workers/points.h"

namespace howmany::reports {
namespace {

using Json = nlohmann::ordered_json;

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }
Json optional(const std::optional<double>& value) { return value ? finite(*value) : Json(); }

Json row_json(const WorkersFacts& facts, const WorkersPoint& p) {
  const double devices = facts.asked.devices;
  Json row = {{"workers", p.workers},
              {"runs", std::max<size_t>(1, p.runs.size())},
              {metric::kSamplesPerS, p.error.empty() ? finite(p.rate.value) : Json()},
              {"samples_per_s_low", optional(p.rate.low)},
              {"samples_per_s_high", optional(p.rate.high)},
              {metric::kBusyCores, p.busy.empty() ? Json() : finite(median(p.busy))},
              {"samples_per_s_predicted",
               finite(devices * predicted_rate(facts.probes, facts.asked, p.workers))},
              {metric::kStallFraction, p.stall ? finite(p.stall->value) : Json()},
              {"stall_fraction_low", p.stall ? optional(p.stall->low) : Json()},
              {"stall_fraction_high", p.stall ? optional(p.stall->high) : Json()},
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
  std::vector<const WorkersPoint*> order;
  for (const WorkersPoint& p : facts.points) order.push_back(&p);
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->workers < b->workers; });
  Json table = Json::array();
  for (const WorkersPoint* p : order) table.push_back(row_json(facts, *p));
  return table;
}

Json on_gpu_json(const WorkersFacts& facts) {
  Json runs = Json::array();
  for (const auto& run : facts.on_gpu)
    runs.push_back({{"workers", run.workers},
                    {metric::kSamplesPerS, finite(run.samples_per_s)},
                    {"share", finite(run.share)}});
  return runs;
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

std::string curve(const JsonNode& answer, bool color) {
  constexpr auto kLeft = Table::Align::kLeft;
  Table table({{"workers"},
               {"runs"},
               {"samples/s"},
               {"95 % interval"},
               {"gain"},
               {"predicted"},
               {"stall"},
               {"wait p95"},
               {"first batch"},
               {"memory/worker"},
               {"", kLeft}});
  const auto recommended = answer.find("recommended");
  double before = NAN;
  for (const JsonNode& row : answer.at("table").items()) {
    const int64_t workers = row.at("workers").integer_between(0, 1 << 20);
    const double rate = number_or(row, metric::kSamplesPerS, NAN);
    const bool chosen = recommended && recommended->integer() == workers;
    const std::string failed = row.at("failed").string();
    const double gain = rate / before - 1;
    table.add({std::to_string(workers), format_count(number_or(row, "runs", 1)), format_count(rate),
               interval(row, metric::kSamplesPerS),
               std::isfinite(gain) ? (gain < 0 ? "" : "+") + format_percent(gain) : "-",
               format_count(number_or(row, "samples_per_s_predicted", NAN)),
               share(number_or(row, metric::kStallFraction, NAN)),
               format_seconds(number_or(row, "wait_p95_s", NAN)),
               format_seconds(number_or(row, metric::kFirstBatchS, NAN)),
               format_count(number_or(row, metric::kBytesPerWorker, NAN)) + "B",
               chosen            ? "<-"
               : !failed.empty() ? "failed"
                                 : ""},
              chosen            ? Table::Style::kBold
              : !failed.empty() ? Table::Style::kDim
                                : Table::Style::kPlain);
    if (std::isfinite(rate)) before = rate;
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
  const JsonNode s = answer.at("stages");
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
  return text + fmt::format(". The loader itself: {} a sample. Batches vary by {}.",
                            format_seconds(number_or(s, "handover_s", NAN)),
                            format_percent(number_or(s, "batch_cv", 0)));
}

std::string levers(const JsonNode& answer) {
  std::string text;
  for (const JsonNode& lever : answer.at("levers").items())
    text += fmt::format("  {:.2g} times the samples/s: {}\n", lever.at("gain").number(),
                        printable(lever.at("what").string()));
  return text.empty() ? "" : "Predicted gains:\n" + text;
}

}  // namespace

nlohmann::ordered_json to_json(const WorkersFacts& facts, const WorkersAdvice& advice) {
  Json bounds = Json::array(), levers = Json::array();
  for (const WorkerBound& b : facts.bounds)
    bounds.push_back(
        {{"what", b.what}, {"most", b.most}, {"hard", b.hard}, {"because", b.because}});
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
          {"python", facts.python.measured() ? to_json(facts.python) : Json()},
          {"limit", advice.limit},
          {"notes", advice.notes},
          {"bounds", bounds},
          {"stages", stages_json(facts.probes)},
          {"cold_samples_per_s", optional(facts.cold_rate)},
          {"decoded_on_gpu", on_gpu_json(facts)},
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
  text +=
      "\n" + curve(root, color) + "\n" + wrapped(stages(root), kTextWidth, 2) + "\n" + levers(root);
  return text + "\n" + bounds(root, color) +
         wrapped(
             "Intervals are 95 %. With several runs, the interval is where the median of as many "
             "new "
             "runs is expected. With one run, and for the stall, it is computed from time slices "
             "of the run and does not include differences between runs.",
             kTextWidth, 2) +
         "\n";
}

}  // namespace howmany::reports
