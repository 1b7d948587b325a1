// SPDX-License-Identifier: Apache-2.0
#include "reports/comm/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>

#include "core/base/cli/number_check.h"
#include "core/base/cli/option.h"
#include "core/base/cli/output_options.h"
#include "core/base/schema/exit_codes.h"
#include "core/base/schema/flags.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"
#include "core/base/text/print_stderr.h"
#include "core/base/text/table.h"
#include "reports/comm/advise.h"
#include "reports/comm/json.h"
#include "reports/comm/measure.h"
#include "reports/comm/render.h"
#include "reports/comm/select.h"
#include "reports/nodes/nodes.h"
#include "reports/predict/script_buckets.h"
#include "reports/results/device_kind.h"
#include "reports/results/disturbance.h"
#include "reports/results/machine.h"
#include "reports/results/run_folder.h"

namespace howmany::reports {
namespace {

constexpr double kMinBackendRun = 2.4;   // seconds of one backend: its start and its cases
constexpr double kBudgetWithTorch = 80;  // seconds; enough for three rounds of four backends

std::string devices_of(const BackendArguments& a, const Machine& machine) {
  if (!a.devices.empty()) return fmt::format("{}", fmt::join(a.devices, ","));
  if (machine.cuda.size() > 1) return fmt::format("{}", fmt::join(machine.cuda, ","));
  return machine.cpu_devices > 2 ? fmt::format("cpu:0-{}", std::min(machine.cpu_devices, 4) - 1)
                                 : "cpu:0,cpu:1";
}

// Checks the arguments before measuring, by having the bench list its cases.
void check_arguments(const BackendArguments& a, const std::string& devices,
                     const std::vector<std::string>& backends) {
  for (const std::string& backend : backends) {
    const std::string checked = is_torch_backend(backend) ? "local" : backend;  // same cases
    Command command{.argv = backend_bench_arguments(a, devices, checked, 1), .timeout_seconds = 60};
    command.argv.insert(command.argv.begin(), find_program("backend_bench"));
    command.argv.emplace_back(flag::kList);
    const ProcessResult ended = run_command(command);
    if (ended.how == ProcessResult::How::kExited && ended.code == 2)
      throw InputError(ended.last_line());
    if (!ended.ok()) throw std::runtime_error("backend_bench " + ended.describe());
  }
}

// With one rank, a collective is empty or a copy.
void refuse_one_rank(const BackendArguments& a) {
  constexpr const char* kWhy = "a backend carries data between ranks, and one has no other";
  if (a.devices.size() == 1)
    throw InputError(
        fmt::format("--devices {}: {}; give two or more, such as cpu:0,cpu:1", a.devices[0], kWhy));
  const auto one = [](const std::string& count) { return count == "1"; };
  if (!a.counts.empty() && std::ranges::all_of(a.counts, one))
    throw InputError(fmt::format("--device-count 1: {}; give 2 or more", kWhy));
}

nlohmann::json request_of(const BackendArguments& a, const std::string& devices,
                          const std::vector<std::string>& backends) {
  return {{"devices", devices},
          {"backend", backends},
          {"ops", a.ops},
          {"dtype", a.dtypes},
          {"device-count", a.counts},
          {"min-bytes", a.min_bytes},
          {"max-bytes", a.max_bytes},
          {"model", a.models},
          {"time-budget", a.time_budget},
          {"oversubscribe", a.oversubscribe}};
}

int conclude(const BackendArguments& a, const std::string& folder, const nlohmann::json& request,
             const BackendMeasuring& measuring, const std::vector<std::string>& notes) {
  Summary summary;
  for (const SuiteRun& run : measuring.runs)
    if (summary.context.empty()) summary.context = run.file.context;
  if (!request.contains("launcher")) add_busy_elsewhere(measuring.runs, summary.context);
  summary.measurements = measuring.table();
  BackendAdvice advice = advise_backend(summary.measurements);
  mark_disturbed(busy_elsewhere_in(summary.context), advice);
  advice.notes.insert(advice.notes.end(), notes.begin(), notes.end());
  summary.answer["backend"] = to_json(advice, summary.measurements);
  const bool color = color_wanted(STDOUT_FILENO);
  return finish(folder, summary, request, measuring.runs, a.output,
                render_backend(advice, summary.measurements, color));
}

void warn_if_short(const BackendArguments& a, size_t backends) {
  const double least = kCeilingSeconds + kMinBackendRun * static_cast<double>(backends);
  if (a.output.quiet || a.time_budget >= least) return;
  print_stderr("--time-budget {:.0f} is too short: {} backends take at least {:.0f} s\n",
               a.time_budget, backends, least);
}

// The first of "cpu:0-3" or "cuda:2,cuda:3".
std::string first_of(const std::string& devices) {
  const std::string first = devices.substr(0, devices.find(','));
  return first.substr(0, first.find('-'));
}

void add_script(const std::string& devices, const std::string& folder, BackendArguments& a) {
  if (a.command.empty()) return;
  std::string notice;
  const Script script = script_from(a.command, &notice);
  if (!a.output.quiet) print_stderr("Starting {} once, for its gradient buckets.\n", script.name);
  a.models.push_back(script_buckets(script, first_of(devices), folder));
}

// A script runs over the backends of its own torch, and its buckets are all-reduced.
void default_to_script(BackendArguments& a) {
  if (a.command.empty()) return;
  if (a.backends.empty()) a.backends = {"torch:gloo", "torch:nccl"};
  if (a.ops.empty()) a.ops = {"all_reduce"};
  if (a.torch.python.empty()) a.torch.python = python_of(a.command);
}

int measure_alone(BackendArguments a, const Machine& machine) {
  default_to_script(a);
  const std::string devices = devices_of(a, machine);
  const BackendSelection chosen =
      select_backends(a.backends, a.torch, machine, device_kind(devices) == DeviceKind::kGpu);
  check_arguments(a, devices, chosen.backends);
  refuse_one_rank(a);
  const bool with_torch = std::ranges::any_of(chosen.backends, is_torch_backend);
  if (a.has_default_budget && with_torch) a.time_budget = kBudgetWithTorch;
  const RunFolder held = RunFolder::create(a.output.out);
  const std::string& folder = held.path();
  warn_if_short(a, chosen.backends.size());
  add_script(devices, folder, a);
  BackendMeasuring measuring(a, folder, chosen.torch.python, machine.cores);
  measuring.ceilings();
  measuring.rounds(chosen.backends, devices,
                   plan_rounds(a.time_budget - kCeilingSeconds,
                               static_cast<int>(chosen.backends.size()), a.rounds));
  nlohmann::json request = request_of(a, devices, chosen.backends);
  if (with_torch) request["torch"] = to_json(chosen.torch);
  return conclude(a, folder, request, measuring, chosen.left_out);
}

// Returns why the machine's ceilings do not apply to the ranks, or "".
std::string no_ceilings(const Machine& machine) {
  const Launched& launch = machine.launch;
  if (launch.local_world == 0) return "the launcher does not say which ranks share a host";
  if (launch.many_hosts()) return fmt::format("{} on a host", launch.local_world);
  return machine.usable_cores < launch.world
             ? fmt::format("rank 0 has {} of the cores", machine.usable_cores)
             : "";
}

std::string who_started(const Machine& machine) {
  const std::string why = no_ceilings(machine);
  return fmt::format(
      "{} started {} ranks{}.", machine.launch.launcher, machine.launch.world,
      why.empty() ? "" : ", " + why + ", so what the machine can move was not measured");
}

// Runs on the first rank, which starts the bench as a child and reports. Measures the ceilings
// last, after the other ranks ended.
int measure_for_all(const BackendArguments& a, const Machine& machine, BackendSelection chosen,
                    const std::vector<std::string>& arguments, double seconds) {
  const std::string devices = fmt::format("{}", fmt::join(a.devices, ","));
  check_arguments(a, devices, {fmt::format("{}", fmt::join(chosen.backends, ","))});
  const RunFolder held = RunFolder::create(a.output.out);
  const std::string& folder = held.path();
  BackendMeasuring measuring(a, folder);
  measuring.together(arguments, seconds);
  if (no_ceilings(machine).empty() && measuring.runs.back().problem.empty()) measuring.ceilings();
  nlohmann::json request = request_of(a, devices, chosen.backends);
  request["launcher"] = machine.launch.launcher;
  request["ranks"] = machine.launch.world;
  request["ranks_per_host"] = machine.launch.local_world;  // 0: unknown
  chosen.left_out.insert(chosen.left_out.begin(), who_started(machine));
  return conclude(a, folder, request, measuring, chosen.left_out);
}

// Runs on every rank of a launcher. All ranks but the first exec the bench.
int measure_among_many(const BackendArguments& a, const Machine& machine) {
  const Launched& launch = machine.launch;
  if (!a.command.empty())
    throw InputError("a command after -- is measured on one host, without a launcher");
  if (a.rounds.value_or(1) > 1)
    throw InputError(fmt::format("--rounds: {} starts the ranks once", launch.launcher));
  const std::string devices = fmt::format("{}", fmt::join(a.devices, ","));
  const bool gpus =
      devices.empty() ? !machine.cuda.empty() : device_kind(devices) == DeviceKind::kGpu;
  const BackendSelection chosen = select_backends(a.backends, a.torch, machine, gpus);
  const double seconds = std::max(1.0, a.time_budget - kBackendReserve - kCeilingSeconds);
  std::vector<std::string> arguments = backend_bench_arguments(
      a, devices, fmt::format("{}", fmt::join(chosen.backends, ",")), seconds);
  refuse_old_results(a.output.out);  // on all ranks, or the others would wait for the first
  if (launch.rank == 0) return measure_for_all(a, machine, chosen, arguments, seconds);
  arguments.insert(arguments.begin(), find_program("backend_bench"));
  exec_program(arguments);
  return 0;
}

int run_backend(const BackendArguments& a) {
  const Machine machine = read_machine();
  if (!machine.launch.problem.empty()) throw InputError(machine.launch.problem);
  return machine.launch.world > 1 ? measure_among_many(a, machine) : measure_alone(a, machine);
}

}  // namespace

int finish(const std::string& folder, Summary& summary, const nlohmann::json& request,
           const std::vector<SuiteRun>& runs, const OutputArguments& a, const std::string& text) {
  bool failed = interrupted();
  for (const SuiteRun& run : runs) {
    if (run.problem.empty()) continue;
    failed = true;
    print_stderr("howmany: {}: {}\n", run.program, printable(run.problem));
  }
  failed = failed || std::ranges::any_of(summary.measurements, has_failed);
  write_summary_files(folder, summary, request);
  if (a.json)
    fmt::print("{}", dump_json(to_json(summary)));
  else
    fmt::print("{}Files: {}\n", text, printable(folder));
  if (interrupted()) print_stderr("interrupted: the results so far are in {}\n", folder);
  if (has_wrong_data(summary.measurements)) return exit_code::kCheckFailed;
  if (interrupted()) return exit_code::kInterrupted;
  return failed ? exit_code::kMeasurementFailed : exit_code::kFine;
}

void add_backend_command(CLI::App& sub, const std::vector<std::string>& command, int& code) {
  const auto a = std::make_shared<BackendArguments>();
  sub.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_list(sub, flag::kBackend, a->backends, "all that work here");
  auto* const torch =
      add_option(sub, flag::kTorch, a->torch.python, "the active one, if it has torch")
          ->expected(0, 1);
  add_devices(sub, a->devices, "the GPUs, else up to four slices of the cores");
  add_list(sub, flag::kDeviceCount, a->counts, "all");
  add_option(sub, flag::kNodes, a->nodes, "this host")->check(whole_between(1, 4096));
  add_list(sub, flag::kOps, a->ops, "all");
  add_bytes(sub, flag::kMinBytes, a->min_bytes, "4");
  add_bytes(sub, flag::kMaxBytes, a->max_bytes, "64M, or less if memory or time is short");
  add_option(sub, flag::kSizeFactor, a->size_factor, "4");
  add_list(sub, flag::kDtype, a->dtypes, "f32");
  add_repeatable(sub, flag::kModel, a->models);
  add_option(sub, flag::kCoresPerDevice, a->cores_per_device, "1")->check(whole_between(1, 4096));
  auto* const budget = add_option(sub, flag::kTimeBudget, a->time_budget, "60, or 80 with torch")
                           ->check(above_zero());
  add_option(sub, flag::kRounds, a->rounds, "3 to 5, or 1 under a launcher")
      ->check(whole_between(1, 1000));
  add_switch(sub, flag::kOversubscribe, a->oversubscribe);
  add_output_options(sub, a->output);
  sub.footer(
      "With --model, the gradient buckets of the model are measured and decide. With a command "
      "after "
      "--,\nthose of your own PyTorch script, over the backends of its torch.\n\n"
      "Examples:\n"
      "  howmany backend                                        # all backends, all operations\n"
      "  howmany backend --devices cpu:0,cpu:1 --backend local,gloo --model resnet18\n"
      "  howmany backend -- python train.py                     # the buckets of your own script\n"
      "  howmany backend --backend gloo,torch:gloo --torch ~/venv/bin/python\n"
      "  howmany backend --ops all_reduce --max-bytes 1G --time-budget 120 --json > summary.json\n"
      "  howmany backend --nodes 2                     # between nodes of a job of Slurm, PBS or "
      "LSF\n"
      "  mpirun -n 4 --bind-to none howmany backend    # between the ranks of a launcher, on\n"
      "  srun -N 2 --ntasks-per-node 1 --kill-on-bad-exit=1 howmany backend   # any hosts\n"
      "Exit codes: 0 fine, 1 wrong data, 2 bad usage, 3 a measurement failed (the rest is kept).");
  sub.callback([a, torch, budget, &command, &code] {
    a->command = command;
    a->has_default_budget = budget->count() == 0;
    a->torch.wanted = torch->count() > 0;
    const auto per_node = std::max(1, static_cast<int>(a->devices.size()));
    code = measure_within_job(a->nodes, per_node, [&] { return run_backend(*a); });
  });
}

}  // namespace howmany::reports
