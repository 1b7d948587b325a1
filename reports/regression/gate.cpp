// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/gate.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>

#include "core/base/process.h"
#include "core/base/schema/exit_codes.h"
#include "core/base/schema/flags.h"
#include "core/base/text/files.h"
#include "core/base/text/format.h"
#include "core/base/text/table.h"
#include "reports/regression/canary.h"
#include "reports/regression/identical.h"
#include "reports/regression/ranks.h"
#include "reports/regression/rules.h"
#include "reports/regression/sides.h"
#include "reports/regression/writer.h"
#include "reports/results/record.h"
#include "reports/results/run_folder.h"

namespace howmany::reports {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kMinScreened = 6;  // fewest pairs that give an interval

LaunchOptions launch_options(const GateArguments& a) {
  return {a.repetitions, a.min_seconds, a.run_timeout, a.plain};
}

LaunchOptions canary_options() { return {.timeout_seconds = 60, .plain = true}; }

std::vector<std::string> canary_command(double extra) {
  return own_command(
      {"gate-worker", flag::kStudyKernels, "hash", flag::kExtra, fmt::format("{}", 100 * extra)});
}

double canary_extra(const GateArguments& a) {
  const double floor =
      a.judge.min_effect ? parse_share("--min-effect", *a.judge.min_effect) : kPairedEffect;
  return std::max(kCanaryExtra, kCanaryFloors * floor);
}

// Measures blocks and keeps them, even if a launch throws.
class Gate {
 public:
  Gate(const GateArguments& arguments, const Commands& commands, const std::string& folder)
      : a_(arguments),
        folder_(folder),
        rules_{a_.screen, a_.pairs, judge_options(a_.judge)},
        turns_(a_.seed),
        base_("base", commands.base, launch_options(a_)),
        candidate_("candidate", commands.candidate, launch_options(a_)),
        base_canary_("base", {canary_command(0)}, canary_options()),
        candidate_canary_("candidate", {canary_command(canary_extra(a_))}, canary_options()),
        trace_(folder + "/trace.jsonl") {}

  int run() {
    calibrate();
    if (interrupted()) return finish({});
    const Likeness alike = likeness(contexts_[0], contexts_[1]);
    if (alike.level == Likeness::Level::kNot && !a_.judge.force) {
      fmt::print(stderr, "howmany: not comparable, {}. Use --force to compare them.\n",
                 refusal(alike));
      return exit_code::kNotComparable;
    }
    plan();
    measure(rules_.screen, "screen");
    const Comparison screen = judged(0, block_);
    const std::vector<std::string> open = to_escalate(screen);
    if (interrupted() || open.empty()) return finish(screen);
    const int64_t fresh = block_;
    base_.choose(open);
    candidate_.choose(open);
    measure(rules_.pairs, fmt::format("{} again", open.size()));
    const auto enough = std::min<int64_t>(rules_.pairs, kMinScreened);
    if (block_ - fresh < enough) return finish(unsettled(screen, "the time was up"));
    return finish(settled(screen, judged(fresh, block_, open)));
  }

  // Writes the results so far after a failed launch.
  void keep() {
    for (const char* arm : {"base", "candidate"}) {
      Suite suite = suite_of(launches_, arm, rules_.judge.kinds);
      suite.context = contexts_[arm == std::string("base") ? 0 : 1];
      suite.context["howmany_blocks"] = folder_;
      write_text(fmt::format("{}/{}.json", folder_, arm), bench_json(suite));
    }
  }

 private:
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  void say(const std::string& text) const {
    if (!a_.judge.quiet) fmt::print(stderr, "{}\n", text);
  }

  void calibrate() {
    const Suite base = base_.calibrate();
    contexts_[0] = base.context;
    if (interrupted()) return;
    const Suite candidate = candidate_.calibrate();
    contexts_[1] = candidate.context;
    if (interrupted()) return;
    refuse_unknown_metrics(base, candidate, rules_.judge);
    block_seconds_ = base_.wall_seconds() + candidate_.wall_seconds();
    odd_ = {only_odd(base), only_odd(candidate)};
    fixed_ = !a_.plain && base_.fix_iterations(base) && candidate_.fix_iterations(base);
    if (!fixed_) notes_.emplace_back("iterations: as each process chooses them");
    if (!a_.canary) return;
    base_canary_.calibrate();
    if (!interrupted()) candidate_canary_.calibrate();
    block_seconds_ += base_canary_.wall_seconds() + candidate_canary_.wall_seconds();
  }

  // Benchmarks that failed or were skipped in the calibration, so that they are reported.
  static Suite only_odd(const Suite& suite) {
    Suite odd = suite;
    std::erase_if(odd.benchmarks,
                  [](const Benchmark& b) { return b.error.empty() && b.skipped.empty(); });
    return odd;
  }

  // Fixes the number of pairs before the first one, as the time budget allows. Stopping early
  // because of the results would raise false alarms.
  void plan() {
    const double left = a_.time_budget - elapsed();
    const auto affordable = static_cast<int>(std::max(0.0, left / std::max(1e-3, block_seconds_)));
    if (affordable >= rules_.screen + rules_.pairs) return;
    rules_.screen = std::clamp(affordable / 4, kMinScreened, rules_.screen);
    rules_.pairs = std::clamp(affordable - rules_.screen, kMinScreened, rules_.pairs);
    notes_.push_back(fmt::format("the time budget of {} allows {} + {} pairs instead of {} + {}",
                                 format_seconds(a_.time_budget), rules_.screen, rules_.pairs,
                                 a_.screen, a_.pairs));
  }

