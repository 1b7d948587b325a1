// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/base/budget.h"
#include "core/base/process.h"
#include "core/base/schema/flags.h"
#include "core/base/schema/metrics.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"
#include "core/base/text/print_stderr.h"
#include "reports/gpus/bench_call.h"
#include "reports/results/device_kind.h"
#include "reports/results/disturbance.h"
#include "reports/results/scratch.h"

namespace howmany::reports {
namespace {

constexpr double kMinRunSeconds = 0.2;  // of timed iterations in a run
constexpr const char* kTrace = "/trace.pftrace";
constexpr double kStarts = 3;      // times the overhead of earlier runs: the least limit of a run
constexpr double kEndSeconds = 5;  // for script_bench to end a script that hangs

// If `trace` is not empty, the bench profiles steps after the timed ones into that file.
std::vector<std::string> run_arguments(const Request& request, const Configuration& c,
                                       double seconds, double timeout, const BenchScratch& scratch,
                                       const std::string& trace) {
  if (request.script.given())
    return c.is_rehearsal() ? rehearsal_arguments(request, c.devices, seconds, timeout, scratch)
                            : script_arguments(request, c, seconds, timeout, scratch);
  std::vector<std::string> argv = bench_arguments(request, c);
  argv.insert(argv.end(),
              {flag::kCaseBudget, fmt::format("{:.3f}", seconds), flag::kSamplesFile,
               scratch.samples, "--benchmark_out=" + scratch.bench, "--benchmark_out_format=json"});
  if (!trace.empty()) argv.insert(argv.end(), {flag::kTraceFile.name, trace});
  return argv;
}

std::string run_name(const Request& request, const Configuration& c) {
  if (request.script.given())
    return fmt::format("{}/script/{}/devices:{}", c.is_rehearsal() ? c.mode : "speedup", c.model,
                       c.devices);
  const std::string& precision = request.forwarded["precision"];
  return fmt::format("speedup/{}/{}/backend:{}/devices:{}/batch:{}/scaling:{}{}", c.mode, c.model,
                     c.backend, c.devices, (global_batch(request, c) + c.devices - 1) / c.devices,
                     request.scaling == Scaling::kWeak ? "weak" : "strong",
                     precision.empty() ? "" : "/precision:" + precision);
}

// Has the format of a failed run in Google Benchmark.
BenchRow failed_row(const std::string& name, const std::string& why) {
  BenchRow row;
  row.name = name;
  row.error = why;
  row.json = {{"threads", 1},        {"iterations", 0},   {"real_time", 0.0},
              {"cpu_time", 0.0},     {"time_unit", "ns"}, {"error_occurred", true},
              {"error_message", why}};
  return row;
}

// Surviving ranks only report a lost peer. The bench that started the ranks reports the cause.
std::string with_cause(const std::string& error, const ProcessResult& ended) {
  const std::string last = ended.last_line();
  return last.find(" was ended by signal ") == std::string::npos
             ? error
             : fmt::format("{} ({})", error, last);
}

std::string why_failed(const Request& request, const ProcessResult& ended) {
  if (ended.how != ProcessResult::How::kTimedOut) return ended.describe();
  return fmt::format(
      "{}; try a smaller {} or a larger --run-timeout", ended.describe(),
      (request.scaling == Scaling::kWeak ? flag::kBatchPerDevice : flag::kGlobalBatch).name);
}

void read_outcome(const Request& request, const BenchScratch& scratch, const ProcessResult& ended,
                  BenchRun& run, Results& results) {
  const std::string name = run.row.name;
  BenchFile file;
  if (std::filesystem::exists(scratch.bench)) file = read_bench(scratch.bench);
  const bool one = file.rows.size() == 1;
  if (!ended.ok()) {
    const bool told = one && !file.rows[0].error.empty();
    run.row =
        failed_row(name, told ? with_cause(file.rows[0].error, ended) : why_failed(request, ended));
    return;
  }
  if (!one) {
    throw InputError(fmt::format("the bench wrote {} results instead of one", file.rows.size()));
  }
  if (!file.rows[0].error.empty()) {
    run.row = failed_row(file.rows[0].name, file.rows[0].error);
    return;
  }
  std::vector<SampleLine> lines = read_samples(scratch.samples);
  if (lines.size() != 1 || lines[0].seconds.empty()) throw InputError("the bench wrote no samples");
  if (results.context.empty()) results.context = file.context;
  run.row = std::move(file.rows[0]);
  run.samples = std::move(lines[0]);
}

class MeasurementLoop {
 public:
  MeasurementLoop(const Plan& plan, const MeasureOptions& options, Results& results)
      : plan_(plan),
        options_(options),
        results_(results),
        all_(configurations(plan.request)),
        budget_(plan.request.time_budget),
        steps_(plan.request.across.nodes) {
    // Failed runs are repeated.
    std::erase_if(results_.runs, [](const BenchRun& run) { return run.samples.seconds.empty(); });
    left_ = all_.size() * static_cast<size_t>(plan.request.rounds) - results_.runs.size();
    to_do_ = left_;
  }

