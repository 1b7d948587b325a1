// SPDX-License-Identifier: Apache-2.0
#include "reports/why/why.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "core/base/schema/parameters.h"
#include "core/base/schema/samples.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "core/base/text/table.h"
#include "reports/results/device_kind.h"
#include "reports/why/help.h"
#include "reports/why/model_parts.h"
#include "reports/why/parts.h"

namespace howmany::reports {
namespace {

// One count of the answer.
struct WhyRow {
  CountParts parts;
  std::vector<Help> helps;
  std::string noun;  // of a device
};

std::optional<StepEvidence> evidence_of(const BenchRun& run) {
  const nlohmann::json& json = run.samples.json;
  if (!json.is_object() || !json.contains(sample_line::kWhy)) return std::nullopt;
  return evidence_from(json[sample_line::kWhy], sample_line::kWhy);
}

std::map<int, StepEvidence> rounds_with_evidence(const Results& results, size_t configuration) {
  std::map<int, StepEvidence> rounds;
  for (const BenchRun& run : results.runs) {
    if (run.configuration != configuration || run.samples.seconds.empty()) continue;
    if (auto one = evidence_of(run)) rounds.insert_or_assign(run.round, std::move(*one));
  }
  return rounds;
}

bool was_measured(const Results& results, size_t configuration) {
  return std::ranges::any_of(results.runs, [&](const BenchRun& run) {
    return run.configuration == configuration && !run.samples.seconds.empty();
  });
}

// The measurements have the configurations of the plan.
std::vector<RowEvidence> script_rows(const Plan& plan, const Results& results,
                                     const Summary& summary) {
  const std::vector<Configuration> all = configurations(plan.request);
  std::vector<RowEvidence> rows;
  for (size_t i = 0; i < std::min(all.size(), summary.measurements.size()); ++i) {
    if (all[i].is_rehearsal() || !was_measured(results, i)) continue;
    const Measurement& m = summary.measurements[i];
    RowEvidence row{all[i].devices,
                    all[i].model,
                    parameter_of(m, parameter::kMode),
                    parameter_of(m, parameter::kBackend),
                    all[i].mode == "single",
                    {}};
    for (auto& [round, evidence] : rounds_with_evidence(results, i))
      row.rounds.push_back(std::move(evidence));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string noun_in(const Summary& summary) {
  std::string devices;
  for (const Measurement& m : summary.measurements)
    if (std::string list = parameter_of(m, "device_list"); list.size() > devices.size())
      devices = std::move(list);
  return std::string(noun_of(device_kind(devices)));
}

std::string exchange_detail(const CountParts& parts) {
  if (parts.bytes == 0) return "";
  const std::string bytes = format_gigabytes(parts.bytes);
  return parts.buckets == 0 ? bytes
                            : fmt::format("{} in {}", bytes, number(parts.buckets, "bucket"));
}

std::string slowest_detail(const Slowest& slowest) {
  if (slowest.rank < 0) return "";
  if (!slowest.always()) return "not always the same rank";
  return fmt::format("rank {} takes {} longer", slowest.rank, format_seconds(slowest.extra));
}

std::string compute_detail(const CountParts& parts) {
  const double own = parts.of(LossPart::kCompute).seconds;
  if (parts.threads.value > own / 2) return "more threads than cores";
  return parts.remainder ? "what the other parts leave" : "";
}

std::string detail_of(const CountParts& parts, LossPart part) {
  switch (part) {
    case LossPart::kExchange:
      return exchange_detail(parts);
    case LossPart::kSlowest:
      return slowest_detail(parts.slowest);
    case LossPart::kCompute:
      return compute_detail(parts);
    default:
      return "";
  }
}

std::string signed_seconds(double seconds) {
  return seconds < 0 ? "-" + format_seconds(-seconds) : format_seconds(seconds);
}

// "4.10 ms waiting for data (3.90 ms on one device too)"
std::string part_text(const CountParts& parts, const Lost& lost) {
  std::vector<std::string> details;
  if (std::string detail = detail_of(parts, lost.part); !detail.empty())
    details.push_back(std::move(detail));
  if (parts.devices > 1 && lost.part != LossPart::kRest && lost.on_one > lost.seconds / 10)
    details.push_back(format_seconds(lost.on_one) + " on one device too");
  const std::string tail = details.empty() ? "" : fmt::format(" ({})", fmt::join(details, ", "));
  return fmt::format("{} {}{}", signed_seconds(lost.seconds), word_of(lost.part), tail);
}

std::string where_of(const WhyRow& row) {
  return row.parts.mode == "single" || row.parts.mode.empty()
             ? number(row.parts.devices, row.noun)
             : fmt::format("{} with {}", number(row.parts.devices, row.noun), row.parts.mode);
}

// Returns the sentence of a count that loses nothing.
std::string nothing_lost(const WhyRow& row) {
  return row.parts.devices > 1 ? fmt::format("{} lose nothing of a step of {} against one device.",
                                             where_of(row), format_seconds(row.parts.step))
                               : fmt::format("{} loses nothing of a step of {}.", where_of(row),
                                             format_seconds(row.parts.step));
}

std::string because_of(const WhyRow& row) {
  const CountParts& parts = row.parts;
  if (!parts.refused.empty())
    return fmt::format("No cause is named for {}: {}.", where_of(row), parts.refused);
  if (parts.lost() <= 0) return nothing_lost(row);
  std::vector<std::string> texts;
  for (const Lost& lost : parts.parts)
    if (lost.part != LossPart::kRest || texts.empty() || lost.seconds != 0)
      texts.push_back(part_text(parts, lost));
  return fmt::format("{} {} {} of a step of {} ({}){}: {}.{}", where_of(row),
                     parts.devices > 1 ? "lose" : "loses", format_seconds(parts.lost()),
                     format_seconds(parts.step), format_percent(parts.lost() / parts.step),
                     parts.devices > 1 ? " against one device" : "", fmt::join(texts, ", "),
                     cause_of(parts) == nullptr ? " No part is a cause: each is below 5 % of the "
                                                  "step or within its error."
                                                : "");
}

nlohmann::ordered_json parts_json(const CountParts& count) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Lost& lost : count.parts)
    all.push_back({{"part", name_of(lost.part)},
                   {"seconds", lost.seconds},
                   {"error_s", lost.error},
                   {"share", count.step > 0 ? lost.seconds / count.step : 0},
                   {"seconds_on_one", lost.on_one}});
  return all;
}

nlohmann::ordered_json helps_json(const std::vector<Help>& helps) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Help& help : helps)
    all.push_back({{"what", help.what},
                   {"gain_s", help.gain},
                   {"error_s", help.error},
                   {"evidence", help.measured ? "measured" : "replayed"},
                   {"paste", help.paste}});
  return all;
}

