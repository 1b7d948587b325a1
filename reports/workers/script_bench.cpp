// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/script_bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <embedded/reports/workers/torch_loader.py.h>
#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "core/base/process.h"
#include "core/base/schema/flags.h"
#include "core/base/text/files.h"
#include "core/base/text/format.h"

namespace howmany::reports {
namespace {

constexpr double kStartTimeout = 120;  // of the script, until its first steps
constexpr double kLatestEnd = 1.25;    // as in torch_hook/turns.py
constexpr double kMinTimed = 1;
constexpr int kRoundsOfRun = 5;  // fewer have wide intervals

class ScriptBench final : public WorkersBench {
 public:
  ScriptBench(BenchRuns& runs, const Script& script, const nlohmann::json& limits)
      : runs_(runs), script_(script), limits_(limits) {}

  // Starts the script once.
  bool measure(WorkersFacts& facts, const std::vector<int>& numbers, double seconds) override {
    const double timed = std::max(kMinTimed, (seconds - start_) / kLatestEnd);
    runs_.tell(fmt::format("starting {}: {} loader workers take turns for {}", script_.name,
                           fmt::join(numbers, ", "), format_seconds(timed)));
    const BenchScratch scratch(runs_.folder());
    SuiteRun run =
        runs_.run(argv(facts, numbers, timed, scratch), scratch, 4 * timed + 2 * kStartTimeout);
    if (interrupted()) return false;
    if (!run.ended.ok()) {
      if (facts.points.empty()) throw std::runtime_error(run.ended.last_line());
      facts.stopped = run.ended.last_line();
      return false;
    }
    if (!run.problem.empty()) throw InputError(run.problem);
    add_turns(facts, run.file.rows);
    add_script(facts, run.file.rows, run.samples);
    facts.bounds = worker_bounds(limits_, facts.asked, facts.sample_bytes);
    for (const int workers : numbers)
      if (find_point(facts.points, workers) == nullptr) facts.left_out.push_back(workers);
    start_ = std::max(0.0, run.ended.seconds - timed);
    turn_ = (run.ended.seconds - start_) / static_cast<double>(run.file.rows.size());
    runs_.keep(std::move(run));
    return true;
  }

  double seconds_of(size_t turns) const override {
    return start_ + static_cast<double>(turns) * turn_;
  }

 private:
  std::vector<std::string> argv(const WorkersFacts& facts, const std::vector<int>& numbers,
                                double seconds, const BenchScratch& scratch) const {
    const WorkersArguments& a = runs_.arguments();
    std::vector<std::string> all = bench_words(script_, seconds, kStartTimeout, scratch);
    const auto add = [&](const Flag& flag, const std::string& value) {
      all.insert(all.end(), {flag, value});
    };
    add(flag::kWorkers, fmt::format("{}", fmt::join(numbers, ",")));
    add(flag::kMostWorkers, std::to_string(most_workers(facts.bounds)));
    add(flag::kRounds, std::to_string(kRoundsOfRun));
    add(flag::kPrefetch, std::to_string(a.own_prefetch ? 0 : a.prefetch));
    add(flag::kLoader, std::to_string(a.loader));
    add(flag::kRanks, std::to_string(a.devices));
    all.emplace_back("--");
    all.insert(all.end(), script_.words.begin(), script_.words.end());
    return all;
  }

  BenchRuns& runs_;
  const Script& script_;
  const nlohmann::json limits_;
  double start_ = 0, turn_ = 0;  // seconds, in the last run
};

}  // namespace

std::unique_ptr<WorkersBench> make_script_bench(BenchRuns& runs, const Script& script,
                                                const nlohmann::json& limits) {
  return std::make_unique<ScriptBench>(runs, script, limits);
}

Script torch_loader(const WorkersArguments& arguments, const std::string& folder, double demand) {
  const std::string python = find_in_path(arguments.python);
  if (python.empty())
    throw InputError(fmt::format("{} is not in PATH: give the Python of your training with {}",
                                 arguments.python, flag::kPython.name));
  const std::string path = folder + "/torch_loader.py";
  write_text(path, embedded::kTorchLoader);
  Script script;
  script.name = "PyTorch's DataLoader";
  script.words = {python,
                  path,
                  "--data",
                  std::filesystem::absolute(arguments.data).string(),
                  "--batch",
                  std::to_string(arguments.batch),
                  "--image-size",
                  std::to_string(arguments.image_size),
                  "--seed",
                  std::to_string(arguments.seed),
                  "--samples-per-second",
                  fmt::format("{:.6g}", demand)};
  if (!arguments.start_method.empty())
    script.words.insert(script.words.end(), {"--start-method", arguments.start_method});
  if (arguments.devices > 1) script.words = under_torchrun(script.words);
  return script;
}

}  // namespace howmany::reports