  void run() {
    for (int round = 0; round < plan_.request.rounds; ++round) {
      if (!measure_round(round)) return;
      if (is_disturbed(busy_elsewhere(round))) expect(all_.size());
    }
    repeat_disturbed();
  }

 private:
  // Returns false if measuring must end.
  bool measure_round(int round) {
    for (const size_t i : order_of_round(all_.size(), round)) {
      if (is_measured(i, round)) continue;
      if (round > 0 && has_failed(i)) {
        --left_;
        continue;
      }
      if (round > 0 && !fits(1)) {
        results_.out_of_time = true;
        results_.whole_seconds = took_ / static_cast<double>(ran_) *
                                 static_cast<double>(all_.size()) * plan_.request.rounds;
        return false;
      }
      std::optional<BenchRun> run = measure_one(i, round);
      if (!run) return false;
      results_.runs.push_back(std::move(*run));
      write_results(options_.folder, plan_, results_);
      report(what(i, round), &results_.runs.back());
    }
    return true;
  }

  // Adds unplanned runs, so that each remaining run gets less time.
  void expect(size_t runs) {
    left_ += runs;
    to_do_ += runs;
  }

  void repeat_disturbed() {
    RepeatedRounds repeated;
    const auto next = [&] {
      std::vector<double> busy;
      for (int round = 0; round < plan_.request.rounds; ++round)
        busy.push_back(busy_elsewhere(round));
      return repeated.next(busy);
    };
    while (const std::optional<int> round = next())
      if (!fits(all_.size()) || !repeat(*round)) return;
  }

  // The bench appends to its trace file, so a repeated round has another one until it is accepted.
  std::string trace_path() const {
    return options_.folder + (*again_ == '\0' ? kTrace : "/.again.pftrace");
  }

  // Repeats a round, and keeps the repetition if it is complete and less disturbed. Returns false
  // if measuring must end.
  bool repeat(int round) {
    again_ = " again";
    const bool go_on = measure_again(round);
    std::error_code not_profiled;
    std::filesystem::remove(trace_path(), not_profiled);
    return go_on;
  }

  bool measure_again(int round) {
    std::vector<BenchRun> again;
    for (const size_t i : order_of_round(all_.size(), round)) {
      if (has_failed(i)) {
        --left_;
        continue;
      }
      std::optional<BenchRun> run = fits(1) ? measure_one(i, round) : std::nullopt;
      if (!run) return false;
      again.push_back(std::move(*run));
      report(what(i, round), &again.back());
    }
    if (!is_less_disturbed(again, round)) return true;
    for (BenchRun& run : again) std::swap(*run_of(run.configuration, round), run);
    std::error_code not_profiled;
    std::filesystem::rename(trace_path(), options_.folder + kTrace, not_profiled);
    write_results(options_.folder, plan_, results_);
    return true;
  }

  std::vector<BenchRun>::iterator run_of(size_t configuration, int round) {
    return std::ranges::find_if(results_.runs, [&](const BenchRun& run) {
      return run.configuration == configuration && run.round == round;
    });
  }

  // The share of the cores that other programs used; NaN if it is not known.
  static double load_of(const BenchRun& run) {
    const auto found = run.row.counters.find(metric::kBusyElsewhereFraction);
    return found == run.row.counters.end() ? kNaN : found->second;
  }
  // The largest in a run of the round; 0 if none is known.
  double busy_elsewhere(int round) const {
    double most = 0;
    for (const BenchRun& run : results_.runs)
      if (run.round == round) most = std::fmax(most, load_of(run));
    return most;
  }
  bool is_less_disturbed(const std::vector<BenchRun>& again, int round) const {
    const double before = busy_elsewhere(round);
    return std::ranges::all_of(
        again, [&](const BenchRun& run) { return run.row.error.empty() && load_of(run) < before; });
  }

  bool is_measured(size_t configuration, int round) const {
    return std::any_of(results_.runs.begin(), results_.runs.end(), [&](const BenchRun& run) {
      return run.configuration == configuration && run.round == round;
    });
  }
  bool has_failed(size_t configuration) const {
    return std::any_of(results_.runs.begin(), results_.runs.end(), [&](const BenchRun& run) {
      return run.configuration == configuration && !run.row.error.empty();
    });
  }

  // Seconds per run outside its timed iterations: start, building the model, the check, warm-up.
  double overhead() const {
    if (ran_ == 0) return std::max(1.0, plan_.request.script.start_seconds);
    return overhead_ / static_cast<double>(ran_);
  }

