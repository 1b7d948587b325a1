// SPDX-License-Identifier: Apache-2.0
#include "reports/comm/measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "core/base/process.h"
#include "core/base/schema/flags.h"
#include "core/base/statistics.h"
#include "core/base/text/print_stderr.h"
#include "reports/results/disturbance.h"
#include "reports/results/rounds.h"

namespace howmany::reports {
namespace {

constexpr double kBeyondBudget = 120;
constexpr const char *kCeilingProgram = "transfer_bench", *kCeilingBytes = "67108864";
constexpr double kStartSeconds = 1.4;   // start and exit of a bench and its ranks
constexpr double kRoundSeconds = 4;     // minimum useful seconds of a backend in a round
constexpr double kMinSeconds = 1;       // of a run
constexpr double kRepeatedShare = 0.8;  // of the time of a round, with which it can be repeated
constexpr int kMinRounds = 3, kMaxRounds = 5;

}  // namespace

int plan_rounds(double budget, int backends, std::optional<int> asked) {
  const int room = static_cast<int>(budget / backends / (kStartSeconds + kRoundSeconds));
  return asked.value_or(room < kMinRounds ? 1 : std::min(room, kMaxRounds));
}

std::vector<std::string> backend_bench_arguments(const BackendArguments& a,
                                                 const std::string& devices,
                                                 const std::string& backend, double seconds) {
  std::vector<std::string> argv;
  const auto add = [&](const Flag& flag, const std::string& value) {
    if (!value.empty()) argv.insert(argv.end(), {flag, value});
  };
  add(flag::kBackend, backend);
  add(flag::kDevices, devices);
  add(flag::kOps, fmt::format("{}", fmt::join(a.ops, ",")));
  add(flag::kDtype, fmt::format("{}", fmt::join(a.dtypes, ",")));
  add(flag::kDeviceCount, fmt::format("{}", fmt::join(a.counts, ",")));
  add(flag::kMinBytes, std::to_string(a.min_bytes));
  add(flag::kMaxBytes, std::to_string(a.max_bytes));
  add(flag::kSizeFactor, a.size_factor ? std::to_string(*a.size_factor) : "");
  add(flag::kCoresPerDevice, a.cores_per_device ? std::to_string(*a.cores_per_device) : "");
  for (const std::string& model : a.models) add(flag::kModel, model);
  add(flag::kTimeBudget, fmt::format("{:.3f}", seconds));
  if (a.oversubscribe) argv.emplace_back(flag::kOversubscribe);
  return argv;
}

BackendMeasuring::BackendMeasuring(const BackendArguments& a, std::string folder,
                                   std::string python, std::vector<int> cores)
    : a_(a),
      folder_(std::move(folder)),
      python_(std::move(python)),
      cores_(std::move(cores)),
      budget_(a.time_budget) {}

void BackendMeasuring::ceilings() {
  const SuiteCommand command{
      .program = kCeilingProgram,
      .folder = folder_,
      .arguments = {flag::kMinBytes, kCeilingBytes, flag::kMaxBytes, kCeilingBytes,
                    flag::kTimeBudget, fmt::format("{}", kCeilingSeconds),
                    "--benchmark_filter=^transfer/(copy|loopback_tcp)/"},
      .timeout_seconds = kCeilingSeconds + kBeyondBudget};
  const auto measure = [&] {
    announce("this machine's own ceilings", kCeilingSeconds);
    return run(command, 0);
  };
  keep(measure_undisturbed(measure, [&](const SuiteRun&) {
    return !interrupted() && budget_.fits(10 * kCeilingSeconds);
  }));
}

void BackendMeasuring::rounds(const std::vector<std::string>& backends, const std::string& devices,
                              int rounds) {
  backends_ = backends;
  devices_ = devices;
  rounds_ = rounds;
  const int runs_per_round = static_cast<int>(backends.size());
  left_ = rounds * runs_per_round;
  for (int round = 0; round < rounds; ++round) {
    for (const std::string& name : backends)
      if (!interrupted()) keep(backend(name, round));
    // The remaining runs share their time with the repeated round.
    if (is_disturbed(max_busy_elsewhere(of_round(round)))) left_ += runs_per_round;
  }
  repeat_disturbed();
}

void BackendMeasuring::together(const std::vector<std::string>& arguments, double seconds) {
  announce("all backends", seconds);
  keep(run({.program = "backend_bench",
            .folder = folder_,
            .arguments = arguments,
            .timeout_seconds = 3 * seconds + kBeyondBudget,
            .one_of_many = true},
           0));
}

std::vector<Measurement> BackendMeasuring::table() const {
  std::vector<std::vector<Measurement>> rounds(static_cast<size_t>(rounds_));
  for (const SuiteRun& run : runs)
    std::ranges::move(measurements_of(run),
                      std::back_inserter(rounds[static_cast<size_t>(run.round)]));
  return over_rounds(rounds);
}

SuiteRun BackendMeasuring::backend(const std::string& name, int round) {
  const double left = std::max(left_--, 1);
  const double untimed = untimed_.empty() ? kStartSeconds : mean(untimed_);
  const double share = budget_.share(1, left, kBackendReserve + untimed * left);
  const double seconds = std::max(kMinSeconds, share), start = budget_.elapsed();
  announce(rounds_ > 1 ? fmt::format("{} (round {} of {})", name, round + 1, rounds_) : name,
           seconds);
  SuiteCommand command{.program = "backend_bench",
                       .folder = folder_,
                       .arguments = backend_bench_arguments(a_, devices_, name, seconds),
                       .timeout_seconds = 3 * seconds + kBeyondBudget};
  if (is_torch_backend(name)) use_torch(command);
  SuiteRun measured = run(std::move(command), round);
  untimed_.push_back(std::max(0.0, budget_.elapsed() - start - seconds));
  return measured;
}

void BackendMeasuring::use_torch(SuiteCommand& command) const {
  command.program = kTorchProgram;
  command.interpreter = python_;
  if (cores_.empty()) return;
  const std::string cores = fmt::format("{}", fmt::join(cores_, ","));
  command.arguments.insert(command.arguments.end(), {"--cores", cores});
}

SuiteRun BackendMeasuring::run(SuiteCommand command, int round) const {
  command.verbose = a_.output.verbose;
  SuiteRun run = run_suite(command);
  run.round = round;
  return run;
}

// Writes the files after each run, so that an interrupted measurement keeps its runs.
void BackendMeasuring::keep(SuiteRun run) {
  runs.push_back(std::move(run));
  write_suite(folder_, "backend", runs);
}

std::vector<SuiteRun> BackendMeasuring::of_round(int round) const {
  std::vector<SuiteRun> all;
  std::ranges::copy_if(runs, std::back_inserter(all), [&](const SuiteRun& run) {
    return run.round == round && run.program != kCeilingProgram;
  });
  return all;
}

void BackendMeasuring::repeat_disturbed() {
  RepeatedRounds repeated;
  while (!interrupted()) {
    std::vector<double> busy;
    for (int round = 0; round < rounds_; ++round)
      busy.push_back(max_busy_elsewhere(of_round(round)));
    const std::optional<int> round = repeated.next(busy);
    if (!round || !repeat(*round)) return;
  }
}

// Repeats the round, and keeps the repetition if it is less disturbed. Returns false if there is no
// time.
bool BackendMeasuring::repeat(int round) {
  const std::vector<SuiteRun> before = of_round(round);
  const double busy = max_busy_elsewhere(before);
  double took = 0;
  for (const SuiteRun& run : before) took += run.ended.seconds;
  if (!budget_.fits(kRepeatedShare * took)) return false;
  std::vector<SuiteRun> again;
  for (const std::string& name : backends_)
    if (!interrupted()) again.push_back(backend(name, round));
  const bool is_better = std::ranges::all_of(
      again, [&](const SuiteRun& run) { return run.busy_elsewhere < busy && run.problem.empty(); });
  if (!is_better) return true;
  std::erase_if(runs, [&](const SuiteRun& run) {
    return run.round == round && run.program != kCeilingProgram;
  });
  for (SuiteRun& run : again) keep(std::move(run));
  return true;
}

void BackendMeasuring::announce(const std::string& what, double seconds) const {
  if (a_.output.quiet || interrupted()) return;
  print_stderr("measuring {}, about {:.0f} s\n", what, seconds);
}

}  // namespace howmany::reports
