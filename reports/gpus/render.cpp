// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/schema/marks.h"
#include "core/base/schema/parameters.h"
#include "core/base/text/format.h"
#include "core/base/text/shell.h"
#include "core/base/text/table.h"
#include "reports/gpus/beyond.h"
#include "reports/gpus/one_node.h"
#include "reports/gpus/step_parts.h"
#include "reports/results/device_kind.h"
#include "reports/results/plain_json.h"
#include "reports/why/why.h"

namespace howmany::reports {
namespace {

using Style = Table::Style;

std::string note(const Point& point) {
  if (point.has_flag("failed")) return "failed";
  if (point.has_flag(mark::kRehearsal)) return mark::kRehearsal;
  if (point.has_flag(mark::kOversubscribed)) return mark::kOversubscribed;
  if (point.has_flag(mark::kShortOfCores)) return mark::kShortOfCores;
  for (const std::string& flag : point.flags) {
    if (flag.ends_with(" rounds")) return flag;
  }
  return "";
}

std::string interval(const Metric& metric) {
  if (!metric.low || !metric.high) return "-";
  return format_ratio(*metric.low) + " to " + format_ratio(*metric.high);
}

std::string table(const Advice& advice, const AdviceOptions& asked, bool color) {
  constexpr auto kLeft = Table::Align::kLeft;
  // The tensors of a device; for a script on CPUs, its whole process.
  const bool counted = std::ranges::any_of(
      advice.points, [](const Point& p) { return std::isfinite(p.peak_bytes); });
  const bool across =
      std::ranges::any_of(advice.points, [](const Point& p) { return p.nodes > 1; });
  std::vector<Table::Column> columns = {
      {"devices"},     {"mode", kLeft},   {"backend", kLeft},
      {"step"},        {"samples/s"},     {"speedup"},
      {"efficiency"},  {"95 % interval"}, {format_count(asked.samples_to_train) + " samples"},
      {"device-hours"}};
  if (counted) columns.push_back({"memory"});
  if (across) columns.insert(columns.begin(), {"nodes"});
  columns.push_back({"", kLeft});
  Table table(columns);
  for (const Point& p : advice.points) {
    const bool chosen = p.best && advice.recommended == p.devices;
    const double seconds = asked.samples_to_train / p.samples_per_s;
    const bool baseline = p.mode == "single";
    std::vector<std::string> cells = {std::to_string(p.devices),
                                      p.mode,
                                      p.backend,
                                      format_seconds(p.step_seconds),
                                      format_count(p.samples_per_s),
                                      format_ratio(p.speedup.value),
                                      format_ratio(p.efficiency.value),
                                      baseline ? "baseline" : interval(p.efficiency),
                                      format_seconds(seconds),
                                      format_hours(seconds * p.devices / 3600)};
    if (counted) cells.push_back(format_gigabytes(p.peak_bytes));
    if (across) cells.insert(cells.begin(), std::to_string(p.nodes));
    cells.push_back(chosen ? "<- " + note(p) : note(p));
    table.add(cells, chosen ? Style::kBold : p.valid ? Style::kPlain : Style::kDim);
  }
  return table.text(color);
}

// The first measurement of a model, and the longest of its device lists.
struct ModelFacts {
  const Measurement* first = nullptr;
  std::string devices;
};
using Facts = std::map<std::string, ModelFacts>;

Facts facts_of(const Summary& summary) {
  Facts facts;
  for (const Measurement& m : summary.measurements) {
    const auto model = m.parameters.find(parameter::kModel);
    if (model == m.parameters.end()) continue;
    ModelFacts& one = facts[model->second];
    if (one.first == nullptr) one.first = &m;
    if (std::string list = parameter_of(m, "device_list"); list.size() > one.devices.size())
      one.devices = std::move(list);
  }
  return facts;
}

std::string script_caption(const Measurement& m, const Advice& advice) {
  const std::string scaling = parameter_of(m, parameter::kScaling);
  const std::string batch = parameter_of(m, parameter::kGlobalBatch);
  const std::string threads = parameter_of(m, parameter::kThreads);
  const std::string start = advice.model + ", your own script";
  if (batch.empty()) return start;
  const std::string kind = scaling == "neither" ? ", neither weak nor strong scaling"
                           : scaling.empty()    ? ""
                                                : ", " + scaling + " scaling";
  return fmt::format("{}{}, {} samples per step on 1 device, {} CPU thread(s) per rank", start,
                     kind, batch, threads);
}

// Describes the measurement, so that the table is readable without the command line.
std::string caption(const Facts& facts, const Advice& advice) {
  const auto found = facts.find(advice.model);
  if (found == facts.end()) return advice.model;
  const Measurement* const m = found->second.first;
  if (!parameter_of(*m, parameter::kScript).empty()) return script_caption(*m, advice);
  const bool weak = parameter_of(*m, "scaling") == "weak";
  const std::string batch =
      weak ? fmt::format("weak scaling, batch {} per device", parameter_of(*m, "batch_per_device"))
           : fmt::format("strong scaling, global batch {}", parameter_of(*m, "global_batch"));
  const std::string data =
      parameter_of(*m, "data").empty() ? "synthetic data" : parameter_of(*m, "data");
  return fmt::format("{}, {}, {}", advice.model, batch, data);
}

// Returns a line for a job script if the answer is certain and for GPUs.
std::string job_line(const Facts& facts, const Advice& advice) {
  const auto found = facts.find(advice.model);
  const bool gpus = found != facts.end() && device_kind(found->second.devices) == DeviceKind::kGpu;
  if (!gpus || !advice.recommended || !advice.certain) return "";
  const auto chosen = std::ranges::find(advice.points, *advice.recommended, &Point::devices);
  return fmt::format("#SBATCH --nodes={} --gpus-per-node={}\n", chosen->nodes,
                     chosen->devices / chosen->nodes);
}

std::string interval_note(const Advice& advice) {
  for (const Point& p : advice.points) {
    const Metric& e = p.efficiency;
    if (p.mode == "single" || !e.low) continue;
    if (e.basis == "rounds") {
      return fmt::format("Intervals: 95 %, Student's t over {} rounds, each run a fresh process.",
                         e.n);
    }
    return "Intervals: 95 %, from iterations within a run: they cannot see what differs between "
           "runs, as three rounds can (--rounds, --time-budget).";
  }
  return "";
}

void add_paragraph(std::string& text, const std::string& paragraph) {
  if (!paragraph.empty()) text += wrapped(paragraph, kTextWidth, 2) + "\n";
}

// The largest count; `howmany why` has the others.
std::string why_paragraphs(const Summary& summary, const RenderOptions& options) {
  const std::string text = why_text(json_member(summary.answer, "why"), false, options.color);
  if (text.empty()) return "";
  const std::string more =
      options.folder.empty()
          ? ""
          : fmt::format("Every count: howmany why {}\n", printable(shell_quoted(options.folder)));
  return "\n" + text + more;
}

}  // namespace

std::string devices_note(const Summary& summary, const std::string& model) {
  const Facts facts = facts_of(summary);
  const auto found = facts.find(model);
  const Measurement* const m = found == facts.end() ? nullptr : found->second.first;
  const std::string devices = m == nullptr ? "" : found->second.devices;
  if (device_kind(devices) == DeviceKind::kMixed)
    return fmt::format(
        "{} are not alike: speedup and efficiency are against the first of them alone.", devices);
  if (m == nullptr || device_kind(devices) == DeviceKind::kGpu) return "";
  return fmt::format(
      "A device is {} CPU core(s) here: the result shows how these cores scale, not how GPUs "
      "would.",
      parameter_of(*m, "cores_per_device"));
}

std::string render(const Summary& summary, const std::vector<Advice>& advice,
                   const AdviceOptions& asked, const RenderOptions& options) {
  const Facts facts = facts_of(summary);
  const std::string beyond = beyond_text(summary.answer, options.color);
  const bool is_first = is_beyond_first(summary.answer);
  std::string text = is_first ? beyond.substr(1) + "\n" : "";
  for (const Advice& one : advice) {
    if (!is_first)
      text += styled(wrapped(one.because, kTextWidth, 2), Style::kBold, options.color) + "\n";
    text += job_line(facts, one);
    for (const std::string& line : one.notes) add_paragraph(text, line);
  }
  for (const Advice& one : advice) {
    if (!text.empty() && !text.ends_with("\n\n")) text += "\n";
    text += printable(caption(facts, one)) + "\n" + table(one, asked, options.color);
  }
  if (!advice.empty()) {
    text += "\n";
    add_paragraph(text, interval_note(advice[0]));
    add_paragraph(text, devices_note(summary, advice[0].model));
    add_paragraph(text, environment_note(summary));
    for (const std::string& note : one_node_notes(json_member(summary.answer, "gpus")))
      add_paragraph(text, note);
  }
  text += why_paragraphs(summary, options);
  if (!is_first) text += beyond;
  text += render_step_parts(summary, advice, options.folder);
  if (!options.folder.empty()) text += fmt::format("Files: {}\n", printable(options.folder));
  return text;
}

}  // namespace howmany::reports
