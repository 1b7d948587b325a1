// SPDX-License-Identifier: Apache-2.0
#include "reports/submit/collect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/process.h"
#include "core/base/schema/marks.h"
#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/base/text/files.h"
#include "core/base/text/format.h"
#include "core/base/text/lines.h"
#include "core/base/text/table.h"
#include "reports/gpus/advise.h"
#include "reports/gpus/command.h"
#include "reports/results/machine.h"

namespace howmany::reports {
namespace {

namespace fs = std::filesystem;

constexpr double kSlurmSeconds = 30;
constexpr int kTailBytes = 1 << 14;  // of the output of a job
constexpr size_t kWhyWidth = 160;
constexpr std::string_view kEnded[] = {"COMPLETED", "FAILED",    "TIMEOUT",       "PREEMPTED",
                                       "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL",
                                       "DEADLINE",  "REVOKED"};

constexpr const char* kAboutScript[] = {mark::kFailsOnNodes, mark::kFailsWithRanks, mark::kHasGroup,
                                        mark::kUsesOneDevice};

// The states of jobs by their number; nullopt if Slurm does not answer.
using States = std::map<std::string, std::string>;

// Adds the lines "17|CANCELLED by 0". Returns false if the program is missing or fails.
bool add_states(const Words& words, States& states) {
  Command command{.argv = words, .timeout_seconds = kSlurmSeconds};
  command.argv[0] = find_in_path(words[0]);
  if (command.argv[0].empty()) return false;
  const ProcessResult ended = run_command(command);
  if (!ended.ok()) return false;
  for (const std::string_view line : lines_of(ended.out)) {
    const size_t bar = line.find('|');
    if (bar == line.npos) continue;
    const std::string_view state = line.substr(bar + 1);
    states[std::string(line.substr(0, bar))] = state.substr(0, state.find_first_of(" +"));
  }
  return true;
}

// squeue knows a new job before sacct does, and forgets an old one.
std::optional<States> states_of_slurm(const Study& study) {
  Words ids;
  for (const StudyJob& job : study.jobs)
    if (!job.id.empty()) ids.push_back(job.id);
  if (ids.empty()) return States();
  States states;
  const bool old =
      add_states({"sacct", "--allocations", "--noheader", "--parsable2", "--format=JobIDRaw,State",
                  fmt::format("--jobs={}", fmt::join(ids, ","))},
                 states);
  const bool now =
      add_states({"squeue", "--me", "--noheader", "--states=all", "--format=%A|%T"}, states);
  return old || now ? std::optional(states) : std::nullopt;
}

bool is_about_failure(std::string_view line) {
  return line.starts_with("howmany: ") || lower(line).find("error") != line.npos;
}

// Returns the last line about an error near the end of a job's output; empty if there is none.
std::string reason_in(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const auto size = static_cast<int64_t>(file.tellg());
  file.seekg(std::max<int64_t>(0, size - kTailBytes));
  const std::string tail{std::istreambuf_iterator<char>(file), {}};
  const std::vector<std::string_view> lines = lines_of(tail);
  const auto last = std::find_if(lines.rbegin(), lines.rend(), is_about_failure);
  return last == lines.rend() ? "" : shortened(printable(std::string(*last)), kWhyWidth);
}

// True if howmany exited with 0 in the job. Returns nullopt if it has not ended there.
std::optional<bool> has_succeeded(const Study& study, const StudyJob& job) {
  const std::string path = path_of(study, job, ".exit");
  if (!fs::exists(path)) return {};
  return trimmed(read_text(path)) == "0";
}

JobState state_of(const Study& study, const StudyJob& job, const std::optional<States>& slurm) {
  JobState state{.job = job};
  const auto found = slurm ? slurm->find(job.id) : States::const_iterator();
  const bool known = slurm && found != slurm->end() && !job.id.empty();
  const bool runs = known && std::ranges::find(kEnded, found->second) == std::end(kEnded);
  const std::optional<bool> good = has_succeeded(study, job);
  state.name = runs                ? found->second
               : good == true      ? "COMPLETED"  // perhaps of a script that was submitted by hand
               : known             ? found->second
               : good              ? "FAILED"
               : job.id.empty()    ? kNotSubmitted
               : slurm.has_value() ? kNotInQueue
                                   : kUnknown;
  state.has_ended = !runs && state.name != kNotSubmitted && state.name != kUnknown;
  if (state.has_failed()) state.why = reason_in(path_of(study, job, ".out"));
  return state;
}

// The results of one job.
struct JobResults {
  Plan plan;
  Summary summary;
};

std::optional<JobResults> results_of(const std::string& folder) {
  if (!fs::exists(folder + "/summary.json")) return {};
  return JobResults{read_plan(folder + "/plan.json"), read_summary(folder + "/summary.json")};
}

bool is_of_one_device(const Measurement& m) { return parameter_of(m, parameter::kDevices) == "1"; }

// How the script can be started, as only a job of several nodes may have found out.
bool is_about_script(const std::string& flag) {
  return std::ranges::any_of(kAboutScript,
                             [&](const char* start) { return flag.starts_with(start); });
}

// Merges the measurements of jobs, the smallest first.
class Merger {
 public:
  void add(const Summary& summary) {
    for (const Measurement& m : summary.measurements)
      is_of_one_device(m) ? add_baseline(m) : all_.push_back(m);
  }

