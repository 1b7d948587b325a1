// SPDX-License-Identifier: Apache-2.0
// Times the training steps of the user's own PyTorch script on n devices, or with several numbers
// of loader workers.
#include <cmath>
#include <iostream>

#include "benches/common/context.h"
#include "benches/common/device_choice.h"
#include "benches/common/gpus.h"
#include "benches/common/program.h"
#include "benches/common/report.h"
#include "benches/common/step_log.h"
#include "benches/script/flags.h"
#include "benches/script/loader_turns.h"
#include "benches/script/ranks.h"
#include "benches/script/rated.h"
#include "core/base/error.h"
#include "core/base/private_folder.h"
#include "core/base/schema/context.h"
#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/base/statistics.h"
#include "core/base/text/table.h"

namespace howmany::benches {
namespace {

constexpr const char* kName = "script_bench";
constexpr int kDetailSteps = 70;  // the most

int devices_of(const ScriptCommand& command) {
  return command.rehearsal.given() ? command.rehearsal.world : command.ranks;
}

std::string case_name(const ScriptFlags& flags) {
  const bool counted = !flags.command.counted_for.empty();
  return fmt::format("{}/script/{}/devices:{}",
                     counted                           ? "count"
                     : flags.command.rehearsal.given() ? "rehearsal"
                                                       : "speedup",
                     flags.name, devices_of(flags.command));
}

// The slices wrap around if there are more devices than slices.
std::vector<std::string> marks_of(const ScriptFlags& flags, const ScriptSteps& steps) {
  std::vector<std::string> marks = steps.flags;
  Workload work;
  work.devices = flags.command.devices;
  for (const std::string& mark : marks_of(work)) marks.push_back(mark);
  return marks;
}

SampleLine sample_line(const ScriptFlags& flags, const ScriptSteps& steps) {
  SampleLine line{
      .name = case_name(flags),
      .samples = {steps.seconds, true},
      .flags = marks_of(flags, steps),
      .parameters = {{parameter::kMode, steps.parallel},
                     {parameter::kModel, flags.name},
                     {parameter::kBackend, steps.backend},
                     {parameter::kDevice, steps.device},
                     {parameter::kDevices, std::to_string(devices_of(flags.command))},
                     {parameter::kCoresPerDevice, std::to_string(flags.cores_per_device)}},
      .world = steps.ranks,
      .steps = steps_json(steps.logged),
      .why = steps.why,
      .counted = steps.counted};
  if (!steps.counted.is_null())
    line.parameters[parameter::kEvidence] = "predicted";
  else if (flags.command.rehearsal.given())
    line.parameters[parameter::kEvidence] = "rehearsed";
  if (steps.global_batch > 0)
    line.parameters[parameter::kGlobalBatch] = std::to_string(steps.global_batch);
  if (!steps.torch.empty()) line.parameters[parameter::kTorch] = steps.torch;
  if (steps.threads > 0) line.parameters[parameter::kThreads] = std::to_string(steps.threads);
  if (!flags.command.rate.empty())
    line.parameters[parameter::kRate] = steps.global_batch > 0 ? "step_s" : metric::kSamplesPerS;
  return line;
}

// The ranks and the Python, which a first start is to show.
void add_start(const TrainingProcess& process, const ScriptSteps& steps, SampleLine& line) {
  line.parameters[parameter::kRanks] = std::to_string(steps.processes);
  line.parameters[parameter::kPython] = process.python;
  line.parameters[parameter::kUses] = fmt::format("{}", fmt::join(process.uses, ","));
}

// Samples per step over the seconds of a step, or 1 over those of a sample.
double rate_of(const ScriptSteps& steps) {
  return static_cast<double>(std::max<int64_t>(steps.global_batch, 1)) /
         quantile(steps.seconds, 0.5);
}

ScriptSteps run_hooked(ScriptCommand command, double timeout_seconds, TrainingProcess& process) {
  const GuardedFolder folder;
  GpuMeter meter(gpu_indices(command.devices));
  command.on_training = [&] { meter.sample(); };
  const ScriptEnd ended = run_script(command, folder.path(), timeout_seconds);
  const int world = command.rehearsal.given() ? command.rehearsal.world : command.ranks;
  const Expected expected = command.any_world ? Expected{0, 0} : Expected{world, command.ranks};
  if (command.any_world) process = read_process(folder.path());
  ScriptSteps steps = read_ranks(folder.path(), expected, ended);
  if (const double share = meter.utilisation(); std::isfinite(share))
    steps.counters[metric::kGpuUtilisationFraction] = share;
  if (const double bytes = meter.memory_bytes(); std::isfinite(bytes))
    steps.counters[metric::kGpuMemoryBytes] = bytes;
  return steps;
}

// The row has no rate, as no step was timed.
void run_counted(benchmark::State& state, const ScriptFlags& flags) {
  const GuardedFolder folder;
  const ScriptEnd ended = run_script(flags.command, folder.path(), flags.run_timeout);
  const ScriptSteps steps = read_counted(folder.path(), ended);
  report(state, {steps.seconds, true}, steps.counters);
  append_samples(flags.samples, sample_line(flags, steps));
}

void run_case(benchmark::State& state, const ScriptFlags& flags) {
  try {
    if (!flags.command.counted_for.empty()) return run_counted(state, flags);
    ScriptCommand command = flags.command;
    if (!command.rehearsal.given() && !command.any_world) command.detail_steps = kDetailSteps;
    const double timeout = command.seconds + flags.run_timeout;
    TrainingProcess process;
    const ScriptSteps steps =
        command.rate.empty() ? run_hooked(command, timeout, process) : run_rated(command, timeout);
    std::map<std::string, double> counters = steps.counters;
    counters[metric::kSamplesPerS] = rate_of(steps);
    report(state, {steps.seconds, true}, counters);
    SampleLine line = sample_line(flags, steps);
    if (command.any_world) add_start(process, steps, line);
    append_samples(flags.samples, line);
  } catch (const std::exception& e) {
    report_failure(state, e);
    std::cerr << fmt::format("{}: {}\n", kName, without_controls(e.what()));
  }
}

int run(int argc, char** argv) {
  ScriptFlags flags;
  std::vector<std::string> google = parse_script(argc, argv, flags);
  configure_cpu_devices({.cores_per_device = flags.cores_per_device});
  words_for(flags.command.words, 1);
  flags.command.vendor = find_gpus().vendor;
  catch_interrupts();
  if (flags.command.turns.given())
    register_loader_turns(flags);
  else
    benchmark::RegisterBenchmark(case_name(flags).c_str(),
                                 [&](benchmark::State& state) { run_case(state, flags); })
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  add_context();
  benchmark::AddCustomContext(context::kScriptEnvironment, shown_environment(flags.command));
  google.insert(google.begin(), argv[0]);
  const int code = run_benchmarks(std::move(google));
  return interrupted() ? kInterrupted : code;
}

}  // namespace
}  // namespace howmany::benches

int main(int argc, char** argv) {
  return howmany::benches::run_program("script_bench",
                                       [&] { return howmany::benches::run(argc, argv); });
}