nlohmann::ordered_json exchange_json(const CountParts& parts) {
  if (parts.bytes == 0) return nullptr;
  return {{"bytes", parts.bytes},
          {"buckets", parts.buckets},
          {"last_bucket_bytes", parts.last_bucket_bytes}};
}

nlohmann::ordered_json slowest_json(const Slowest& slowest) {
  if (slowest.rank < 0) return nullptr;
  return {{"rank", slowest.rank},
          {"extra_s", slowest.extra},
          {"share", slowest.share},
          {"because", name_of(slowest.because)}};
}

nlohmann::ordered_json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

nlohmann::ordered_json count_json(const WhyRow& row) {
  const CountParts& parts = row.parts;
  const Lost* const cause = cause_of(parts);
  return {{"devices", parts.devices},
          {"model", parts.model},
          {"mode", parts.mode},
          {"backend", parts.backend},
          {"because", because_of(row)},
          {"step_s", parts.step},
          {"ideal_s", parts.ideal},
          {"lost_s", parts.lost()},
          {"parts", parts_json(parts)},
          {"cause", text_or_null(cause == nullptr ? "" : name_of(cause->part))},
          {"exchange", exchange_json(parts)},
          {"slowest", slowest_json(parts.slowest)},
          {"threads_s", parts.threads.value},
          {"refused", text_or_null(parts.refused)},
          {"help", helps_json(row.helps)}};
}

// Returns the row with the most devices; of several, the one with the shortest step.
const WhyRow& largest(const std::vector<WhyRow>& rows) {
  return *std::ranges::max_element(rows, [](const WhyRow& a, const WhyRow& b) {
    return std::pair(a.parts.devices, -a.parts.step) < std::pair(b.parts.devices, -b.parts.step);
  });
}

nlohmann::ordered_json answer_json(const std::vector<WhyRow>& rows,
                                   const nlohmann::ordered_json& recording) {
  if (rows.empty()) return nullptr;
  nlohmann::ordered_json counts = nlohmann::ordered_json::array();
  for (const WhyRow& row : rows) counts.push_back(count_json(row));
  return {{"because", because_of(largest(rows))},
          {"recording", recording},
          {"counts", std::move(counts)}};
}

