// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/proposal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/schema/context.h"
#include "core/base/schema/parameters.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "core/base/text/markdown.h"
#include "core/base/text/shell.h"
#include "core/base/text/table.h"
#include "reports/gpus/plan.h"
#include "reports/gpus/render.h"
#include "reports/predict/decide.h"
#include "reports/predict/forecast_json.h"
#include "reports/results/device_kind.h"

namespace howmany::reports {
namespace {

constexpr size_t kMostText = 1000;  // characters of a name or a value from a file

std::string shown(const std::string& text) { return escaped_markdown(shortened(text, kMostText)); }

std::string row(const std::vector<std::string>& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

std::string head(const std::vector<std::string>& names) {
  return row(names) + row(std::vector<std::string>(names.size(), "--:"));
}

std::string range(double low, double high, std::string (*format)(double)) {
  return fmt::format("{} to {}", format(low), format(high));
}

std::string ratio(double value) { return format_ratio(value); }

std::string interval_cell(const Metric& metric) {
  return metric.low && metric.high ? range(*metric.low, *metric.high, ratio) : "";
}

std::string noun(const Request& request) {
  return std::string(noun_of(device_kind(fmt::format("{}", fmt::join(request.devices, ","))))) +
         "s";
}

std::string measured_table(const Advice& advice, const Request& request, double samples) {
  std::string text = head({noun(request), "mode", "backend", "samples/s", "speedup", "efficiency",
                           "95 % interval", "device-hours"});
  for (const Point& p : advice.points)
    if (p.valid)
      text += row({std::to_string(p.devices), shown(p.mode), shown(p.backend),
                   format_count(p.samples_per_s), ratio(p.speedup.value), ratio(p.efficiency.value),
                   p.mode == "single" ? "baseline" : interval_cell(p.efficiency),
                   format_hours(samples / p.samples_per_s * p.devices / 3600)});
  return text;
}

std::string more_table(const Forecast& f) {
  std::string text =
      head({f.noun + "s", "evidence", "samples/s", "90 % interval", "efficiency", "90 % interval"});
  for (const Offer& offer : f.offers)
    if (!offer.is_measured() && offer.refused.empty())
      text += row(
          {std::to_string(offer.devices), name_of(offer.evidence), format_count(offer.per_s.value),
           range(offer.per_s.low, offer.per_s.high, format_count), ratio(offer.efficiency.value),
           range(offer.efficiency.low, offer.efficiency.high, ratio)});
  return text;
}

// The rows beyond the measured ones; empty if there are none.
std::string more(const Summary& summary) {
  const auto beyond = summary.answer.find("beyond");
  if (beyond == summary.answer.end() || beyond->contains("refused")) return "";
  const Forecast f = forecast_from_json(*beyond, "summary.json");
  std::string text = "\n### More devices than were measured\n\n";
  for (const std::string& sentence : f.sentences) text += shown(sentence) + "\n";
  text += "\nThese rows are no measurements.";
  if (!f.cluster.empty())
    text += fmt::format(" The collectives took the times of the cluster {}.", shown(f.cluster));
  return text + "\n\n" + more_table(f);
}

// `workload` is null if the request has a script.
std::string command(const Request& request, const Workload* workload) {
  std::vector<std::string> argv = {"howmany", "gpus"};
  const auto add = [&](const Flag& flag, const std::string& value) {
    if (!value.empty()) argv.insert(argv.end(), {flag.name, value});
  };
  if (workload != nullptr) {
    add(flag::kModel, workload->model);
    const bool weak = request.scaling == Scaling::kWeak;
    add(weak ? flag::kBatchPerDevice : flag::kGlobalBatch, std::to_string(workload->batch));
    add(flag::kMode, fmt::format("{}", fmt::join(request.modes, ",")));
    add(flag::kBackend, fmt::format("{}", fmt::join(request.backends, ",")));
    for (const auto& [name, word] : request.passed.given())
      argv.insert(argv.end(), {"--" + name, word});
  }
  add(flag::kDevices, fmt::format("{}", fmt::join(request.devices, ",")));
  add(flag::kRounds, std::to_string(request.rounds));
  if (request.beyond.up_to > 0) add(flag::kUpTo, std::to_string(request.beyond.up_to));
  add(flag::kCluster, request.beyond.cluster);
  if (request.script.given()) argv.insert(argv.end(), {"--", request.script.name});
  return without_controls(shell_words(argv));
}

// A line for each model, because their batches may differ.
std::string commands(const Request& request) {
  if (request.script.given()) return command(request, nullptr) + "\n";
  std::string lines;
  for (const Workload& one : request.workloads) lines += command(request, &one) + "\n";
  return lines;
}

std::string fact(const Summary& summary, const char* name, const char* key) {
  const auto found = summary.context.find(key);
  if (found == summary.context.end() || !found->is_string() || *found == "") return "";
  return fmt::format("- {}: {}\n", name, shown(found->get<std::string>()));
}

std::string facts(const Summary& summary, const Request& request) {
  return fact(summary, "Date", "howmany_date") + fact(summary, "CPU", context::kCpu) +
         fact(summary, "GPU", context::kGpu) + fact(summary, "Driver", context::kDriver) +
         fact(summary, "howmany", "howmany_version") + fact(summary, "Commit", context::kCommit) +
         fmt::format("- Rounds: {}, each run a fresh process. Speedups are ratios within rounds.\n",
                     request.rounds);
}

std::string scaling_of(const Summary& summary, const std::string& model) {
  for (const Measurement& m : summary.measurements)
    if (parameter_of(m, parameter::kModel) == model)
      if (const std::string kind = parameter_of(m, parameter::kScaling); !kind.empty())
        return kind + " scaling";
  return "scaling";
}

std::string part(const Summary& run, const AdviceOptions& options) {
  const auto asked = run.context.find("howmany_request");
  const std::vector<Advice> all =
      asked == run.context.end() ? std::vector<Advice>() : advise(run.measurements, options);
  if (all.empty()) throw InputError("no proposal: the run holds no measurement of howmany gpus");
  const Request request = request_from_json(*asked, "summary.json");
  std::string text;
  for (const Advice& advice : all) {
    if (!text.empty()) text += "\n";
    text += fmt::format("## {}: {}\n\n{}\n\n", shown(advice.model),
                        shown(scaling_of(run, advice.model)), shown(advice.because));
    text += measured_table(advice, request, options.samples_to_train);
    text += fmt::format("\nThe device-hours are those of {} samples.",
                        format_count(options.samples_to_train));
    if (const std::string note = devices_note(run, advice.model); !note.empty())
      text += " " + shown(note);
    text += "\n";
  }
  return text + more(run) + "\n### Method\n\n" + facts(run, request) + "\n```sh\n" +
         commands(request) + "```\n";
}

}  // namespace

std::string proposal(const std::vector<Summary>& runs, const AdviceOptions& options) {
  std::string text = "# Scaling\n";
  for (const Summary& run : runs) text += "\n" + part(run, options);
  return text;
}

}  // namespace howmany::reports
