#include "reports/gpus/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "core/base/process.h"
#include "core/base/schema/flags.h"
#include "core/base/text/files.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "core/base/text/table.h"
#include "reports/comm/command.h"
#include "reports/comm/render.h"
#include "reports/gpus/measure.h"
#include "reports/gpus/progress.h"
#include "reports/gpus/render.h"
#include "reports/gpus/resolve.h"
#include "reports/gpus/slurm.h"
#include "reports/results/machine.h"
#include "reports/results/summary_files.h"
#include "reports/workers/render.h"

namespace howmany::reports {
namespace {

namespace fs = std::filesystem;

std::string plan_path(const std::string& folder) { return folder + "/plan.json"; }

AdviceOptions asked(const Arguments& arguments, AdviceOptions options = {}) {
  if (arguments.min_efficiency) options.min_efficiency = *arguments.min_efficiency;
  if (arguments.samples) options.samples_to_train = parse_count(flag::kSamples, *arguments.samples);
  return options;
}

// Throws InputError naming the first argument that would change the resumed plan.
void refuse_other_arguments(const Arguments& arguments, const Request& request) {
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

Plan new_plan(const Arguments& arguments, const std::string& folder) {
  if (fs::exists(plan_path(folder))) {
    throw InputError(
        fmt::format("{} holds a run already; go on with --resume {}, or choose another "
                    "--out",
                    folder, folder));
  }
  std::string why;
  const Plan plan{resolve(arguments, &why), machine_fingerprint()};
  check_with_bench(plan.request);
  prepare_folder(folder);
  write_plan(plan_path(folder), plan);
  if (!arguments.quiet && !why.empty()) fmt::print(stderr, "{}\n", why);
  return plan;
}

Summary summarise(const Plan& plan, const Results& results, const AdviceOptions& options) {
  Summary summary;
  summary.context = results.context;
  summary.context["howmany_version"] = HM_VERSION;
  summary.context["howmany_date"] = utc_now("%Y-%m-%dT%H:%M:%SZ");
  summary.context["howmany_request"] = to_json(plan.request);
  summary.context["howmany_machine"] = plan.machine;
  summary.measurements = measurements(plan, results);
  summary.answer["gpus"] = to_json(advise(summary.measurements, options), options);
  return summary;
}

void print(const Summary& summary, const AdviceOptions& options, const Arguments& arguments,
           const std::string& folder) {
  if (arguments.json) {
    fmt::print("{}", dump_json(to_json(summary)));
    return;
  }
  if (arguments.emit == "slurm") {
    fmt::print("{}", slurm_script(summary, advise(summary.measurements, options), options));
    return;
  }
  const bool color = !arguments.no_color && color_wanted(STDOUT_FILENO);
  fmt::print("{}",
             render(summary, advise(summary.measurements, options), options, {color, folder}));
}

void refuse_job_script(const Arguments& arguments, const Summary& summary) {
  if (arguments.emit.empty()) return;
  for (const char* question : {"workers", "backend", "transfer"})
    if (summary.answer.contains(question))
      throw InputError(fmt::format(
          "no job script: howmany {} tells no number of devices; take the folder of a howmany gpus",
          question));
}

// Throws InputError if an option of `howmany gpus` is given for another command's summary.
void refuse_advice_options(const Arguments& arguments, const Summary& summary) {
  const char* given = arguments.samples          ? flag::kSamples
                      : arguments.min_efficiency ? "--min-efficiency"
                                                 : nullptr;
  for (const char* question : {"workers", "backend", "transfer"})
    if (given != nullptr && summary.answer.contains(question))
      throw InputError(fmt::format(
          "{} is for what howmany gpus measured, and this is of howmany {}", given, question));
}

int exit_code(const Results& results) {
  const bool failed = std::any_of(results.runs.begin(), results.runs.end(),
                                  [](const BenchRun& run) { return !run.row.error.empty(); });
  return failed || results.interrupted ? kMeasurementFailed : kFine;
}

void tell_ending(const Results& results, const std::string& folder) {
  if (results.interrupted) {
    fmt::print(stderr, "interrupted: what was measured is kept; go on with --resume {}\n", folder);
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
    throw std::runtime_error(
        fmt::format("{}; what was measured is kept, go on with --resume {}", error.what(), folder));
  }
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
    fmt::print("{}Files: {}\n", render_workers(summary.answer["workers"], path, color),
               fs::path(path).parent_path().string());
    return;
  }
  if (!about_workers)
    summary.answer["gpus"] = to_json(advise(summary.measurements, options), options);
  print(summary, options, arguments, fs::path(path).parent_path().string());
}

}  // namespace

int run_gpus(const Arguments& arguments) {
  refuse_many_copies("it starts its own ranks: start it once, or use howmany train");
  const AdviceOptions options = asked(arguments);
  const bool resume = !arguments.resume.empty();
  std::string folder = resume ? arguments.resume : arguments.out;
  if (folder.empty()) folder = "howmany-out/" + utc_now("%Y%m%dT%H%M%SZ");
  const Plan plan = resume ? resumed_plan(arguments) : new_plan(arguments, folder);
  if (resume) prepare_folder(folder);
  Results results = resume ? read_results(folder, plan) : Results{};
  catch_interrupts();
  measure_into(folder, plan, arguments, options, results);
  if (!results.usage_error.empty()) throw InputError(results.usage_error);
  const Summary summary = summarise(plan, results, options);
  write_summary(folder, summary);
  tell_ending(results, folder);
  print(summary, options, arguments, folder);
  return exit_code(results);
}

int run_report(const Arguments& arguments) {
  const std::string path =
      fs::is_directory(arguments.path) ? arguments.path + "/summary.json" : arguments.path;
  Summary summary = read_summary(path);
  refuse_job_script(arguments, summary);
  refuse_advice_options(arguments, summary);
  show(arguments, path, summary);
  write_report_again(path, summary);
  return kFine;
}

}  // namespace howmany::reports