nlohmann::ordered_json script_json(const Plan& plan, const Results& results,
                                   const Summary& summary) {
  const std::vector<RowEvidence> evidence = script_rows(plan, results, summary);
  double recording = 0;
  bool any = false;
  for (const RowEvidence& row : evidence)
    for (const StepEvidence& e : row.rounds) {
      any = true;
      recording = std::max(recording, e.recording);
    }
  if (!any) return nullptr;
  const std::vector<CountParts> parts = parts_of(evidence);
  std::vector<WhyRow> rows;
  for (size_t i = 0; i < parts.size(); ++i)
    rows.push_back({parts[i], help_for(parts[i], evidence[i]), noun_in(summary)});
  return answer_json(rows, recording);
}

nlohmann::ordered_json models_json(const Plan& plan, const Results& results,
                                   const Summary& summary) {
  std::vector<WhyRow> rows;
  for (const CountParts& parts : parts_of_models(plan, results))
    rows.push_back({parts, {}, noun_in(summary)});
  return answer_json(rows, nullptr);
}

constexpr size_t kBestHelps = 3;

constexpr std::pair<const char*, const char*> kHelpWords[] = {
    {"more_workers", "more loader workers"},
    {"persistent_workers", "loader workers that persist"},
    {"larger_batch", "one exchange for two batches"},
    {"fewer_buckets", "fewer gradient buckets"},
    {"more_buckets", "more gradient buckets"},
    {"bucket_view", "gradients as views of buckets"},
    {"bf16_gradients", "an exchange in bfloat16"},
    {"fewer_threads", "fewer threads"},
    {"faster_link", "a faster link"},
    {"less_outside", "less work outside of steps"},
    {"equal_ranks", "equal ranks"}};

std::string help_word(const std::string& what) {
  for (const auto& [name, word] : kHelpWords)
    if (what == name) return word;
  return what;
}

// "  saves 3.10 ms of a step (replayed): more loader workers" and the line to paste.
std::string help_text(const JsonNode& help) {
  return fmt::format(
      "  {} of a step ({}): {}\n    {}\n", format_seconds(help.at("gain_s").number()),
      printable(help.at("evidence").string()), printable(help_word(help.at("what").string())),
      printable(help.at("paste").string()));
}

std::string helps_text(const JsonNode& count, bool whole) {
  std::string text;
  size_t shown = 0;
  for (const JsonNode& help : count.at("help").items()) {
    if (!whole && shown++ == kBestHelps) break;
    text += help_text(help);
  }
  return text.empty() ? "" : "Would help:\n" + text;
}

// Returns the indices of the counts to show.
std::vector<size_t> shown_counts(const std::vector<JsonNode>& counts, bool whole) {
  std::map<std::string, size_t> largest_of_model;
  std::vector<size_t> shown;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (whole) shown.push_back(i);
    const auto [place, fresh] = largest_of_model.emplace(counts[i].at("model").string(), i);
    const JsonNode& best = counts[place->second];
    const auto key = [](const JsonNode& count) {
      return std::pair(count.at("devices").number(), -count.at("step_s").number());
    };
    if (!fresh && key(counts[i]) > key(best)) place->second = i;
  }
  if (!whole)
    for (const auto& [model, i] : largest_of_model) shown.push_back(i);
  std::ranges::sort(shown);
  return shown;
}

std::string recording_text(const JsonNode& root) {
  const auto recording = root.find("recording");
  if (!recording) return "";
  return fmt::format("Recording cost {} of a step.\n", format_percent(recording->number(), 2));
}

}  // namespace

nlohmann::ordered_json why_json(const Plan& plan, const Results& results, const Summary& summary) {
  try {
    return plan.request.script.given() ? script_json(plan, results, summary)
                                       : models_json(plan, results, summary);
  } catch (const InputError& why) {
    return {{"because", fmt::format("No cause is named: {}.", without_full_stop(why.what()))},
            {"recording", nullptr},
            {"counts", nlohmann::ordered_json::array()}};
  }
}

std::string why_text(const nlohmann::json& answer, bool whole, bool color) {
  if (answer.is_null()) return "";
  const JsonNode root(answer, "answer.why");
  const std::vector<JsonNode> counts = root.at("counts").items();
  const auto paragraph = [&](const std::string& sentence) {
    return styled(wrapped("Why: " + sentence, kTextWidth, 2), Table::Style::kBold, color) + "\n";
  };
  if (counts.empty()) return paragraph(root.at("because").string());
  std::string text;
  for (const size_t i : shown_counts(counts, whole)) {
    if (whole && !text.empty()) text += "\n";
    text += paragraph(counts[i].at("because").string()) + helps_text(counts[i], whole);
  }
  return text + (whole && root.find("recording") ? "\n" : "") + recording_text(root);
}

}  // namespace howmany::reports
