// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/proposal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/schema/context.h"
#include "core/base/schema/parameters.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "core/base/text/shell.h"
#include "core/base/text/table.h"
#include "reports/gpus/plan.h"
#include "reports/gpus/render.h"
#include "reports/predict/decide.h"
#include "reports/predict/forecast_json.h"
#include "reports/results/device_kind.h"

namespace howmany::reports {
namespace {

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

DocumentTable measured_table(const Advice& advice, const Request& request, double samples) {
  DocumentTable table{{noun(request), "mode", "backend", "samples/s", "speedup", "efficiency",
                       "95 % interval", "device-hours"},
                      {}};
  for (const Point& p : advice.points)
    if (p.valid)
      table.rows.push_back({std::to_string(p.devices), p.mode, p.backend,
                            format_count(p.samples_per_s), ratio(p.speedup.value),
                            ratio(p.efficiency.value),
                            p.mode == "single" ? "baseline" : interval_cell(p.efficiency),
                            format_hours(samples / p.samples_per_s * p.devices / 3600)});
  return table;
}

DocumentTable more_table(const Forecast& f) {
  DocumentTable table{
      {f.noun + "s", "evidence", "samples/s", "90 % interval", "efficiency", "90 % interval"}, {}};
  for (const ForecastRow& row : f.rows)
    if (!row.is_measured() && row.refused.empty())
      table.rows.push_back(
          {std::to_string(row.devices), name_of(row.evidence), format_count(row.per_s.value),
           range(row.per_s.low, row.per_s.high, format_count), ratio(row.efficiency.value),
           range(row.efficiency.low, row.efficiency.high, ratio)});
  return table;
}

// Adds the rows beyond the measured ones.
void add_more(Document& text, const Summary& summary) {
  const auto beyond = summary.answer.find("beyond");
  if (beyond == summary.answer.end() || beyond->contains("refused")) return;
  const Forecast f = forecast_from_json(*beyond, "summary.json");
  text.emplace_back(Heading{3, "More devices than were measured"});
  for (const std::string& sentence : f.sentences) text.emplace_back(Paragraph{sentence});
  std::string note = "These rows are no measurements.";
  if (!f.cluster.empty())
    note += fmt::format(" The collectives took the times of the cluster {}.", f.cluster);
  text.emplace_back(Paragraph{note});
  text.emplace_back(more_table(f));
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
    for (const auto& [name, word] : request.forwarded.given())
      argv.insert(argv.end(), {"--" + name, word});
  }
  add(flag::kDevices, fmt::format("{}", fmt::join(request.devices, ",")));
  add(flag::kRounds, std::to_string(request.rounds));
  if (request.beyond.up_to > 0) add(flag::kUpTo, std::to_string(request.beyond.up_to));
  add(flag::kCluster, request.beyond.cluster);
  if (request.script.given()) argv.insert(argv.end(), {"--", request.script.name});
  return shell_words(argv);
}

// A line for each model, because their batches may differ.
ShellLines commands(const Request& request) {
  if (request.script.given()) return {{command(request, nullptr)}};
  ShellLines all;
  for (const Workload& one : request.workloads) all.lines.push_back(command(request, &one));
  return all;
}

Items facts(const Summary& summary, const Request& request) {
  Items items;
  for (const auto& [name, key] :
       {std::pair("Date", "howmany_date"), std::pair("CPU", context::kCpu),
        std::pair("GPU", context::kGpu), std::pair("Driver", context::kDriver),
        std::pair("howmany", "howmany_version"), std::pair("Commit", context::kCommit)})
    if (const auto found = summary.context.find(key);
        found != summary.context.end() && found->is_string() && *found != "")
      items.lines.push_back(fmt::format("{}: {}", name, found->get<std::string>()));
  for (const Measurement& m : summary.measurements)
    if (const std::string torch = parameter_of(m, parameter::kTorch); !torch.empty()) {
      items.lines.push_back("PyTorch: " + torch);
      break;
    }
  items.lines.push_back(fmt::format(
      "Rounds: {}, each run a fresh process. Speedups are ratios within rounds.", request.rounds));
  return items;
}

}  // namespace

std::string scaling_of(const Summary& summary, const std::string& model) {
  for (const Measurement& m : summary.measurements)
    if (parameter_of(m, parameter::kModel) == model)
      if (const std::string kind = parameter_of(m, parameter::kScaling); !kind.empty())
        return kind + " scaling";
  return "scaling";
}

Document method_of(const Summary& run) {
  const Request request = request_from_json(run.context.at("howmany_request"), "summary.json");
  return {facts(run, request), commands(request)};
}

Document proposal_of(const Summary& run, const AdviceOptions& options) {
  const auto asked = run.context.find("howmany_request");
  const std::vector<Advice> all =
      asked == run.context.end() ? std::vector<Advice>() : advise(run.measurements, options);
  if (all.empty()) throw InputError("no proposal: the run holds no measurement of howmany gpus");
  const Request request = request_from_json(*asked, "summary.json");
  Document text;
  for (const Advice& advice : all) {
    text.emplace_back(
        Heading{2, fmt::format("{}: {}", advice.model, scaling_of(run, advice.model))});
    text.emplace_back(Paragraph{advice.because});
    text.emplace_back(measured_table(advice, request, options.samples_to_train));
    const std::string note = devices_note(run, advice.model);
    text.emplace_back(Paragraph{fmt::format("The device-hours are those of {} samples.{}{}",
                                            format_count(options.samples_to_train),
                                            note.empty() ? "" : " ", note)});
  }
  add_more(text, run);
  text.emplace_back(Heading{3, "Method"});
  for (auto& part : method_of(run)) text.push_back(std::move(part));
  return text;
}

std::string proposal(const std::vector<Summary>& runs, const AdviceOptions& options) {
  std::string text = "# Scaling\n";
  for (const Summary& run : runs) text += "\n" + to_markdown(proposal_of(run, options));
  return text;
}

}  // namespace howmany::reports
