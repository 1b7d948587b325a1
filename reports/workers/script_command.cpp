// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/script_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <embedded/reports/workers/torch_loader.py.h>
#include "core/base/process.h"
#include "core/base/schema/exit_codes.h"
#include "core/base/schema/flags.h"
#include "core/base/text/files.h"
#include "core/base/text/format.h"
#include "reports/results/disturbance.h"
#include "reports/results/machine.h"
#include "reports/results/run_folder.h"
#include "reports/results/scratch.h"
#include "reports/script/script.h"
#include "reports/workers/measure.h"
#include "reports/workers/output.h"
#include "reports/workers/script.h"

namespace howmany::reports {
namespace {

constexpr double kStartTimeout = 300;  // of the script, until its first steps
constexpr double kShareOfSweep = 0.6;  // of the time budget
constexpr int kRoundsOfRun = 5;        // fewer have wide intervals
constexpr int kMostPerCore = 4, kMostSwept = 64;

class ScriptWorkers {
 public:
  ScriptWorkers(const WorkersArguments& arguments, std::string folder, Script script,
                ScriptFacts facts)
      : arguments_(arguments),
        folder_(std::move(folder)),
        script_(std::move(script)),
        facts_(std::move(facts)) {
    facts_.script = script_.name;
  }

  int run() {
    limits_ = LoaderMeasuring(arguments_, folder_).limits();
    const std::vector<WorkerBound> bounds = worker_bounds(limits_, asked(), 0);
    most_ = most_workers(bounds);
    const std::vector<int> wanted = workers_from(arguments_.workers);
    const bool fixed = !wanted.empty();
    const double budget = arguments_.time_budget;
    bool went = measure(fixed ? wanted : numbers_to_sweep(most_swept()),
                        fixed ? budget : kShareOfSweep * budget);
    const std::vector<int> near = fixed ? std::vector<int>() : numbers_to_refine(facts_);
    if (went && !near.empty()) went = measure(near, (1 - kShareOfSweep) * budget);
    if (!went) return exit_code::kInterrupted;
    write_and_print(arguments_, folder_, summarise());
    return exit_code::kFine;
  }

 private:
  LoaderDemand asked() const {
    return {
        .devices = facts_.ranks, .demand = 0, .prefetch = facts_.prefetch, .batch = facts_.batch};
  }

  int most_swept() const {
    const auto by_cores = static_cast<int>(std::ceil(kMostPerCore * limits_.cores));
    return std::min({by_cores, kMostSwept, most_});
  }

  std::vector<std::string> argv(const std::vector<int>& numbers, double seconds,
                                const BenchScratch& scratch) const {
    std::vector<std::string> all = bench_words(script_, seconds, kStartTimeout, scratch);
    const auto add = [&](const Flag& flag, const std::string& value) {
      all.insert(all.end(), {flag, value});
    };
    add(flag::kWorkers, fmt::format("{}", fmt::join(numbers, ",")));
    add(flag::kMostWorkers, std::to_string(most_));
    add(flag::kRounds, std::to_string(kRoundsOfRun));
    add(flag::kPrefetch, std::to_string(arguments_.own_prefetch ? 0 : arguments_.prefetch));
    add(flag::kLoader, std::to_string(arguments_.loader));
    add(flag::kRanks, std::to_string(arguments_.devices));
    all.emplace_back("--");
    all.insert(all.end(), script_.words.begin(), script_.words.end());
    return all;
  }

  // Returns false if it was interrupted.
  bool measure(const std::vector<int>& numbers, double seconds) {
    const BenchScratch scratch(folder_);
    tell(fmt::format("starting {}: {} loader workers take turns for {}", script_.name,
                     fmt::join(numbers, ", "), format_seconds(seconds)));
    Command command{.argv = argv(numbers, seconds, scratch),
                    .timeout_seconds = 4 * seconds + 2 * kStartTimeout};
    if (arguments_.verbose)
      command.on_stderr = [](std::string_view text) { fmt::print(stderr, "{}", text); };
    const LoadMeter meter;
    const ProcessResult ended = run_command(command);
    if (ended.how == ProcessResult::How::kInterrupted) return false;
    if (ended.how == ProcessResult::How::kExited && ended.code == 2)
      throw InputError(ended.last_line());
    if (!ended.ok()) throw std::runtime_error(ended.last_line());
    facts_.busy_elsewhere = std::fmax(facts_.busy_elsewhere, meter.busy_elsewhere());
    take(read_bench(scratch.bench), read_samples(scratch.samples));
    return true;
  }

