// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/slurm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/base/schema/context.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "core/base/text/shell.h"
#include "reports/gpus/plan.h"
#include "reports/results/device_kind.h"
#include "reports/results/plain_json.h"

namespace howmany::reports {
namespace {

const Point& recommended_point(const Advice& advice) {
  const auto found = std::find_if(advice.points.begin(), advice.points.end(), [&](const Point& p) {
    return p.devices == advice.recommended && p.mode == advice.mode && p.backend == advice.backend;
  });
  if (found == advice.points.end()) throw InputError("the recommended row is not in the table");
  return *found;
}

constexpr double kMinMinutes = 5;  // includes the start of the job
constexpr double kMaxMinutes = 1e8;

// Returns 1.5 times the measured time in whole minutes, with a comment that explains it.
std::string time_limit(double samples, double samples_per_s) {
  const double measured = samples / samples_per_s / 60;
  if (!(measured <= kMaxMinutes))
    throw InputError(fmt::format("no job script: training would take {}, longer than any job",
                                 format_seconds(60 * measured)));
  const bool least = measured * 1.5 < kMinMinutes;
  const auto minutes = static_cast<int64_t>(std::ceil(least ? kMinMinutes : measured * 1.5));
  return fmt::format("{}-{:02}:{:02}:00  # for {:.0f} samples, {}", minutes / 1440,
                     minutes / 60 % 24, minutes % 60, samples,
                     least ? fmt::format("which take {}; five minutes are the least",
                                         format_seconds(measured * 60))
                           : "half as long again as measured");
}

constexpr const char* kJobPort = "29500";
constexpr const char* kJobHead =
    "head=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n";

struct Job {
  const Request& request;
  const Advice& advice;
  const Workload& workload;
  bool cuda = false;
  int devices = 1, tasks = 1, nodes = 1;
  double samples = 0;  // to train, rounded up
};

Job job_of(const Request& request, const Advice& advice, double samples) {
  const auto workload = std::find_if(request.workloads.begin(), request.workloads.end(),
                                     [&](const Workload& w) { return w.model == advice.model; });
  if (workload == request.workloads.end()) throw InputError("the model is not in the request");
  Job job{request, advice, *workload};
  job.samples = std::ceil(samples);
  const DeviceKind kind = device_kind(fmt::format("{}", fmt::join(request.devices, ",")));
  if (kind == DeviceKind::kMixed)
    throw InputError("no job script: a job requests GPUs or cores, and the devices are both");
  job.cuda = kind == DeviceKind::kGpu;
  job.devices = *advice.recommended;
  job.nodes = recommended_point(advice).nodes;
  const double ranks = recommended_point(advice).ranks;
  job.tasks = std::isfinite(ranks)
                  ? static_cast<int>(std::clamp(ranks, 1.0, static_cast<double>(job.devices)))
                  : job.devices;
  // One task drives all devices with the local backend. It also does on CPUs with fewer ranks than
  // devices, because Slurm cannot deal out several slices of cores to a task.
  if (request.script.given())
    job.tasks = job.nodes;
  else if (advice.backend == "local" || (!job.cuda && job.tasks < job.devices))
    job.tasks = 1;
  return job;
}

// The number of samples in files is unknown here, so the user sets the number of epochs.
std::string data(const Job& job) {
  if (!job.request.forwarded["data"].empty()) return " --epochs 1";
  return fmt::format(" --synthetic-samples {:.0f} --epochs 1", job.samples);
}

std::string command(const Job& job) {
  const Request& request = job.request;
  const bool weak = request.scaling == Scaling::kWeak;
  std::string text = fmt::format("howmany train --model {} --mode {} --global-batch {}",
                                 shell_word(job.advice.model), job.advice.mode,
                                 weak ? job.workload.batch * job.devices : job.workload.batch);
  // srun gives each task its own cores, but shows it all GPUs of the job.
  const int here = job.devices / job.nodes;
  if (job.tasks == 1 || job.cuda)
    text += fmt::format(" --devices {}:0{}", job.cuda ? "cuda" : "cpu",
                        here > 1 ? fmt::format("-{}", here - 1) : "");
  if (job.advice.backend != "local") text += " --backend " + job.advice.backend;
  if (!job.cuda) text += fmt::format(" --cores-per-device {}", request.cores_per_device);
  if (request.sync_batchnorm) text += " --sync-batchnorm";
  if (request.workers >= 0) text += fmt::format(" --workers {}", request.workers);
  for (const auto& [name, value] : request.forwarded.given())
    text += fmt::format(" --{} {}", name, shell_word(value));
  return text + data(job);
}

// The first node's name is known within the job only.
std::string word_of_job(const std::string& word) {
  std::string text;
  for (size_t at = 0; at <= word.size();) {
    const size_t end = std::min(word.find(kHead, at), word.size());
    if (end > at || word.empty()) text += shell_word(word.substr(at, end - at));
    if (end == word.size()) break;
    text += "\"$head\"";
    at = end + std::string_view(kHead).size();
  }
  return text;
}

// One task on each node starts its ranks, as was measured. A command without {n} has one process.
std::string script_job(const Job& job, const Script& script, int cores) {
  if (script.words.empty()) return "\n# your command, as given to howmany gpus after --\n";
  const bool across = job.nodes > 1 && !script.across.empty();
  Words words = across ? script.across : script.words;
  const bool ranks = across || script.has_count();
  for (const auto& [what, with] : {std::pair{kCount, std::to_string(job.devices)},
                                   {kNodes, std::to_string(job.nodes)},
                                   {kPerNode, std::to_string(job.devices / job.nodes)},
                                   {kPort, std::string(kJobPort)}})
    words = replaced(words, what, with);
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word_of_job(word);
  const std::string start =
      across ? fmt::format("srun --cpus-per-task={} --kill-on-bad-exit=1 \\\n  ", cores)
             : std::string();
  return fmt::format("\nexport OMP_NUM_THREADS={}\n{}{}{}\n",
                     job.request.cores_per_device * (ranks ? 1 : job.devices),
                     job.nodes > 1 ? kJobHead : "", start, line);
}

std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' '; }, ' ');
  return text;
}

}  // namespace