  std::vector<Measurement> measurements() {
    for (Measurement& m : all_)
      if (const std::string spread = spread_of(m); !spread.empty())
        m.flags.push_back(mark::kBaselines + spread);
    return std::move(all_);
  }

 private:
  static std::string key_of(const Measurement& m) {
    return m.suite + "/" + m.name + "/" + parameter_of(m, parameter::kBackend);
  }

  void add_baseline(const Measurement& m) {
    if (const double rate = value_of(m, metric::kSamplesPerS); std::isfinite(rate))
      rates_[key_of(m)].push_back(rate);
    const auto same = std::ranges::find_if(all_, [&](const Measurement& one) {
      return is_of_one_device(one) && key_of(one) == key_of(m);
    });
    if (same == all_.end()) {
      all_.push_back(m);
      return;
    }
    if (has_failed(*same) && !has_failed(m)) *same = m;
    for (const std::string& flag : m.flags)
      if (is_about_script(flag) && std::ranges::find(same->flags, flag) == same->flags.end())
        same->flags.push_back(flag);
  }

  // "3 jobs, 4.1 % apart"; empty for other rows than the baseline, and with one job.
  std::string spread_of(const Measurement& m) const {
    const auto rates = rates_.find(key_of(m));
    if (parameter_of(m, parameter::kMode) != "single" || !is_of_one_device(m) ||
        rates == rates_.end() || rates->second.size() < 2)
      return "";
    const auto [low, high] = std::ranges::minmax(rates->second);
    return fmt::format("{} jobs, {} apart", rates->second.size(),
                       format_percent(high / low - 1, 1));
  }

  std::vector<Measurement> all_;
  std::map<std::string, std::vector<double>> rates_;  // of the rows of one device
};

void add_counts(const Request& from, Request& to) {
  std::set<int> counts(from.counts.begin(), from.counts.end());
  counts.insert(to.counts.begin(), to.counts.end());
  to.counts.assign(counts.begin(), counts.end());
}

nlohmann::json states_json(const std::vector<JobState>& jobs) {
  nlohmann::json all = nlohmann::json::array();
  for (const JobState& state : jobs)
    all.push_back({{"nodes", state.job.nodes},
                   {"job_id", state.job.id},
                   {"state", state.name},
                   {"complete", state.is_complete()},
                   {"rows", state.rows},
                   {"why", state.why}});
  return all;
}

// Returns what differs between the machines of two jobs.
std::string machine_differs(const nlohmann::json& first, const nlohmann::json& other) {
  const std::string what = difference(first, other);
  return what.empty() ? "" : fmt::format("on another machine than the first ({})", what);
}

// Adds results to the collection. Leaves out those of nodes with other devices.
void add_results(const JobResults& results, Collection& collection, Merger& merger,
                 JobState& state) {
  std::optional<Plan>& plan = collection.plan;
  if (plan && plan->request.devices != results.plan.request.devices) {
    state.why = fmt::format("left out: {} on a node, the first job has {}",
                            results.plan.request.devices.size(), plan->request.devices.size());
    return;
  }
  if (plan && state.why.empty()) state.why = machine_differs(plan->machine, results.plan.machine);
  state.rows = static_cast<size_t>(std::ranges::count_if(
      results.summary.measurements,
      [](const Measurement& m) { return std::isfinite(value_of(m, metric::kSamplesPerS)); }));
  merger.add(results.summary);
  if (const std::optional<Plan> before = std::exchange(plan, results.plan)) {
    add_counts(before->request, plan->request);
    plan->machine = before->machine;
  }
  collection.summary.context = results.summary.context;
  collection.summary.answer = results.summary.answer;
}

}  // namespace

Collection collect(const Study& study) {
  Collection collection;
  const std::optional<States> slurm = states_of_slurm(study);
  Merger merger;
  for (const StudyJob& job : study.jobs) {
    JobState state = state_of(study, job, slurm);
    try {
      if (const auto results = results_of(path_of(study, job)))
        add_results(*results, collection, merger, state);
    } catch (const InputError& error) {
      state.why = error.what();
    }
    collection.jobs.push_back(std::move(state));
  }
  Summary& summary = collection.summary;
  summary.context["howmany_study"] = {{"jobs", states_json(collection.jobs)}};
  if (!collection.plan) return collection;
  summary.context["howmany_date"] = utc_now("%Y-%m-%dT%H:%M:%SZ");
  summary.context["howmany_request"] = to_json(collection.plan->request);
  const AdviceOptions options = options_from_answer(summary.answer, "summary.json");
  summary.measurements = merger.measurements();
  summary.answer["gpus"] = gpus_answer(summary.measurements, options);
  return collection;
}

}  // namespace howmany::reports
