// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/base/schema/exit_codes.h"
#include "core/base/schema/flags.h"
#include "core/base/text/format.h"
#include "core/base/text/shell.h"
#include "core/base/text/table.h"
#include "reports/gpus/bench_call.h"
#include "reports/gpus/measure.h"
#include "reports/gpus/one_node.h"
#include "reports/gpus/progress.h"
#include "reports/gpus/resolve.h"
#include "reports/nodes/facts.h"
#include "reports/results/machine.h"
#include "reports/results/run_folder.h"
#include "reports/script/ladder.h"
#include "reports/why/why.h"

namespace howmany::reports {
namespace {

namespace fs = std::filesystem;

// A run that is ready to measure.
struct ReadyRun {
  Plan plan;
  RunFolder folder;
  Results results;  // of an interrupted run
};

std::string plan_path(const std::string& folder) { return folder + "/plan.json"; }

ForecastLimits forecast_limits(const Arguments& a) {
  const ForecastLimits limits{a.min_efficiency, a.samples, a.finish_within, a.budget};
  check(limits);
  if (!a.up_to && a.resume.empty() && (a.finish_within || a.budget))
    throw InputError(fmt::format("{} and {} need {}", flag::kFinishWithin.name, flag::kBudget.name,
                                 flag::kUpTo.name));
  return limits;
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

// A later job has other nodes.
void take_nodes_of_this_job(const Arguments& arguments, Request& request) {
  if (!request.across.nodes.many()) return;
  const int needed = nodes_of(request, request.counts.back());
  request.across.nodes = find_nodes(arguments.hosts);
  if (request.across.nodes.count() < needed)
    throw InputError(fmt::format("{}: the run needs {}, and here {} {}", flag::kResume.name,
                                 number(needed, "node"),
                                 request.across.nodes.count() == 1 ? "is" : "are",
                                 std::max(1, request.across.nodes.count())));
}

ReadyRun resume(const Arguments& arguments, ProgressReport& progress) {
  Plan plan = read_plan(plan_path(arguments.resume));
  refuse_other_arguments(arguments, plan.request);
  const std::string other = difference(plan.machine, machine_fingerprint());
  if (!other.empty())
    throw InputError(fmt::format(
        "--resume: not the machine and programs the run was begun with ({}); start afresh", other));
  take_nodes_of_this_job(arguments, plan.request);
  RunFolder folder = RunFolder::reopen(arguments.resume);
  if (const Script& script = plan.request.script; script.given())
    progress.report("Running again: " + printable(shell_words(script.words)));
  Results results = read_results(folder.path(), plan);
  return {std::move(plan), std::move(folder), std::move(results)};
}

// Returns the variables of its ranks.
std::vector<std::string> check_nodes_of(Request& request, const std::string& python) {
  NodesPlan& across = request.across;
  return across.environment =
             check_nodes(across.nodes, nodes_of(request, request.counts.back()), python);
}

// Starts the script as often as needed, and fills in which numbers of devices are measured. Returns
// false if it was interrupted.
bool find_start_of(Request& request, const std::string& folder, ProgressReport& progress) {
  const BenchScratch scratch(folder);
  const LadderOptions options{
      .devices = request.devices,
      .cores_per_device = request.cores_per_device,
      .rehearses = !request.beyond.cluster.empty(),
      .nodes = request.across.nodes,
      .check_nodes = [&](const std::string& python) { return check_nodes_of(request, python); },
      .report = [&](const std::string& line) { progress.report(line); }};
  if (!find_start(request.script, options, scratch)) return false;
  if (request.script.alone) request.counts = {1};
  if (request.script.own_ranks > 0) request.counts = {request.script.own_ranks};
  if (!request.script.why_one_node.empty())
    std::erase_if(request.counts, [&](int count) { return nodes_of(request, count) > 1; });
  if (request.counts.empty()) request.counts = {1};
  return true;
}

// Returns nullopt if it was interrupted.
std::optional<ReadyRun> begin(const Arguments& arguments, ProgressReport& progress) {
  if (!arguments.out.empty() && fs::exists(plan_path(arguments.out)))
    throw InputError(
        fmt::format("{} holds a run already; go on with --resume {}, or choose another --out",
                    arguments.out, arguments.out));
  RunFolder::check(arguments.out);
  std::vector<std::string> notices;
  Plan plan{resolve(arguments, notices), machine_fingerprint()};
  Request& request = plan.request;
  const StepsGuard guard(request.across.nodes);
  const Script& script = request.script;
  const bool hooked = script.given() && script.rate.empty();
  if (!hooked && nodes_of(request, request.counts.back()) > 1) check_nodes_of(request, "");
  if (std::ranges::count(arguments.modes, "all") == 0)
    check_with_bench(request);
  else
    for (const std::string& reason : leave_out_refused(request))
      progress.report("left out: " + reason);
  RunFolder folder = RunFolder::create(arguments.out);
  if (hooked && !find_start_of(request, folder.path(), progress)) return {};
  progress.report_start(request, folder.path());
  for (const std::string& notice : notices) progress.report(notice);
  write_plan(plan_path(folder.path()), plan);
  RunFolder::keep_others_out(plan_path(folder.path()));
  return ReadyRun{std::move(plan), std::move(folder), {}};
}

// `limits`: of the answer for more devices. Given at the end, as that answer and the parts of the
// steps take a second.
Summary summarise(const Plan& plan, const Results& results, const AdviceOptions& options,
                  const std::optional<ForecastLimits>& limits = {}) {
  Summary summary;
  summary.context = results.context;
  summary.context["howmany_version"] = HM_VERSION;
  summary.context["howmany_date"] = utc_now("%Y-%m-%dT%H:%M:%SZ");
  summary.context["howmany_request"] = to_json(plan.request);
  summary.context["howmany_machine"] = plan.machine;
  summary.measurements = measurements(plan, results);
  summary.answer["gpus"] = gpus_answer(summary.measurements, options);
  if (limits && plan.request.beyond.up_to > 0)
    summary.answer["beyond"] = beyond_json(plan, results, summary, *limits);
  if (!limits) return summary;
  if (auto why = why_json(plan, results, summary); !why.is_null())
    summary.answer["why"] = std::move(why);
  return summary;
}

int exit_code(const Results& results) {
  if (results.interrupted) return exit_code::kInterrupted;
  return first_failed(results) != nullptr ? exit_code::kMeasurementFailed : exit_code::kFine;
}

}  // namespace

GpusRun run_gpus(const Arguments& arguments, const SummaryWriter& write) {
  refuse_many_copies("it starts its own ranks: start it once, or use howmany train");
  const AdviceOptions options = advice_options(arguments);
  const ForecastLimits limits = forecast_limits(arguments);
  ProgressReport progress(arguments.quiet);
  std::optional<ReadyRun> run =
      arguments.resume.empty() ? begin(arguments, progress) : resume(arguments, progress);
  if (!run) return {{}, "", exit_code::kInterrupted};
  const Plan& plan = run->plan;
  Results& results = run->results;
  const std::string folder = run->folder.path();
  try {
    MeasureOptions how{folder, arguments.run_timeout, arguments.verbose, {}};
    how.on_progress = [&](const MeasureOptions::Progress& now) {
      progress.report_step(now);
      if (now.finished != nullptr) write(folder, summarise(plan, results, options));
    };
    measure(plan, how, results);
  } catch (const InputError& error) {
    // A file that cannot be written after measuring began is a failed measurement, not bad usage.
    throw std::runtime_error(fmt::format(
        "{}; the results so far are kept; continue with --resume {}", error.what(), folder));
  }
  if (!results.usage_error.empty()) throw InputError(results.usage_error);
  Summary summary = summarise(plan, results, options, limits);
  write(folder, summary);
  progress.report_end(results, folder);
  return {std::move(summary), folder, exit_code(results)};
}

nlohmann::ordered_json gpus_answer(const std::vector<Measurement>& measurements,
                                   const AdviceOptions& options) {
  nlohmann::ordered_json answer = to_json(advise(measurements, options), options);
  if (auto rows = beside_one_node(measurements); !rows.empty()) answer[kOneNode] = std::move(rows);
  return answer;
}

AdviceOptions advice_options(const AnswerArguments& arguments, AdviceOptions options) {
  if (arguments.min_efficiency) options.min_efficiency = *arguments.min_efficiency;
  if (arguments.samples) options.samples_to_train = *arguments.samples;
  return options;
}

Script script_of(const std::string& folder) {
  if (folder.empty() || !fs::exists(plan_path(folder))) return {};
  return read_plan(plan_path(folder)).request.script;
}

}  // namespace howmany::reports