  void take(const BenchFile& file, const std::vector<SampleLine>& samples) {
    add_turns(facts_, file.rows, samples);
    facts_.bounds = worker_bounds(limits_, asked(), facts_.sample_bytes);
    results_.context = file.context;
    results_.rows.insert(results_.rows.end(), file.rows.begin(), file.rows.end());
    results_.samples.insert(results_.samples.end(), samples.begin(), samples.end());
    write_loader_files(folder_, results_);
  }

  void tell(const std::string& text) const {
    if (!arguments_.quiet) fmt::print(stderr, "{}\n", text);
  }

  Summary summarise() const {
    return loader_summary(results_, request(), facts_.busy_elsewhere,
                          to_json(facts_, advise_script(facts_)));
  }

  nlohmann::ordered_json request() const {
    const WorkersArguments& a = arguments_;
    nlohmann::ordered_json all = {{"command", "workers"}, {"script", script_.name},
                                  {"workers", a.workers}, {"loader", a.loader},
                                  {"devices", a.devices}, {"time_budget", a.time_budget}};
    if (facts_.only_loads)
      all.update({{"data", a.data},
                  {"batch", a.batch},
                  {"start_method", a.start_method},
                  {"image_size", a.image_size},
                  {"seed", a.seed}});
    return all;
  }

  const WorkersArguments& arguments_;
  const std::string folder_;
  Script script_;
  ScriptFacts facts_;
  LoaderLimits limits_;
  LoaderResults results_;
  int most_ = 0;
};

// The program that loads, in the results folder while it runs.
class TorchLoader {
 public:
  TorchLoader(const WorkersArguments& arguments, const std::string& folder, double demand)
      : path_(folder + "/.torch_loader.py") {
    const std::string python = find_in_path(arguments.python);
    if (python.empty())
      throw InputError(fmt::format("{} is not in PATH: give the Python of your training with {}",
                                   arguments.python, flag::kPython.name));
    write_text(path_, embedded::kTorchLoader);
    words_ = {python, path_};
    const auto add = [&](const char* option, const std::string& value) {
      words_.insert(words_.end(), {option, value});
    };
    add("--data", std::filesystem::absolute(arguments.data).string());
    add("--batch", std::to_string(arguments.batch));
    add("--image-size", std::to_string(arguments.image_size));
    add("--seed", std::to_string(arguments.seed));
    if (demand > 0) add("--samples-per-second", fmt::format("{:.6g}", demand));
    if (!arguments.start_method.empty()) add("--start-method", arguments.start_method);
  }
  ~TorchLoader() { ::unlink(path_.c_str()); }
  TorchLoader(const TorchLoader&) = delete;
  TorchLoader& operator=(const TorchLoader&) = delete;

  Script script(int ranks) const {
    Script script;
    script.name = "PyTorch's DataLoader";
    script.words = ranks > 1 ? under_torchrun(words_) : words_;
    return script;
  }

 private:
  const std::string path_;
  std::vector<std::string> words_;
};

}  // namespace

int run_script_workers(const WorkersArguments& arguments) {
  refuse_many_copies("it starts the command itself: start it once");
  std::string notice;
  Script script = script_from(arguments.command, &notice, Script::Count::kAsGiven);
  script.in_copy = arguments.in_copy;
  if (arguments.keep_private) make_private(script);
  const RunFolder folder = RunFolder::create(arguments.out);
  catch_interrupts();
  return ScriptWorkers(arguments, folder.path(), std::move(script), {}).run();
}

int run_torch_loader(const WorkersArguments& arguments, const std::string& folder,
                     const Demand& demand) {
  const TorchLoader loader(arguments, folder, demand.samples_per_s);
  ScriptFacts facts;
  facts.only_loads = true;
  facts.demand = demand;
  return ScriptWorkers(arguments, folder, loader.script(arguments.devices), std::move(facts)).run();
}

}  // namespace howmany::reports
