// SPDX-License-Identifier: Apache-2.0
#include "reports/submit/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <regex>
#include <set>

#include "core/base/process.h"
#include "core/base/schema/exit_codes.h"
#include "core/base/schema/flags.h"
#include "core/base/text/files.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "core/base/text/lines.h"
#include "core/base/text/print_stderr.h"
#include "core/base/text/shell.h"
#include "core/base/text/table.h"
#include "reports/gpus/resolve.h"
#include "reports/results/run_folder.h"
#include "reports/submit/collect.h"
#include "reports/submit/job_script.h"
#include "reports/submit/study.h"

namespace howmany::reports {
namespace {

namespace fs = std::filesystem;

constexpr double kSbatchSeconds = 120;

void refuse_option(bool given, const Flag& flag, const std::string& why) {
  if (given) throw InputError(fmt::format("{} and {}: {}", flag::kSubmit.name, flag.name, why));
}

// Jobs may wait for hours, so an error that is known now is one now.
void check_new_study(const Arguments& a) {
  if (a.nodes.empty())
    throw InputError(
        fmt::format("{} needs {}, such as 1,2,4", flag::kSubmit.name, flag::kNodes.name));
  if (a.command.empty()) {
    refuse_options_of_scripts(a);
  } else {
    refuse_options_of_models(a);
    std::string notice;
    script_from(a.command, &notice);
  }
  refuse_option(!a.hosts.empty(), flag::kHosts, "the nodes are those of each job");
  refuse_option(!a.emit.empty(), flag::kEmit, "give it to howmany report, once there are results");
  refuse_option(a.in_copy && *std::ranges::max_element(a.nodes) > 1, flag::kInCopy,
                "the copy would be on one node only");
  if (a.one_job) return;
  const std::string one = fmt::format("{} can have it", flag::kOneJob.name);
  refuse_option(!a.counts.empty(), flag::kDeviceCount,
                "each job measures one device and its whole nodes; " + one);
  refuse_option(a.up_to.has_value() || !a.cluster.empty(), flag::kUpTo,
                "howmany predict takes the folder of the study; " + one);
}

Study new_study(const Arguments& a) {
  const std::set<int> nodes(a.nodes.begin(), a.nodes.end());
  Study study{.folder = {},
              .directory = fs::current_path().string(),
              .submit = sbatch_words(a.submit),
              .options = a.options,
              .command = a.command,
              .one_job = a.one_job,
              .nodes = {nodes.begin(), nodes.end()},
              .jobs = {}};
  study.jobs = jobs_for(study.nodes, study.one_job);
  return study;
}

std::string hours_or_dash(const std::optional<double>& hours) {
  return hours ? format_hours(*hours) : "-";
}

// The sum over jobs; nullopt if one is unknown.
std::optional<double> sum_of(const std::vector<JobCost>& costs,
                             std::optional<double> JobCost::*hours) {
  double sum = 0;
  for (const JobCost& cost : costs) {
    if (!(cost.*hours)) return {};
    sum += *(cost.*hours);
  }
  return sum;
}

// Numbers of nodes, of the jobs that are submitted.
using Chosen = std::set<int>;

struct Costs {
  std::vector<JobCost> jobs;
  std::optional<double> node_hours, device_hours;  // together
};

Costs costs_of(const Study& study, const Chosen& chosen) {
  Costs costs;
  for (const int nodes : chosen) costs.jobs.push_back(cost_of(study.submit, nodes));
  costs.node_hours = sum_of(costs.jobs, &JobCost::node_hours);
  costs.device_hours = sum_of(costs.jobs, &JobCost::device_hours);
  return costs;
}

// Each line begins with `start`.
std::string cost_text(const Study& study, const Chosen& chosen, const std::string& start) {
  Table table({{"nodes"}, {"job"}, {"time limit"}, {"node-hours"}, {"device-hours"}});
  for (const StudyJob& job : study.jobs) {
    if (!chosen.contains(job.nodes)) continue;
    const JobCost cost = cost_of(study.submit, job.nodes);
    table.add({std::to_string(job.nodes), job.id.empty() ? "-" : job.id,
               cost.seconds ? format_seconds(*cost.seconds) : "-", hours_or_dash(cost.node_hours),
               hours_or_dash(cost.device_hours)});
  }
  const Costs costs = costs_of(study, chosen);
  const std::string text =
      table.text() +
      (costs.device_hours
           ? fmt::format("At most {} device-hours together.\n", format_hours(*costs.device_hours))
       : costs.node_hours
           ? fmt::format("At most {} node-hours together.\n", format_hours(*costs.node_hours))
           : "No time limit (-t): the cost is not known.\n");
  return start + std::regex_replace(text, std::regex("\n(?=.)"), "\n" + start);
}

nlohmann::ordered_json with_costs(const Study& study, const Chosen& chosen) {
  nlohmann::ordered_json json = to_json(study);
  for (size_t i = 0; i < study.jobs.size(); ++i) {
    const StudyJob& job = study.jobs[i];
    if (!chosen.contains(job.nodes)) continue;
    const JobCost cost = cost_of(study.submit, job.nodes);
    json["jobs"][i]["node_hours"] = number_or_null(cost.node_hours);
    json["jobs"][i]["device_hours"] = number_or_null(cost.device_hours);
    json["jobs"][i]["text"] = job_script(study, job);
  }
  const Costs costs = costs_of(study, chosen);
  json["node_hours"] = number_or_null(costs.node_hours);
  json["device_hours"] = number_or_null(costs.device_hours);
  return json;
}

// The scripts come first, so that one alone is a file for a scheduler.
void print_scripts(const Study& study, const Chosen& chosen) {
  for (const StudyJob& job : study.jobs)
    if (chosen.contains(job.nodes)) fmt::print("{}\n", job_script(study, job));
  fmt::print("{}", cost_text(study, chosen, "# "));
}

// Returns the number of the job. Throws std::runtime_error with the reason of sbatch.
std::string submit_script(const Study& study, const std::string& script) {
  Command command{.argv = study.submit, .timeout_seconds = kSbatchSeconds};
  command.argv[0] = find_in_path(study.submit[0]);
  command.argv.insert(command.argv.end(), {"--parsable", script});
  const ProcessResult ended = run_command(command);
  if (!ended.ok()) throw std::runtime_error("sbatch " + ended.describe());
  const std::string_view line = trimmed(ended.out);
  const std::string id(line.substr(0, line.find(';')));  // a cluster may follow
  if (id.empty() || id.find_first_not_of("0123456789") != id.npos)
    throw std::runtime_error(
        fmt::format("sbatch printed no number of a job: {}", shortened(id, kNameWidth)));
  return id;
}

// The command that submits the missing jobs.
std::string again(const Study& study) {
  return shell_words(
      {"howmany", "gpus", flag::kResume, study.folder, flag::kSubmit, shell_words(study.submit)});
}

// Throws std::runtime_error with the reason of sbatch.
void submit_jobs(Study& study, const Chosen& chosen) {
  for (const StudyJob& job : study.jobs) {
    if (!chosen.contains(job.nodes)) continue;
    const std::string script = path_of(study, job, ".sh");
    write_text(script, job_script(study, job));
    fs::remove(path_of(study, job, ".exit"));  // of an earlier start
  }
  write_study(study);
  for (StudyJob& job : study.jobs) {
    if (!chosen.contains(job.nodes)) continue;
    const std::string script = path_of(study, job, ".sh");
    try {
      job.id = submit_script(study, script);
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(fmt::format("{} was not submitted: {}. Submit the missing jobs: {}",
                                           script, error.what(), again(study)));
    }
    job.submitted = utc_now("%Y-%m-%dT%H:%M:%SZ");
    write_study(study);
  }
}

// Submits the jobs, or only prints them. `make_folder` is called before anything is written.
StudyRun submit_or_print(const Arguments& a, Study& study, const Chosen& chosen,
                         const std::function<void()>& make_folder) {
  if (!a.dry_run) {
    if (find_in_path(study.submit[0]).empty())
      throw InputError(fmt::format("no program \"{}\" in PATH", study.submit[0]));
    make_folder();
    submit_jobs(study, chosen);
  }
  if (a.json)
    fmt::print("{}", dump_json(with_costs(study, chosen)));
  else if (a.dry_run)
    print_scripts(study, chosen);
  else
    fmt::print("{}See the results: howmany gpus {} {}\n", cost_text(study, chosen, ""),
               flag::kResume.name, printable(shell_word(study.folder)));
  return {};
}

std::string absolute(const std::string& path) {
  return fs::absolute(path).lexically_normal().string();
}

StudyRun begin_study(const Arguments& a) {
  check_new_study(a);
  Study study = new_study(a);
  Chosen all;
  for (const StudyJob& job : study.jobs) all.insert(job.nodes);
  RunFolder::check(a.out);
  study.folder = absolute(a.out.empty() ? "howmany-out/STUDY" : a.out);  // of a dry run
  std::optional<RunFolder> folder;
  return submit_or_print(a, study, all, [&] {
    folder.emplace(RunFolder::create(a.out, "-study"));
    study.folder = absolute(folder->path());
  });
}

std::string jobs_text(const std::vector<JobState>& jobs) {
  using Align = Table::Align;
  Table table({{"nodes"}, {"job"}, {"state", Align::kLeft}, {"rows"}, {"", Align::kLeft}});
  for (const JobState& state : jobs)
    table.add({std::to_string(state.job.nodes), state.job.id.empty() ? "-" : state.job.id,
               state.name, std::to_string(state.rows), state.why});
  return table.text();
}

// Names the missing jobs, and the command that submits them again.
std::string missing_text(const Study& study, const std::vector<JobState>& jobs) {
  std::vector<std::string> missing;
  for (const JobState& state : jobs)
    if (!state.is_complete())
      missing.push_back(fmt::format("{} ({})", number(state.job.nodes, "node"), state.name));
  if (missing.empty()) return "";
  std::string text = printable(fmt::format("Missing: {}.", fmt::join(missing, ", "))) + "\n";
  if (std::ranges::any_of(jobs, [](const JobState& state) {
        return state.has_failed() || state.name == kNotSubmitted;
      }))
    text += "Submit the missing jobs again: " + printable(again(study)) + "\n";
  return text;
}

StudyRun submit_again(const Arguments& a, Study& study, const std::vector<JobState>& states) {
  study.submit = sbatch_words(a.submit);
  Chosen missing;
  for (const JobState& state : states)
    if (state.has_failed() || state.name == kNotSubmitted) missing.insert(state.job.nodes);
  if (missing.empty()) throw InputError("nothing to submit again: no job of the study has failed");
  return submit_or_print(a, study, missing, [] {});
}

StudyRun continue_study(const Arguments& a, const SummaryWriter& write) {
  if (!is_study(a.resume))
    throw InputError(fmt::format("{} holds no study, which {} would submit again", a.resume,
                                 flag::kSubmit.name));
  if (!a.options.empty() || !a.command.empty() || !a.nodes.empty() || a.one_job)
    throw InputError(fmt::format(
        "{}: {} is that of the study; leave it out, or start afresh", flag::kResume.name,
        !a.options.empty() ? a.options[0] : "the command or the number of nodes"));
  const RunFolder folder = RunFolder::reopen(a.resume);
  Study study = read_study(a.resume);
  const Collection collected = collect(study);
  if (!a.submit.empty()) return submit_again(a, study, collected.jobs);
  const bool failed = std::ranges::any_of(collected.jobs, &JobState::has_failed);
  const std::string text = jobs_text(collected.jobs) + missing_text(study, collected.jobs);
  if (a.json || !a.emit.empty())
    print_stderr("{}", text);
  else
    fmt::print("{}\n", text);
  StudyRun run{"", failed ? exit_code::kMeasurementFailed : exit_code::kFine};
  if (!collected.plan) {
    if (a.json) fmt::print("{}", dump_json(to_json(collected.summary)));
    return run;
  }
  write(study.folder, collected.summary);
  write_plan(study.folder + "/plan.json", *collected.plan);
  run.folder = a.resume;
  return run;
}

}  // namespace

bool is_of_study(const Arguments& arguments) {
  return !arguments.submit.empty() || is_study(arguments.resume);
}

StudyRun run_study(const Arguments& arguments, const SummaryWriter& write) {
  return arguments.resume.empty() ? begin_study(arguments) : continue_study(arguments, write);
}

}  // namespace howmany::reports
