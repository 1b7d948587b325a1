// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/gate.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <set>

#include "core/base/budget.h"
#include "core/base/process.h"
#include "core/base/schema/exit_codes.h"
#include "core/base/schema/flags.h"
#include "core/base/text/files.h"
#include "core/base/text/format.h"
#include "core/base/text/print_stderr.h"
#include "core/base/text/table.h"
#include "reports/regression/identical.h"
#include "reports/regression/launcher.h"
#include "reports/regression/rules.h"
#include "reports/regression/text.h"
#include "reports/regression/writer.h"
#include "reports/results/machine.h"
#include "reports/results/record.h"
#include "reports/results/run_folder.h"

namespace howmany::reports {
namespace {

namespace fs = std::filesystem;
constexpr int kMinPairs = 6;  // of a screen and of fresh ones; fewest that give an interval

LaunchOptions launch_options(const GateArguments& a) {
  return {a.repetitions, a.min_seconds, a.run_timeout, a.plain};
}

// Returns the smallest slowdown that would have been found in every SAME measurement, or "".
std::string sensitivity(const Comparison& c) {
  const Row* noisiest = nullptr;
  for (const Row& row : c.rows) {
    if (row.verdict != Verdict::kSame || !row.finds) continue;
    if (noisiest == nullptr || *row.finds > *noisiest->finds) noisiest = &row;
  }
  if (noisiest == nullptr) return "";
  return fmt::format("a slowdown of {:.1f} % or more would have been found ({} is the noisiest)",
                     100 * *noisiest->finds, shortened(noisiest->benchmark, kNameWidth));
}

// Returns DIR/bin/NAME, else DIR/NAME, or "".
std::string program_in(const std::string& folder, const std::string& name) {
  for (const char* below : {"/bin/", "/"}) {
    const std::string path = folder + below + name;
    if (fs::is_regular_file(path) && ::access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

std::set<std::string> bench_names(const std::string& folder) {
  std::set<std::string> names;
  for (const char* below : {"/bin", ""}) {
    if (!fs::is_directory(folder + below)) continue;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder + below)) {
      const std::string name = entry.path().filename().string();
      const bool bench = name.ends_with("_bench") || name.ends_with("_benchmark");
      if (bench && !program_in(folder, name).empty()) names.insert(name);
    }
  }
  return names;
}

std::vector<std::string> wanted_benches(const GateArguments& a) {
  if (!a.benches.empty()) return a.benches;
  const std::set<std::string> base = bench_names(a.base_build),
                              candidate = bench_names(a.candidate_build);
  std::vector<std::string> both;
  std::set_intersection(base.begin(), base.end(), candidate.begin(), candidate.end(),
                        std::back_inserter(both));
  if (both.empty()) {
    throw InputError(
        fmt::format("{} and {} have no *_bench program in common; name them with --bench",
                    a.base_build, a.candidate_build));
  }
  return both;
}

std::vector<std::string> command_in(const std::string& folder, const std::string& name,
                                    const GateArguments& a) {
  const std::string path = program_in(folder, name);
  if (path.empty()) throw InputError(fmt::format("there is no program {} in {}", name, folder));
  std::vector<std::string> command = {path};
  if (!a.bench_args.empty()) {
    for (std::string& word : split_command("--args", a.bench_args))
      command.push_back(std::move(word));
  }
  return command;
}

// Prints the steps of a training command as JSON.
std::vector<std::string> script_command(const Flag& option, const std::string& text) {
  std::vector<std::string> command = {find_program("script_bench"), "--benchmark_format=json",
                                      flag::kModel, "training", "--"};
  for (std::string& word : split_command(option, text)) command.push_back(std::move(word));
  return command;
}

struct Commands {
  std::vector<std::vector<std::string>> base, candidate;
};

// Returns the commands of --base and --candidate, or script_bench with the training commands, or
// the programs that both build folders have. Throws InputError.
Commands commands_of(const GateArguments& a) {
  const bool commands = !a.base.empty() && !a.candidate.empty();
  const bool builds = !a.base_build.empty() && !a.candidate_build.empty();
  const bool scripts = !a.base_script.empty() && !a.candidate_script.empty();
  if (commands + builds + scripts != 1) {
    throw InputError(
        "give --base CMD and --candidate CMD, --base-build DIR and --candidate-build DIR, or "
        "--base-script CMD and --candidate-script CMD");
  }
  if (scripts)
    return {{script_command(flag::kBaseScript, a.base_script)},
            {script_command(flag::kCandidateScript, a.candidate_script)}};
  if (commands) {
    Commands result{{split_command("--base", a.base)}, {split_command("--candidate", a.candidate)}};
    result.base[0][0] = find_command("base", result.base[0][0]);
    result.candidate[0][0] = find_command("candidate", result.candidate[0][0]);
    return result;
  }
  for (const std::string& folder : {a.base_build, a.candidate_build}) {
    if (!fs::is_directory(folder)) throw InputError(fmt::format("{} is not a folder", folder));
  }
  Commands result;
  for (const std::string& name : wanted_benches(a)) {
    result.base.push_back(command_in(a.base_build, name, a));
    result.candidate.push_back(command_in(a.candidate_build, name, a));
  }
  return result;
}

// Measures blocks, each a launch of both sides, and keeps them even if a launch throws.
class Gate {
 public:
  Gate(const GateArguments& arguments, const Commands& commands, const std::string& folder)
      : a_(arguments),
        folder_(folder),
        options_(judge_options(a_.judge)),
        order_(a_.seed),
        programs_{Side("base", commands.base, launch_options(a_)),
                  Side("candidate", commands.candidate, launch_options(a_))} {}

  int run() {
    calibrate();
    if (interrupted()) return finish({});
    const Likeness alike = likeness(sides_[0].context, sides_[1].context);
    if (alike.level == Likeness::Level::kNot && !a_.judge.force) {
      print_stderr("howmany: not comparable, {}. Use --force to compare them.\n", refusal(alike));
      return exit_code::kNotComparable;
    }
    plan();
    if (screen_ == 0) add_block(first_);
    measure(screen_, "screen", 1);
    const Comparison screen = judged(0, {});
    const std::vector<std::string> open = to_escalate(screen);
    if (interrupted() || open.empty()) return finish(screen);
    keep();
    const int64_t fresh = block_;
    for (Side& side : programs_) side.choose(open);
    const bool costs_less = open.size() < sides_[0].benchmarks.size();
    if (budget_.left() > 0 && (costs_less || fits(kMinPairs)))
      measure(pairs_, fmt::format("{} again", open.size()), kMinPairs);
    if (block_ - fresh < kMinPairs) return finish(unsettled(screen, "the time budget is spent"));
    return finish(settled(screen, judged(fresh, open)));
  }

  // Writes the results so far.
  void keep() {
    for (size_t i = 0; i < sides_.size(); ++i) {
      write_text(fmt::format("{}/{}.json", folder_, programs_[i].name()), bench_json(sides_[i]));
    }
  }

 private:
  void calibrate() {
    for (size_t i = 0; i < first_.size(); ++i) {
      first_[i] = programs_[i].calibrate();
      sides_[i].context = first_[i].context;
      sides_[i].context["howmany_blocks"] = folder_;
      if (interrupted()) return;
      block_seconds_ += programs_[i].wall_seconds();
      note_odd(first_[i], i);
    }
    refuse_unknown_metrics(first_[0], first_[1], options_);
    const bool fixed = !a_.plain && programs_[0].fix_iterations(first_[0]) &&
                       programs_[1].fix_iterations(first_[0]);
    if (!fixed) notes_.emplace_back("iterations: as each process chooses them");
  }

  // Fixes the number of pairs before the first one, as the time budget allows. Stopping early
  // because of the results would raise false alarms.
  void plan() {
    if (fits(screen_ + pairs_)) return;
    const auto affordable = static_cast<int>(budget_.left() / block_seconds_);
    screen_ = std::min(affordable, std::clamp(affordable / 4, kMinPairs, screen_));
    pairs_ = std::clamp(affordable - screen_, kMinPairs, pairs_);
    const double enough = budget_.elapsed() + 1.2 * 2 * kMinPairs * block_seconds_;
    notes_.push_back(
        affordable < 2 * kMinPairs
            ? fmt::format("the time budget of {} allows about {} of the {} pairs that a verdict "
                          "needs; --time-budget {:.0f} allows them",
                          format_seconds(a_.time_budget), std::max(1, affordable), 2 * kMinPairs,
                          10 * std::ceil(enough / 10))
            : fmt::format("the time budget of {} allows {} + {} pairs instead of {} + {}",
                          format_seconds(a_.time_budget), screen_, pairs_, a_.screen, a_.pairs));
  }

  bool fits(int pairs) const { return budget_.fits(pairs * block_seconds_); }

  // Ends early if the rest of the `least` pairs, or one more, does not fit into the time budget.
  void measure(int pairs, const std::string& what, int least) {
    if (pairs == 0) return;
    if (!a_.judge.quiet) {
      print_stderr("{}: {} pairs, about {}\n", what, pairs,
                   format_seconds(std::ceil(pairs * block_seconds_)));
    }
    for (int i = 0; i < pairs && !interrupted(); ++i) {
      if (i > 0 && !fits(std::max(1, least - i))) return;
      block();
    }
  }

  void block() {
    const size_t first = order_.base_first() ? 0 : 1;
    std::array<Suite, 2> both;
    for (const size_t i : {first, 1 - first}) {
      both[i] = programs_[i].run();
      if (interrupted()) return;  // incomplete blocks are dropped
    }
    block_seconds_ = programs_[0].wall_seconds() + programs_[1].wall_seconds();
    add_block(both);
  }

  void add_block(const std::array<Suite, 2>& both) {
    for (size_t i = 0; i < both.size(); ++i) {
      note_odd(both[i], i);
      add_launch(sides_[i], both[i], block_, options_.kinds);
    }
    ++block_;
  }

  // Keeps each benchmark that failed or was skipped. One failure makes its other launches
  // untrustworthy.
  void note_odd(const Suite& suite, size_t side) {
    for (const Benchmark& benchmark : suite.benchmarks) {
      if (benchmark.error.empty() && benchmark.skipped.empty()) continue;
      if (!std::ranges::count(odd_[side], benchmark.name, &Benchmark::name)) {
        odd_[side].push_back(benchmark);
      }
    }
  }

  Suite since(size_t side, int64_t first, const std::vector<std::string>& names) const {
    Suite suite = blocks_of(sides_[side], first, block_);
    suite.source = programs_[side].name();
    for (const Benchmark& odd : odd_[side]) {
      std::erase_if(suite.benchmarks, [&](const Benchmark& b) { return b.name == odd.name; });
      suite.benchmarks.push_back(odd);
    }
    return only(suite, names);
  }

  // Judges the blocks from `first` on.
  Comparison judged(int64_t first, const std::vector<std::string>& names) const {
    return judge(since(0, first, names), since(1, first, names), options_);
  }

  int finish(Comparison comparison) {
    keep();
    if (interrupted()) {
      print_stderr("interrupted after {} pairs: the results so far are in {}\n", block_, folder_);
      return exit_code::kInterrupted;
    }
    if (const std::string found = sensitivity(comparison); !found.empty()) notes_.push_back(found);
    notes_.push_back(fmt::format("{} pairs of launches in {}, seed {}", block_,
                                 format_seconds(std::round(budget_.elapsed())), a_.seed));
    comparison.notes.insert(comparison.notes.end(), notes_.begin(), notes_.end());
    write_text(folder_ + "/comparison.json", as_json(comparison));
    return print_result(comparison, a_.judge);
  }

  const GateArguments& a_;
  std::string folder_;
  JudgeOptions options_;
  Budget budget_{a_.time_budget};
  RunOrder order_;
  // [0] is the base, [1] the candidate.
  std::array<Side, 2> programs_;
  std::array<Suite, 2> sides_, first_;  // first_: calibration, the only pair if no other fits
  std::array<std::vector<Benchmark>, 2> odd_;
  std::vector<std::string> notes_;
  int screen_ = a_.screen, pairs_ = a_.pairs;
  int64_t block_ = 0;
  double block_seconds_ = 0;
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
  Gate gate(arguments, commands, folder);
  try {
    return gate.run();
  } catch (const LaunchError& error) {
    gate.keep();
    print_stderr("howmany: {}; the results so far are in {}\n", printable(error.what()), folder);
    return interrupted() ? exit_code::kInterrupted : exit_code::kMeasurementFailed;
  }
}

}  // namespace howmany::reports
