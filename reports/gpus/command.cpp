// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "core/base/process.h"
#include "core/base/schema/exit_codes.h"
#include "core/base/schema/flags.h"
#include "core/base/text/files.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "core/base/text/table.h"
#include "reports/comm/command.h"
#include "reports/comm/render.h"
#include "reports/gpus/absent.h"
#include "reports/gpus/announce.h"
#include "reports/gpus/bench_call.h"
#include "reports/gpus/beyond.h"
#include "reports/gpus/measure.h"
#include "reports/gpus/progress.h"
#include "reports/gpus/proposal.h"
#include "reports/gpus/render.h"
#include "reports/gpus/resolve.h"
#include "reports/gpus/slurm.h"
#include "reports/html/proposal_page.h"
#include "reports/results/device_kind.h"
#include "reports/results/machine.h"
#include "reports/results/plain_json.h"
#include "reports/results/run_folder.h"
#include "reports/results/summary_files.h"
#include "reports/runs/side_by_side.h"
#include "reports/workers/output.h"

namespace howmany::reports {
namespace {

namespace fs = std::filesystem;

// Of --emit.
constexpr const char *kProposal = "proposal", *kProposalPage = "proposal-html";

// The first lines of the tour on a machine without GPUs.
constexpr const char* kOnCpuCores =
    "Measured on the CPU cores of this machine: this says nothing about GPUs.\n"
    "For GPUs that are not here:\n"
    "  howmany gpus --model resnet50 --cluster a100x4 --up-to 16\n"
    "  howmany gpus --model gpt2:size=xl --cluster h100x8 --mode ddp,sharded --up-to 64\n"
    "  howmany cluster list\n\n";

bool is_tour(const Summary& summary) {
  return json_member(json_member(summary.context, "howmany_request"), kTour) == true;
}

bool on_cpu_cores(const Summary& summary) {
  return std::ranges::any_of(summary.measurements, [](const Measurement& m) {
    return device_kind(parameter_of(m, "device_list")) == DeviceKind::kCpu;
  });
}

std::string plan_path(const std::string& folder) { return folder + "/plan.json"; }

BeyondAsked asked_beyond(const Arguments& a) {
  const BeyondAsked asked{a.min_efficiency, a.samples, a.finish_within, a.budget};
  check(asked);
  if (!a.up_to && a.resume.empty() && (a.finish_within || a.budget))
    throw InputError(fmt::format("{} and {} need {}", flag::kFinishWithin.name, flag::kBudget.name,
                                 flag::kUpTo.name));
  return asked;
}

AdviceOptions asked(const Arguments& arguments, AdviceOptions options = {}) {
  if (arguments.min_efficiency) options.min_efficiency = *arguments.min_efficiency;
  if (arguments.samples) options.samples_to_train = *arguments.samples;
  return options;
}

// Throws InputError naming the first argument that would change the resumed plan.
void refuse_other_arguments(const Arguments& arguments, const Request& request) {
  if (arguments.up_to.value_or(request.beyond.up_to) != request.beyond.up_to ||
      !arguments.cluster.empty())
    throw InputError(
        fmt::format("--resume: {} and {} are those of the run; leave them out, or start afresh",
                    flag::kUpTo.name, flag::kCluster.name));
  Request changed = request;
  apply(arguments, changed);
  const nlohmann::ordered_json before = to_json(request), after = to_json(changed);
  for (const auto& [key, value] : before.items()) {
    if (value == after[key]) continue;
    throw InputError(fmt::format(
        "--resume: the run was begun with {} = {}, now asked for {}; leave it out, or start afresh",
        key, value.dump(), after[key].dump()));
  }
}

Plan resumed_plan(const Arguments& arguments) {
  Plan plan = read_plan(plan_path(arguments.resume));
  refuse_other_arguments(arguments, plan.request);
  const std::string other = difference(plan.machine, machine_fingerprint());
  if (!other.empty()) {
    throw InputError(fmt::format(
        "--resume: not the machine and programs the run was begun with ({}); start afresh", other));
  }
  return plan;
}

Plan new_plan(const Arguments& arguments, std::string& why) {
  Plan plan{resolve(arguments, &why), machine_fingerprint()};
  if (std::ranges::count(arguments.modes, "all") == 0) {
    check_with_bench(plan.request);
    return plan;
  }
  for (const std::string& reason : leave_out_refused(plan.request))
    if (!arguments.quiet) fmt::print(stderr, "left out: {}\n", reason);
  return plan;
}

// `beyond`: the answer for more devices too, which takes a second.
Summary summarise(const Plan& plan, const Results& results, const AdviceOptions& options,
                  const std::optional<BeyondAsked>& beyond = {}) {
  Summary summary;
  summary.context = results.context;
  summary.context["howmany_version"] = HM_VERSION;
  summary.context["howmany_date"] = utc_now("%Y-%m-%dT%H:%M:%SZ");
  summary.context["howmany_request"] = to_json(plan.request);
  summary.context["howmany_machine"] = plan.machine;
  summary.measurements = measurements(plan, results);
  summary.answer["gpus"] = to_json(advise(summary.measurements, options), options);
  if (beyond && plan.request.beyond.up_to > 0)
    summary.answer["beyond"] = beyond_json(plan, results, summary, *beyond);
  return summary;
}

// The command of the user's own script, which only plan.json holds; empty if there is none.
std::vector<std::string> script_words(const std::string& folder) {
  if (folder.empty() || !fs::exists(plan_path(folder))) return {};
  return read_plan(plan_path(folder)).request.script.words;
}

bool is_proposal(const std::string& emit) { return emit == kProposal || emit == kProposalPage; }

void print_proposal(const std::string& emit, const std::vector<Summary>& runs,
                    const AdviceOptions& options) {
  fmt::print("{}", emit == kProposal ? proposal(runs, options) : proposal_page(runs, options));
}

void print(const Summary& summary, const AdviceOptions& options, const Arguments& arguments,
           const std::string& folder) {
  if (arguments.json) {
    fmt::print("{}", dump_json(to_json(summary)));
    return;
  }
  if (is_proposal(arguments.emit)) return print_proposal(arguments.emit, {summary}, options);
  if (arguments.emit == "slurm") {
    fmt::print("{}", slurm_script(summary, advise(summary.measurements, options), options,
                                  script_words(folder)));
    return;
  }
  const bool color = !arguments.no_color && color_wanted(STDOUT_FILENO);
  if (is_tour(summary) && on_cpu_cores(summary)) fmt::print("{}", kOnCpuCores);
  fmt::print("{}",
             render(summary, advise(summary.measurements, options), options, {color, folder}));
}

void refuse_emit(const Arguments& arguments, const Summary& summary) {
  if (arguments.emit.empty()) return;
  for (const char* question : {"workers", "backend", "transfer"})
    if (summary.answer.contains(question))
      throw InputError(fmt::format(
          "no {}: howmany {} recommends no number of devices; give the folder of a howmany gpus",
          is_proposal(arguments.emit) ? "proposal" : "job script", question));
}

// Throws InputError if an option of `howmany gpus` is given for another command's summary.
void refuse_advice_options(const Arguments& arguments, const Summary& summary) {
  const char* given = arguments.samples          ? flag::kSamples.name
                      : arguments.min_efficiency ? flag::kMinEfficiency.name
                                                 : nullptr;
  for (const char* question : {"workers", "backend", "transfer"})
    if (given != nullptr && summary.answer.contains(question))
      throw InputError(fmt::format(
          "{} is for what howmany gpus measured, and this is of howmany {}", given, question));
}

const BenchRun* first_failed(const Results& results) {
  const auto found =
      std::ranges::find_if(results.runs, [](auto& r) { return !r.row.error.empty(); });
  return found == results.runs.end() ? nullptr : &*found;
}

int exit_code(const Results& results) {
  if (results.interrupted) return exit_code::kInterrupted;
  return first_failed(results) != nullptr ? exit_code::kMeasurementFailed : exit_code::kFine;
}

void tell_ending(const Results& results, const std::string& folder) {
  if (results.interrupted) {
    fmt::print(stderr, "interrupted: the results so far are kept; continue with --resume {}\n",
               folder);
  } else if (const BenchRun* const failed = first_failed(results)) {
    fmt::print(stderr, "howmany: a measurement failed: {}\n", failed->row.error);
  }
  if (results.out_of_time) {
    fmt::print(stderr, "the time budget was spent before every round was measured\n");
  }
}

// A file that cannot be written after measuring began is a failed measurement, not bad usage.
void measure_into(const std::string& folder, const Plan& plan, const Arguments& arguments,
                  const AdviceOptions& options, Results& results) {
  try {
    ProgressLine progress(arguments.quiet);
    MeasureOptions how{folder, arguments.run_timeout, arguments.verbose, {}};
    how.on_progress = [&](const MeasureOptions::Progress& now) {
      progress.show(now);
      if (now.finished != nullptr) write_summary(folder, summarise(plan, results, options));
    };
    measure(plan, how, results);
  } catch (const InputError& error) {
    throw std::runtime_error(fmt::format(
        "{}; the results so far are kept; continue with --resume {}", error.what(), folder));
  }
}

void refuse_old_plan(const std::string& folder) {
  if (folder.empty() || !fs::exists(plan_path(folder))) return;
  throw InputError(fmt::format(
      "{} holds a run already; go on with --resume {}, or choose another --out", folder, folder));
}

int measure_and_print(const Plan& plan, const std::string& folder, Results& results,
                      const Arguments& arguments) {
  const AdviceOptions options = asked(arguments);
  catch_interrupts();
  measure_into(folder, plan, arguments, options, results);
  if (!results.usage_error.empty()) throw InputError(results.usage_error);
  const Summary summary = summarise(plan, results, options, asked_beyond(arguments));
  write_summary(folder, summary);
  tell_ending(results, folder);
  print(summary, options, arguments, folder);
  return exit_code(results);
}

int resume(const Arguments& arguments) {
  const Plan plan = resumed_plan(arguments);
  const RunFolder folder = RunFolder::reopen(arguments.resume);
  Results results = read_results(folder.path(), plan);
  return measure_and_print(plan, folder.path(), results, arguments);
}

// Prints the summary as the measuring command did. Recomputes the answer of `gpus`.
void show(const Arguments& arguments, const std::string& path, Summary& summary) {
  const bool color = !arguments.no_color && color_wanted(STDOUT_FILENO);
  if (const std::string text = render_suites(summary, color); !text.empty()) {
    fmt::print("{}", arguments.json ? dump_json(to_json(summary)) : text);
    return;
  }
  const AdviceOptions options = asked(arguments, options_from_answer(summary.answer, path));
  const bool about_workers = summary.answer.contains("workers");
  if (about_workers && !arguments.json) {
    fmt::print("{}", workers_text(summary, path, fs::path(path).parent_path().string(), color));
    return;
  }
  if (!about_workers)
    summary.answer["gpus"] = to_json(advise(summary.measurements, options), options);
  if (summary.answer.contains("beyond") && (arguments.min_efficiency || arguments.samples))
    summary.answer["beyond"] = beyond_again(summary.answer["beyond"], asked_beyond(arguments));
  print(summary, options, arguments, fs::path(path).parent_path().string());
}

std::string summary_path(const std::string& path) {
  return fs::is_directory(path) ? path + "/summary.json" : path;
}

int propose_many(const Arguments& arguments) {
  std::vector<Summary> runs;
  for (const std::string& path : arguments.paths) {
    runs.push_back(read_summary(summary_path(path)));
    refuse_emit(arguments, runs.back());
  }
  print_proposal(arguments.emit, runs, asked(arguments));
  return exit_code::kFine;
}

int report_many(const Arguments& arguments) {
  if (is_proposal(arguments.emit) && arguments.html.empty()) return propose_many(arguments);
  if (!arguments.emit.empty() || arguments.samples || arguments.min_efficiency)
    throw InputError(fmt::format("{}, {} and {} are for one run without {}", flag::kEmit.name,
                                 flag::kSamples.name, flag::kMinEfficiency.name, flag::kHtml.name));
  std::vector<NamedSummary> runs;
  for (const std::string& path : arguments.paths)
    runs.push_back({path, read_summary(summary_path(path))});
  const bool color = !arguments.no_color && color_wanted(STDOUT_FILENO);
  fmt::print("{}",
             arguments.json ? dump_json(side_by_side_json(runs)) : side_by_side_text(runs, color));
  if (arguments.html.empty()) return exit_code::kFine;
  write_text(arguments.html, side_by_side_html(runs));
  if (!arguments.json) fmt::print("\nFiles: {}\n", printable(arguments.html));
  return exit_code::kFine;
}

int report_one(const Arguments& arguments) {
  const std::string path = summary_path(arguments.paths[0]);
  Summary summary = read_summary(path);
  refuse_emit(arguments, summary);
  refuse_advice_options(arguments, summary);
  show(arguments, path, summary);
  write_report_again(path, summary);
  return exit_code::kFine;
}

// Returns false if it was interrupted.
bool probe_script(const Arguments& arguments, const std::string& folder, Request& request) {
  if (request.script.has_count() || !request.script.rate.empty()) return true;
  if (!arguments.quiet)
    fmt::print(stderr, "Starting {} once, to see whether it forms a process group.\n",
               request.script.name);
  catch_interrupts();
  return probe_group(folder, request);
}

}  // namespace

int run_gpus(const Arguments& arguments) {
  refuse_many_copies("it starts its own ranks: start it once, or use howmany train");
  asked(arguments), asked_beyond(arguments);  // refuse bad values before anything is measured
  if (of_absent_gpus(arguments)) return predict_absent_gpus(arguments);
  if (!arguments.resume.empty()) return resume(arguments);
  refuse_old_plan(arguments.out);
  RunFolder::check(arguments.out);
  std::string why_backend;
  Plan plan = new_plan(arguments, why_backend);
  const RunFolder folder = RunFolder::create(arguments.out);
  if (plan.request.script.given() && !probe_script(arguments, folder.path(), plan.request))
    return exit_code::kInterrupted;
  if (!arguments.quiet) fmt::print(stderr, "{}", announcement(plan.request, folder.path()));
  if (!arguments.quiet && !why_backend.empty()) fmt::print(stderr, "{}\n", why_backend);
  write_plan(plan_path(folder.path()), plan);
  Results results;
  return measure_and_print(plan, folder.path(), results, arguments);
}

int run_report(const Arguments& arguments) {
  return arguments.paths.size() > 1 || !arguments.html.empty() ? report_many(arguments)
                                                               : report_one(arguments);
}

}  // namespace howmany::reports