  void measure(int pairs, const std::string& what) {
    say(fmt::format("{}: {} pairs, about {}", what, pairs,
                    format_seconds(std::ceil(pairs * block_seconds_))));
    for (int i = 0; i < pairs && !interrupted(); ++i) {
      if (elapsed() > a_.time_budget * 1.1 && i >= kMinScreened) return;
      block();
    }
  }

  void block() {
    const bool base_first = turns_.base_first();
    std::vector<Launch> both;
    for (const bool base : {base_first, !base_first}) {
      both.push_back(launch(base ? base_ : candidate_, base ? base_canary_ : candidate_canary_,
                            static_cast<int64_t>(both.size())));
      if (interrupted()) return;  // incomplete blocks are dropped
    }
    for (Launch& one : both) {
      trace_.add(one);
      launches_.push_back(std::move(one));
    }
    ++block_;
  }

  Launch launch(Side& side, Side& canary, int64_t position) {
    const Suite suite = side.run();
    note_failures(suite, &side == &candidate_ ? 1 : 0);
    Launch launch = launch_of(suite);
    launch.block = block_;
    launch.arm = side.name();
    launch.position = position;
    launch.wall_seconds = side.wall_seconds();
    if (a_.canary && !interrupted()) {
      for (auto& [name, metrics] : launch_of(canary.run()).values) launch.values[kCanary] = metrics;
    }
    return launch;
  }

  // One failure marks a benchmark as failed, because its other launches cannot be trusted.
  void note_failures(const Suite& suite, size_t which) {
    for (const Benchmark& benchmark : suite.benchmarks) {
      std::vector<Benchmark>& known = odd_[which].benchmarks;
      const bool is_known = std::any_of(
          known.begin(), known.end(), [&](const Benchmark& b) { return b.name == benchmark.name; });
      if (!benchmark.error.empty() && !is_known) known.push_back(benchmark);
    }
  }

  Suite side_of(const char* arm, int64_t first, int64_t last) const {
    Suite suite = blocks_of(suite_of(launches_, arm, rules_.judge.kinds), first, last);
    const size_t which = arm == std::string("base") ? 0 : 1;
    suite.source = fmt::format("{}", arm);
    suite.context = contexts_[which];
    suite.context["howmany_blocks"] = folder_;
    for (const Benchmark& odd : odd_[which].benchmarks) {
      std::erase_if(suite.benchmarks, [&](const Benchmark& b) { return b.name == odd.name; });
      suite.benchmarks.push_back(odd);
    }
    return suite;
  }

  Comparison judged(int64_t first, int64_t last, const std::vector<std::string>& names = {}) const {
    const Suite base = without_canary(side_of("base", first, last)),
                candidate = without_canary(side_of("candidate", first, last));
    return judge(only(base, names), only(candidate, names), rules_.judge);
  }

  bool saw_canary() const {
    return canary_was_caught(side_of("base", 0, block_), side_of("candidate", 0, block_),
                             rules_.judge);
  }

  int finish(Comparison comparison) {
    keep();
    if (interrupted()) {
      fmt::print(stderr, "interrupted after {} pairs: the results so far are in {}\n", block_,
                 folder_);
      return exit_code::kInterrupted;
    }
    if (a_.canary && !saw_canary()) {
      mistrust(comparison);
      notes_.push_back(
          fmt::format("the canary, {:.0f} % more work, was not caught", 100 * canary_extra(a_)));
    } else if (a_.canary) {
      notes_.push_back(
          fmt::format("the canary, {:.0f} % more work, was caught", 100 * canary_extra(a_)));
    }
    notes_.push_back(fmt::format("{} pairs of launches in {}, seed {}", block_,
                                 format_seconds(std::round(elapsed())), a_.seed));
    comparison.notes.insert(comparison.notes.end(), notes_.begin(), notes_.end());
    write_text(folder_ + "/comparison.json", as_json(comparison));
    return print_result(comparison, a_.judge);
  }

  const GateArguments& a_;
  std::string folder_;
  GateRules rules_;
  Turns turns_;
  Side base_, candidate_, base_canary_, candidate_canary_;
  TraceFile trace_;
  Clock::time_point start_ = Clock::now();
  std::array<nlohmann::json, 2> contexts_;
  std::array<Suite, 2> odd_;
  std::vector<Launch> launches_;
  std::vector<std::string> notes_;
  int64_t block_ = 0;
  double block_seconds_ = 0;
  bool fixed_ = false;
};

bool all_identical(const Commands& commands) {
  return std::equal(commands.base.begin(), commands.base.end(), commands.candidate.begin(),
                    commands.candidate.end(), same_command);
}

int unchanged(const GateArguments& a) {
  Comparison nothing;
  nothing.base = "base";
  nothing.candidate = "candidate";
  nothing.paired = nothing.identical = true;
  nothing.options = judge_options(a.judge);
  nothing.notes = {"the programs are identical: nothing was measured (--no-shortcut measures)"};
  return print_result(nothing, a.judge);
}

}  // namespace

int run_gate(const GateArguments& arguments) {
  check_outputs(arguments.judge);
  judge_options(arguments.judge);
  const Commands commands = commands_of(arguments);
  if (arguments.shortcut && all_identical(commands)) return unchanged(arguments);
  const RunFolder held = RunFolder::create(arguments.out);
  const std::string& folder = held.path();
  catch_interrupts();
  Gate gate(arguments, commands, folder);
  try {
    return gate.run();
  } catch (const LaunchError& error) {
    gate.keep();
    fmt::print(stderr, "howmany: {}; the results so far are in {}\n", printable(error.what()),
               folder);
    return exit_code::kMeasurementFailed;
  }
}

}  // namespace howmany::reports
