#include "reports/transfer/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "core/base/cli/list_option.h"
#include "core/base/cli/number_check.h"
#include "core/base/cli/output_options.h"
#include "core/base/process.h"
#include "core/base/schema/flags.h"
#include "core/base/text/bytes.h"
#include "core/base/text/format.h"
#include "core/base/text/table.h"
#include "reports/comm/advise.h"
#include "reports/comm/command.h"
#include "reports/results/disturbance.h"
#include "reports/results/machine.h"
#include "reports/transfer/advise.h"
#include "reports/transfer/render.h"

namespace howmany::reports {
namespace {

constexpr double kBeyondTransferBudget = 120;

struct TransferArguments {
  std::vector<std::string> devices, models;
  std::string min_bytes = "64", max_bytes = "256M";
  std::optional<int64_t> batch;
  double time_budget = 30;
  OutputArguments output;
};

std::vector<std::string> bench_arguments(const TransferArguments& a) {
  const int64_t least = parse_bytes(flag::kMinBytes, a.min_bytes),
                most = parse_bytes(flag::kMaxBytes, a.max_bytes);
  if (least > most)
    throw InputError(fmt::format("--min-bytes {} is above --max-bytes {}", least, most));
  std::vector<std::string> argv = {
      flag::kMinBytes,      std::to_string(least), flag::kMaxBytes,
      std::to_string(most), flag::kBudgetSeconds,  fmt::format("{:.3f}", 0.7 * a.time_budget)};
  if (!a.devices.empty())
    argv.insert(argv.end(), {flag::kDevices, fmt::format("{}", fmt::join(a.devices, ","))});
  for (const std::string& model : a.models) argv.insert(argv.end(), {flag::kModel, model});
  if (a.batch) argv.insert(argv.end(), {flag::kBatch, std::to_string(*a.batch)});
  return argv;
}

// With several hosts, each has its own folder.
std::string folder_of(const TransferArguments& a, const Launched& launch) {
  if (!launch.many_hosts()) return result_folder(a.output.out);
  return result_folder(a.output.out.empty()
                           ? "howmany-out/" + utc_now("%Y%m%dT%H%M%SZ") + "-" + launch.host
                           : a.output.out + "/" + launch.host);
}

// Only the first rank of a host measures, because ranks would disturb each other.
int run_transfer(const TransferArguments& a) {
  const Launched launch = read_machine().launch;
  if (!launch.problem.empty()) throw InputError(launch.problem);
  if (launch.world > 1 && launch.local_world == 0)
    throw InputError(
        fmt::format("{} does not tell which ranks are on this host: set LOCAL_RANK and "
                    "LOCAL_WORLD_SIZE, or start one",
                    launch.launcher));
  if (launch.local_rank > 0) return 0;
  const std::vector<std::string> arguments = bench_arguments(a);
  const std::string folder = folder_of(a, launch);
  catch_interrupts();
  if (!a.output.quiet) fmt::print(stderr, "measuring copies, about {:.0f} s\n", a.time_budget);
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
  TransferAdvice advice = advise_transfer(summary.measurements, gpu_of(summary.context));
  mark_disturbed(busy_elsewhere_in(summary.context), advice);
  summary.answer["transfer"] = to_json(advice, summary.measurements);
  const nlohmann::json request = {
      {"devices", fmt::format("{}", fmt::join(a.devices, ","))},
      {"model", a.models},
      {"min-bytes", a.min_bytes},
      {"max-bytes", a.max_bytes},
      {"batch", a.batch ? nlohmann::json(*a.batch) : nlohmann::json(nullptr)},
      {"time-budget", a.time_budget}};
  const bool color = !a.output.no_color && color_wanted(STDOUT_FILENO);
  return finish(folder, summary, request, {run}, a.output,
                (launch.many_hosts() ? "On " + launch.host + ": " : "") +
                    render_transfer(advice, summary.measurements, color));
}

}  // namespace

void add_transfer_command(CLI::App& app, int& code) {
  auto* sub = app.add_subcommand("transfer", "What moving data costs here, measured");
  const auto a = std::make_shared<TransferArguments>();
  sub->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_list(*sub, flag::kDevices, a->devices,
           "Devices to copy to and from [the GPUs here, else cpu:0,cpu:1]");
  auto* model = sub->add_option(flag::kModel, a->models, "Also the copies of one training step")
                    ->allow_extra_args(false)
                    ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  sub->add_option(flag::kBatch, a->batch, "Samples in that step [by model]")
      ->needs(model)
      ->check(whole_up_to(kMostBatch));
  sub->add_option(flag::kMinBytes, a->min_bytes, "Smallest copy, 1024 or 1K [64]");
  sub->add_option(flag::kMaxBytes, a->max_bytes, "Largest copy [256M]");
  sub->add_option("--time-budget", a->time_budget, "Seconds for the whole measurement [30]")
      ->check(above_zero());
  add_output_options(*sub, a->output);
  sub->footer(
      "Examples:\n"
      "  howmany transfer                              # copies by size and threads\n"
      "  howmany transfer --model resnet18 --batch 32  # and what a training step moves\n"
      "  howmany transfer --devices cuda:0 --model resnet18   # what pin_memory saves of it\n"
      "  howmany transfer --max-bytes 1G --json > summary.json\n"
      "  srun -N 2 --ntasks-per-node 1 howmany transfer --out X  # a host's own in X/<host>\n"
      "Exit codes: 0 fine, 1 wrong data, 2 bad usage, 3 a measurement failed (the rest is kept).");
  sub->callback([a, &code] { code = run_transfer(*a); });
}

}  // namespace howmany::reports
