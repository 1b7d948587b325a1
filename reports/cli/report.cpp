// SPDX-License-Identifier: Apache-2.0
#include "reports/cli/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/base/schema/exit_codes.h"
#include "core/base/schema/flags.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"
#include "core/base/text/print_stderr.h"
#include "core/base/text/table.h"
#include "reports/cli/side_by_side.h"
#include "reports/comm/json.h"
#include "reports/comm/render.h"
#include "reports/comm/run.h"
#include "reports/export/exporter.h"
#include "reports/forms/document.h"
#include "reports/gpus/absent.h"
#include "reports/gpus/absent_script.h"
#include "reports/gpus/proposal.h"
#include "reports/gpus/render.h"
#include "reports/gpus/slurm.h"
#include "reports/html/html.h"
#include "reports/html/summary_files.h"
#include "reports/predict/forecast_json.h"
#include "reports/results/device_kind.h"
#include "reports/results/disturbance.h"
#include "reports/results/latex.h"
#include "reports/results/plain_json.h"
#include "reports/results/run_folder.h"
#include "reports/transfer/advise.h"
#include "reports/transfer/render.h"
#include "reports/workers/render.h"

namespace howmany::reports {
namespace {

namespace fs = std::filesystem;

// The first lines of the tour on a machine without GPUs.
constexpr const char* kOnCpuCores =
    "Measured on the CPU cores of this machine: this says nothing about GPUs.\n"
    "For GPUs that are not here:\n"
    "  howmany gpus --cluster a100x4 --up-to 16 -- python train.py\n"
    "  howmany gpus --model resnet50 --cluster a100x4 --up-to 16\n"
    "  howmany gpus --model gpt2:size=xl --cluster h100x8 --mode ddp,sharded --up-to 64\n"
    "  howmany cluster list\n\n";

bool is_tour_on_cpus(const Summary& summary) {
  return json_member(json_member(summary.context, "howmany_request"), kTour) == true &&
         std::ranges::any_of(summary.measurements, [](const Measurement& m) {
           return device_kind(parameter_of(m, "device_list")) == DeviceKind::kCpu;
         });
}

// Writes the plots into the folder of the first run and returns the text.
std::string form_text(const std::vector<FormRun>& runs, const std::string& emit,
                      const std::string& experiments, const std::string& folder) {
  const FormChoice choice = parse_form_choice(emit);
  const FilledForm filled = fill_form(find_form(choice.form), runs, experiments);
  for (const auto& [name, svg] : filled.files) {
    const std::string path = (fs::path(folder) / name).string();
    try {
      write_text(path, svg);
      print_stderr("plot: {}\n", path);
    } catch (const InputError& error) {
      print_stderr("{} is not written: {}\n", name, error.what());
    }
  }
  return choice.latex ? to_latex(filled.text) : to_markdown(filled.text);
}

std::string gpus_text(const Summary& summary, const AdviceOptions& options,
                      const AnswerArguments& arguments, const std::string& folder,
                      const std::string& experiments = "") {
  if (arguments.emit == "proposal") return proposal({summary}, options);
  if (arguments.emit.starts_with("proposal="))
    return form_text({{summary, options, script_of(folder)}}, arguments.emit, experiments, folder);
  const std::vector<Advice> advice = advise(summary.measurements, options);
  if (arguments.emit == "slurm") return slurm_script(summary, advice, options, script_of(folder));
  return (is_tour_on_cpus(summary) ? kOnCpuCores : "") +
         render(summary, advice, options, {color_wanted(STDOUT_FILENO), folder});
}

std::string gpus_text_again(Summary& summary, const ReportArguments& arguments,
                            const std::string& path, const std::string& folder) {
  const AdviceOptions options =
      advice_options(arguments, options_from_answer(summary.answer, path));
  summary.answer["gpus"] = gpus_answer(summary.measurements, options);
  if (summary.answer.contains("beyond") && (arguments.min_efficiency || arguments.samples)) {
    ForecastLimits limits;
    limits.min_efficiency = arguments.min_efficiency;
    limits.samples = arguments.samples;
    summary.answer["beyond"] = beyond_again(summary.answer["beyond"], limits);
  }
  return arguments.json ? ""
                        : gpus_text(summary, options, arguments, folder, arguments.experiments);
}

// Throws InputError if an option of `howmany gpus` is given for another command's summary.
void refuse_options_of_gpus(const ReportArguments& arguments, const Summary& summary) {
  const char* given = !arguments.emit.empty()      ? flag::kEmit.name
                      : !arguments.exports.empty() ? flag::kExport.name
                      : arguments.samples          ? flag::kSamples.name
                      : arguments.min_efficiency   ? flag::kMinEfficiency.name
                                                   : nullptr;
  for (const char* question : {"workers", "backend", "transfer"})
    if (given != nullptr && summary.answer.contains(question))
      throw InputError(
          fmt::format("{} needs the results of howmany gpus, not of howmany {}", given, question));
}

// The folder may not be ours, so the reason is printed if the page cannot be written.
void write_page_again(const fs::path& path, const Summary& summary) {
  if (path.filename() != "summary.json") return;
  try {
    write_text(path.parent_path() / "report.html", to_html(summary));
  } catch (const InputError& error) {
    print_stderr("report.html is not written again: {}\n", error.what());
  }
}

void write_exports(const ReportArguments& arguments, const Summary& summary) {
  std::vector<ExportRequest> requests;
  for (const std::string& text : arguments.exports) requests.push_back(parse_export(text));
  if (requests.empty()) return;
  const std::vector<Feed> feeds = feeds_of(summary);
  for (const auto& [exporter, path] : requests)
    print_stderr("{}: {}\n", exporter->name, exporter->write(feeds, {path, arguments.python}));
}

int report_one(const ReportArguments& arguments) {
  const std::string path = summary_path(arguments.paths[0]),
                    folder = fs::path(path).parent_path().string();
  Summary summary = read_summary(path);
  refuse_options_of_gpus(arguments, summary);
  const bool color = color_wanted(STDOUT_FILENO);
  std::string text = suite_text(summary, color);
  if (summary.answer.contains("workers"))
    text = workers_text(summary, path, folder, color);
  else if (text.empty())
    text = gpus_text_again(summary, arguments, path, folder);
  write_exports(arguments, summary);
  fmt::print("{}", arguments.json ? dump_json(to_json(summary)) : text);
  write_page_again(path, summary);
  return exit_code::kFine;
}

int print_form_of_many(const ReportArguments& arguments, const std::vector<NamedSummary>& runs) {
  std::vector<FormRun> all;
  std::string first;
  for (const NamedSummary& run : runs) {
    const std::string folder = fs::path(summary_path(run.name)).parent_path().string();
    if (all.empty()) first = folder;
    refuse_options_of_gpus(arguments, run.summary);
    all.push_back({run.summary,
                   advice_options(arguments, options_from_answer(run.summary.answer, run.name)),
                   script_of(folder)});
  }
  fmt::print("{}", form_text(all, arguments.emit, arguments.experiments, first));
  return exit_code::kFine;
}

int report_many(const ReportArguments& arguments) {
  std::vector<NamedSummary> runs;
  if (!arguments.exports.empty())
    throw InputError(fmt::format("{} is for one run", flag::kExport.name));
  for (const std::string& path : arguments.paths)
    runs.push_back({path, read_summary(summary_path(path))});
  if (arguments.emit.starts_with("proposal=")) return print_form_of_many(arguments, runs);
  if (arguments.emit == "proposal") {
    std::vector<Summary> summaries;
    for (NamedSummary& run : runs) {
      refuse_options_of_gpus(arguments, run.summary);
      summaries.push_back(std::move(run.summary));
    }
    fmt::print("{}", proposal(summaries, advice_options(arguments)));
    return exit_code::kFine;
  }
  if (!arguments.emit.empty() || arguments.samples || arguments.min_efficiency || arguments.json)
    throw InputError(fmt::format("{} slurm, {}, {} and {} are for one run", flag::kEmit.name,
                                 flag::kSamples.name, flag::kMinEfficiency.name, flag::kJson.name));
  fmt::print("{}", side_by_side_text(runs, color_wanted(STDOUT_FILENO)));
  return exit_code::kFine;
}

int print_forecast(const Forecast& forecast, bool json) {
  fmt::print("{}",
             json ? dump_json(to_json(forecast)) : render(forecast, color_wanted(STDOUT_FILENO)));
  return exit_code::kFine;
}

}  // namespace

std::string suite_text(Summary& summary, bool color) {
  const std::vector<Measurement>& all = summary.measurements;
  if (summary.answer.contains("backend")) {
    BackendAdvice advice = advise_backend(all);
    mark_disturbed(busy_elsewhere_in(summary.context), advice);
    summary.answer["backend"] = to_json(advice, all);
    return render_backend(advice, all, color);
  }
  if (!summary.answer.contains("transfer")) return "";
  TransferAdvice advice = advise_transfer(all);
  mark_disturbed(busy_elsewhere_in(summary.context), advice);
  summary.answer["transfer"] = to_json(advice, all);
  return render_transfer(advice, all, color);
}

int measure_and_print(const Arguments& arguments) {
  if (of_absent_gpus(arguments))
    return print_forecast(predict_absent_gpus(arguments), arguments.json);
  if (of_absent_gpus_and_script(arguments)) {
    const std::optional<Forecast> forecast = predict_script(arguments);
    return forecast ? print_forecast(*forecast, arguments.json) : exit_code::kInterrupted;
  }
  const GpusRun run = run_gpus(arguments, write_summary);
  if (!run.folder.empty())
    fmt::print("{}", arguments.json ? dump_json(to_json(run.summary))
                                    : gpus_text(run.summary, advice_options(arguments), arguments,
                                                run.folder));
  return run.exit_code;
}

int run_report(const ReportArguments& arguments) {
  if (!arguments.experiments.empty() && !arguments.emit.starts_with("proposal="))
    throw InputError(
        fmt::format("{} needs {} proposal=FORM", flag::kExperiments.name, flag::kEmit.name));
  return arguments.paths.size() > 1 ? report_many(arguments) : report_one(arguments);
}

}  // namespace howmany::reports