  double seconds_for_next() const {
    const double share = budget_.share(1, static_cast<double>(left_)) - overhead();
    return std::clamp(share, kMinRunSeconds, plan_.request.run_seconds);
  }

  double run_timeout() const {
    if (options_.run_timeout) return *options_.run_timeout;
    const bool gpus = device_kind(plan_.request.devices.front()) == DeviceKind::kGpu;
    const RunTimeout limits = gpus ? kOnGpus : kOnCpus;
    if (!budget_.limited()) return limits.most;
    return std::max(timeout_within(budget_.left(), limits), kStarts * overhead());
  }

  bool fits(size_t runs) const {
    return budget_.fits(static_cast<double>(runs) * (overhead() + kMinRunSeconds));
  }

  // The bench may stop early, so measured durations predict better than limits.
  double seconds_left() const {
    const double one =
        ran_ == 0 ? overhead() + seconds_for_next() : took_ / static_cast<double>(ran_);
    return std::min(budget_.left(), static_cast<double>(left_) * one);
  }

  void report(const std::string& what, const BenchRun* finished) const {
    if (!options_.on_progress) return;
    options_.on_progress(
        {to_do_ - left_, to_do_, what, budget_.elapsed(), seconds_left(), finished});
  }

  std::string what(size_t configuration, int round) const {
    return fmt::format("{}, round {} of {}{}", describe(all_[configuration]), round + 1,
                       plan_.request.rounds, again_);
  }

  // Returns nullopt if it was interrupted or the bench refused its arguments.
  std::optional<BenchRun> measure_one(size_t configuration, int round) {
    const Configuration& c = all_[configuration];
    const BenchScratch scratch(options_.folder);
    const double seconds = seconds_for_next();
    const bool profile = plan_.request.profile && round == 0;
    const std::string trace = profile ? trace_path() : "";
    const double timeout = run_timeout(), end = nodes_of(plan_.request, c.devices) > 1 ? kEndOnNodes
                                                : plan_.request.script.given()         ? kEndSeconds
                                                                                       : 0;
    Command command{.argv = run_arguments(plan_.request, c, seconds, timeout, scratch, trace),
                    .timeout_seconds = seconds + timeout + end};
    command.on_tick = [&] { report(what(configuration, round), nullptr); };
    if (options_.verbose) {
      command.on_stderr = [](std::string_view text) { print_stderr("{}", text); };
    }
    command.on_tick();
    const bool across = nodes_of(plan_.request, c.devices) > 1;
    if (across) {
      command.environment = plan_.request.across.environment;
      command.grace_seconds = kEndOnNodes;
    }
    const LoadMeter meter;
    const ProcessResult ended = run_command(command);
    if (across && !ended.ok()) steps_.end_steps();
    // Slurm's own processes start those of several nodes, so they count as others'.
    const double busy = across ? kNaN : meter.busy_elsewhere();
    if (ended.how == ProcessResult::How::kInterrupted) {
      results_.interrupted = true;
      return {};
    }
    if (ended.how == ProcessResult::How::kExited && ended.code == 2) {
      results_.usage_error = ended.last_line();
      if (results_.usage_error.empty()) results_.usage_error = "the bench refused its arguments";
      return {};
    }
    took_ += ended.seconds;
    overhead_ += std::max(0.0, ended.seconds - seconds);
    ++ran_;
    --left_;
    BenchRun run = outcome(configuration, round, scratch, ended);
    if (!run.row.counters.contains(metric::kWallS))
      run.row.json[metric::kWallS] = run.row.counters[metric::kWallS] = ended.seconds;
    if (std::isfinite(busy))
      run.row.json[metric::kBusyElsewhereFraction] =
          run.row.counters[metric::kBusyElsewhereFraction] = busy;
    return run;
  }

  BenchRun outcome(size_t configuration, int round, const BenchScratch& scratch,
                   const ProcessResult& ended) {
    BenchRun run{configuration, round, {}, {}};
    run.row.name = run_name(plan_.request, all_[configuration]);
    const std::string name = run.row.name;
    try {
      read_outcome(plan_.request, scratch, ended, run, results_);
    } catch (const InputError& error) {
      run = {configuration, round, failed_row(name, error.what()), {}};
    }
    return run;
  }

  const Plan& plan_;
  const MeasureOptions& options_;
  Results& results_;
  const std::vector<Configuration> all_;
  const Budget budget_;
  StepsGuard steps_;
  size_t left_ = 0, to_do_ = 0, ran_ = 0;
  double overhead_ = 0, took_ = 0;
  const char* again_ = "";  // " again" for a repeated round
};

}  // namespace

double timeout_within(double left, RunTimeout limits) {
  return std::clamp(2 * left, limits.least, limits.most);
}

void measure(const Plan& plan, const MeasureOptions& options, Results& results) {
  MeasurementLoop(plan, options, results).run();
}

}  // namespace howmany::reports