std::string slurm_script(const Summary& summary, const std::vector<Advice>& advice,
                         const AdviceOptions& options, const Script& script) {
  if (advice.empty() || !advice[0].recommended)
    throw InputError(advice.empty() ? "no job script: nothing was measured"
                                    : "no job script: " + advice[0].because);
  const auto asked = summary.context.find("howmany_request");
  if (asked == summary.context.end()) throw InputError("no job script: the summary has no request");
  const Request request = request_from_json(*asked, "summary.json");
  const Job job = job_of(request, advice[0], options.samples_to_train);
  const int cores = request.cores_per_device * (job.devices / job.tasks);
  const bool of_files = !request.forwarded["data"].empty();
  std::string text = fmt::format(
      "#!/bin/bash\n"
      "# {}\n"
      "# Measured on {}. Add{} the partition and account of your cluster.\n"
      "#SBATCH --job-name=howmany\n"
      "#SBATCH --nodes={}\n"
      "{}"
      "#SBATCH --cpus-per-task={}\n"
      "#SBATCH --time={}\n",
      one_line(advice[0].because), one_line(json_text(json_member(summary.context, context::kCpu))),
      of_files ? " the --epochs that train the samples below, and" : "", job.nodes,
      job.nodes > 1 ? fmt::format("#SBATCH --ntasks-per-node={}\n", job.tasks / job.nodes)
                    : fmt::format("#SBATCH --ntasks={}\n", job.tasks),
      cores, time_limit(job.samples, recommended_point(advice[0]).samples_per_s));
  if (job.cuda)
    text += job.nodes > 1 ? fmt::format("#SBATCH --gpus-per-node={}\n", job.devices / job.nodes)
                          : fmt::format("#SBATCH --gpus={}\n", job.devices);
  if (request.script.given()) return text + script_job(job, script, cores);
  // --cpu-bind: each task gets its own cores. --kill-on-bad-exit: no task waits for a dead one.
  return text +
         fmt::format("\nsrun{} --cpus-per-task={} --cpu-bind=cores --kill-on-bad-exit=1 \\\n  {}\n",
                     advice[0].backend == "mpi" && job.tasks > 1 ? " --mpi=pmix" : "", cores,
                     command(job));
}

}  // namespace howmany::reports
