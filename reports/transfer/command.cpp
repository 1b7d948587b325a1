// SPDX-License-Identifier: Apache-2.0
#include "reports/transfer/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "core/base/cli/number_check.h"
#include "core/base/cli/option.h"
#include "core/base/cli/output_options.h"
#include "core/base/schema/flags.h"
#include "core/base/text/print_stderr.h"
#include "core/base/text/table.h"
#include "reports/comm/command.h"
#include "reports/nodes/nodes.h"
#include "reports/results/disturbance.h"
#include "reports/results/machine.h"
#include "reports/results/run_folder.h"
#include "reports/transfer/advise.h"
#include "reports/transfer/render.h"

namespace howmany::reports {
namespace {

constexpr double kBeyondTransferBudget = 120;
constexpr double kBenchSeconds = 1;  // start and exit of the bench

struct TransferArguments {
  std::vector<std::string> devices, models;
  int64_t min_bytes = 64, max_bytes = int64_t{256} << 20;
  std::optional<int64_t> batch;
  double time_budget = 30;
  OutputArguments output;
};

std::vector<std::string> bench_arguments(const TransferArguments& a) {
  if (a.min_bytes > a.max_bytes)
    throw InputError(
        fmt::format("--min-bytes {} is above --max-bytes {}", a.min_bytes, a.max_bytes));
  std::vector<std::string> argv = {
      flag::kMinBytes,
      std::to_string(a.min_bytes),
      flag::kMaxBytes,
      std::to_string(a.max_bytes),
      flag::kTimeBudget,
      fmt::format("{:.3f}", std::max(a.time_budget - kBenchSeconds, 0.5 * a.time_budget))};
  if (!a.devices.empty())
    argv.insert(argv.end(), {flag::kDevices, fmt::format("{}", fmt::join(a.devices, ","))});
  for (const std::string& model : a.models) argv.insert(argv.end(), {flag::kModel, model});
  if (a.batch) argv.insert(argv.end(), {flag::kBatchPerDevice, std::to_string(*a.batch)});
  return argv;
}

// With several hosts, each has its own folder.
RunFolder folder_of(const std::string& out, const Launched& launch) {
  if (!launch.many_hosts()) return RunFolder::create(out);
  return out.empty() ? RunFolder::create(out, "-" + launch.host)
                     : RunFolder::create(out + "/" + launch.host);
}

// Only the first rank of a host measures, because ranks would disturb each other.
int run_transfer(const TransferArguments& a) {
  const Launched launch = read_machine().launch;
  if (!launch.problem.empty()) throw InputError(launch.problem);
  if (launch.world > 1 && launch.local_world == 0)
    throw InputError(
        fmt::format("{} does not say which ranks are on this host: set LOCAL_RANK and "
                    "LOCAL_WORLD_SIZE, or start one",
                    launch.launcher));
  if (launch.local_rank > 0) return 0;
  const std::vector<std::string> arguments = bench_arguments(a);
  const RunFolder held = folder_of(a.output.out, launch);
  const std::string& folder = held.path();
  if (!a.output.quiet) print_stderr("measuring copies, about {:.0f} s\n", a.time_budget);
  const SuiteCommand command{.program = "transfer_bench",
                             .folder = folder,
                             .arguments = arguments,
                             .timeout_seconds = 3 * a.time_budget + kBeyondTransferBudget,
                             .verbose = a.output.verbose};
  // A second run takes as long as the first.
  const SuiteRun run =
      measure_undisturbed([&] { return run_suite(command); },
                          [&](const SuiteRun& first) {
                            return launch.world == 1 && 2 * first.ended.seconds <= a.time_budget;
                          });
  write_suite(folder, "transfer", {run});
  Summary summary;
  summary.context = run.file.context;
  if (launch.world == 1) add_busy_elsewhere({run}, summary.context);
  summary.measurements = measurements_of(run);
  TransferAdvice advice = advise_transfer(summary.measurements);
  mark_disturbed(busy_elsewhere_in(summary.context), advice);
  summary.answer["transfer"] = to_json(advice, summary.measurements);
  const nlohmann::json request = {
      {"devices", fmt::format("{}", fmt::join(a.devices, ","))},
      {"model", a.models},
      {"min-bytes", a.min_bytes},
      {"max-bytes", a.max_bytes},
      {"batch", a.batch ? nlohmann::json(*a.batch) : nlohmann::json(nullptr)},
      {"time-budget", a.time_budget}};
  const bool color = color_wanted(STDOUT_FILENO);
  return finish(folder, summary, request, {run}, a.output,
                (launch.many_hosts() ? "On " + launch.host + ": " : "") +
                    render_transfer(advice, summary.measurements, color));
}

}  // namespace

void add_transfer_command(CLI::App& sub, int& code) {
  const auto a = std::make_shared<TransferArguments>();
  sub.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_devices(sub, a->devices, "the GPUs, else cpu:0,cpu:1");
  auto* model = add_repeatable(sub, flag::kModel, a->models);
  add_option(sub, flag::kBatchPerDevice, a->batch, "by model")
      ->needs(model)
      ->check(whole_between(1, kMaxBatch));
  add_bytes(sub, flag::kMinBytes, a->min_bytes, "64");
  add_bytes(sub, flag::kMaxBytes, a->max_bytes, "256M");
  add_option(sub, flag::kTimeBudget, a->time_budget)->check(above_zero());
  add_output_options(sub, a->output);
  sub.footer(
      "With --model, the copies of one training step are measured too.\n\n"
      "Examples:\n"
      "  howmany transfer                              # copies by size and threads\n"
      "  howmany transfer --model resnet18 --batch-per-device 32  # and what a training step "
      "moves\n"
      "  howmany transfer --devices cuda:0 --model resnet18   # what pin_memory saves of it\n"
      "  howmany transfer --max-bytes 1G --json > summary.json\n"
      "  srun -N 2 --ntasks-per-node 1 howmany transfer --out X  # a host's own in X/<host>\n"
      "Exit codes: 0 fine, 1 wrong data, 2 bad usage, 3 a measurement failed (the rest is kept).");
  sub.callback([a, &code] { code = measure_within_job(1, 1, [&] { return run_transfer(*a); }); });
}

}  // namespace howmany::reports
