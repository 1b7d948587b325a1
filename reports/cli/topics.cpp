// SPDX-License-Identifier: Apache-2.0
#include "reports/cli/topics.h"

#include <algorithm>
#include <string_view>

#include "reports/cli/commands.h"

namespace howmany::reports {
namespace {

constexpr const char* kAboutMethod =
    R"(A step is a whole training step: wait for data, forward, backward, gradient exchange,
optimizer. The time of a step is the maximum over ranks.

Before anything is timed, the first step of a configuration is checked against the mode
single on one device. Wrong gradients are an error, never a number.

Every configuration is measured once a round, each time in a fresh process. Rounds run
forwards and backwards alternately; there are three by default (--rounds). Ratios are taken
within a round, so that a machine that slows down slows both sides.

  speedup      T(1)/T(n) for strong scaling (--global-batch), n T(1)/T(n) for weak scaling
               (--batch-per-device)
  efficiency   speedup/n
  interval     95 %, Student's t of the logarithms over rounds; with fewer than three rounds,
               order statistics of the steps of each run
  answer       the largest number of devices whose efficiency interval lies at or above
               --min-efficiency (default: 0.8)

The time to train is the measured rate applied to --samples. Nothing else is extrapolated.

Results carry flags that limit what they prove:

  oversubscribed   ranks shared cores or a GPU (--oversubscribe); never recommended
  rehearsal        ranks shared a GPU; the run shows that the mode works, not how fast
  not converged    the time was up before the interval was tight
  interrupted      the run ended early
  failed           the run ended with an error, which follows

Without GPUs, disjoint sets of CPU cores stand in for devices: cpu:0, cpu:1 and so on.
)";

constexpr const char* kAboutOutput =
    R"(A measurement leaves a folder: --out, or howmany-out/<UTC time>. Every file is replaced as a
whole after each run, so an interrupted measurement keeps what it had. To continue it, use
howmany gpus --resume DIR.

  summary.json           the answer and every measurement with its interval, schema
                         howmany.summary/1
  summary.csv            the same measurements, one row per measurement and metric
  report.html            the same as one page with charts; it loads nothing and runs no script
  speedup.json           gpus: every run in Google Benchmark's format
  speedup.samples.jsonl  gpus: every timed step, one line per run
  plan.json              gpus: the request with every default resolved, and the machine
  study.json             gpus --submit: the jobs, whose results are in nodes-1, nodes-2, ...
  trace.pftrace          gpus --profile: a trace for ui.perfetto.dev
  why.pftrace            why: the recorded steps of all ranks, for ui.perfetto.dev
  loader.json            workers: every run; loader.samples.jsonl has the samples
  backend.json           backend: every run; backend.samples.jsonl has the samples
  transfer.json          transfer: every run; transfer.samples.jsonl has the samples
  base.json              gate: the runs of the old program; candidate.json those of the new one
  comparison.json        gate: the verdicts, schema howmany.comparison/1

The answer goes to stdout, progress to stderr. With --json, stdout is summary.json and nothing
else.
)";

constexpr const char* kAboutExitCodes = R"(The exit code says how a command ended.

  0    success
  1    gate or compare found a regression; selftest found a failed test; backend or transfer
       found wrong data
  2    wrong usage or input; nothing was measured
  3    a measurement failed; what was measured is kept
  4    compare or gate: the machines cannot be compared (--force compares them)
  5    compare or gate: nothing could be judged; with --strict: a measurement is inconclusive
  130  interrupted (Ctrl-C, SIGTERM); what was measured is kept

The command history exits with 0 whatever it finds.
)";

constexpr const char* kAboutEnvironment = R"(Resource limits and launchers:

  CUDA_VISIBLE_DEVICES        the GPUs that are used; of AMD's, ROCR_VISIBLE_DEVICES selects
                              first, then HIP_VISIBLE_DEVICES, or this one if that is empty
  SLURM_CPUS_PER_TASK         limits the cores, as SLURM_CPUS_ON_NODE does; so do the affinity
                              mask, the cpuset and the cgroup quota
  RANK, WORLD_SIZE            rank and number of ranks, with LOCAL_RANK, LOCAL_WORLD_SIZE,
                              MASTER_ADDR and MASTER_PORT, as torchrun sets them; the variables
                              of srun and mpirun are read as well
  HOWMANY_IFACE               network interface of gloo
  VIRTUAL_ENV                 the Python in which howmany backend looks for torch first
  LD_LIBRARY_PATH             where libraries are sought that are opened at run time: NCCL,
                              cuBLASLt, cuDNN

The command itself:

  HOWMANY_BENCH_DIR           folder of the bench programs (default: the folder of howmany)
  NO_COLOR                    disables colour if set and not empty
  TERM                        disables colour if dumb or not set
)";

constexpr HelpTopic kTopics[] = {
    {"method", "How a number is measured and what supports it", kAboutMethod},
    {"output", "The files of a result folder", kAboutOutput},
    {"exit-codes", "What each exit code means", kAboutExitCodes},
    {"environment", "Environment variables that are read", kAboutEnvironment},
};

}  // namespace

std::span<const HelpTopic> help_topics() { return kTopics; }

const HelpTopic* find_help_topic(const std::string& name) {
  std::string_view wanted = name;
  if (wanted == "evidence") wanted = "method";
  const auto found = std::ranges::find(
      kTopics, wanted, [](const HelpTopic& topic) { return std::string_view(topic.name); });
  return found == std::end(kTopics) ? nullptr : found;
}

std::vector<std::string> help_subjects() {
  std::vector<std::string> names;
  for (const HelpTopic& topic : kTopics) names.emplace_back(topic.name);
  for (const CommandRow& row : commands()) names.emplace_back(row.name);
  return names;
}

}  // namespace howmany::reports
