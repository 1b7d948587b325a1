// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/cli/number_check.h"
#include "core/base/cli/option.h"
#include "core/base/cli/output_options.h"
#include "core/base/process.h"
#include "core/base/schema/context.h"
#include "core/base/schema/exit_codes.h"
#include "core/base/schema/flags.h"
#include "reports/results/disturbance.h"
#include "reports/results/machine.h"
#include "reports/results/run_folder.h"
#include "reports/workers/advise.h"
#include "reports/workers/compare.h"
#include "reports/workers/demand.h"
#include "reports/workers/loader_bench.h"
#include "reports/workers/output.h"
#include "reports/workers/render.h"
#include "reports/workers/rows.h"
#include "reports/workers/script_bench.h"

namespace howmany::reports {
namespace {

constexpr int64_t kMaxWorkersAsked = 1024;
constexpr double kDemandSeconds = 3;  // of training steps for --model

void refuse_two_demands(const WorkersArguments& a) {
  const int given = a.model.has_value() + a.from.has_value() + a.samples_per_second.has_value();
  if (given > 1)
    throw InputError("--model, --from and --samples-per-second each set the demand: give one");
}

// Rejects options that have no effect in this mode.
void refuse_without_effect(const CLI::App& sub, const WorkersArguments& a) {
  const auto refuse = [&](const Flag& option, bool used, const char* what) {
    if (sub.count(option) > 0 && !used)
      throw InputError(fmt::format("{} is {}", option.name, what));
  };
  const bool pytorch = a.as == "pytorch", demanded = a.model || a.from || a.samples_per_second;
  refuse(flag::kDevice, a.model.has_value(),
         "the device of --model: give --model too, or leave it out");
  refuse(flag::kPython, pytorch, "for --worker-type pytorch");
  refuse(flag::kStartMethod, pytorch, "for --worker-type pytorch");
  refuse(flag::kInCopy, false, "for a script: howmany workers -- python train.py");
  refuse(flag::kPrivate, false, "for a script: howmany workers -- python train.py");
  refuse(flag::kLoader, false, "for a script: howmany workers -- python train.py");
  refuse(flag::kMaxWaitPercent, demanded,
         "relative to a demand: give --samples-per-second, --from or --model");
}

// Rejects what the script decides.
void refuse_with_script(const CLI::App& sub) {
  for (const Flag& option :
       {flag::kData, flag::kSamplesPerSecond, flag::kFrom, flag::kModel, flag::kDevice,
        flag::kBatchPerDevice, flag::kWorkerType, flag::kPython, flag::kStartMethod,
        flag::kImageSize, flag::kMaxWaitPercent, flag::kSeed})
    if (sub.count(option) > 0)
      throw InputError(fmt::format("{} is for files; a script decides it itself", option.name));
}

Demand demand_of(const WorkersArguments& a, const std::string& folder) {
  if (a.samples_per_second) return {*a.samples_per_second, flag::kSamplesPerSecond};
  if (a.from) return demand_from_file(*a.from, a.devices);
  if (!a.model) return {};
  if (!a.quiet) fmt::print(stderr, "training {} on {} for its demand\n", *a.model, a.device);
  return demand_of_model(*a.model, a.device, a.batch, std::min(kDemandSeconds, a.time_budget / 10),
                         folder);
}

// The user's own script decides what concerns samples, and its words are not shown.
nlohmann::ordered_json request_json(const WorkersArguments& a, const WorkersFacts& facts) {
  nlohmann::ordered_json all = {{"command", "workers"},
                                {"workers", a.workers},
                                {"devices", a.devices},
                                {"time_budget", a.time_budget}};
  if (!facts.script.empty()) all.update({{"script", facts.script}, {"loader", a.loader}});
  if (facts.trains()) return all;
  all.update({{"data", a.data},
              {"batch", a.batch},
              {"prefetch", a.prefetch},
              {"as", a.as},
              {"image_size", a.image_size},
              {"stall_percent", a.stall_percent},
              {"seed", a.seed}});
  if (a.as == "pytorch") all["start_method"] = a.start_method;
  return all;
}

// True if torch_loader.py can make samples from `data`.
bool has_torch_samples(const std::string& data) {
  const std::filesystem::path path(data);
  return path.extension() == ".tar" || std::filesystem::is_directory(path);
}

bool failed(const WorkersFacts& facts) {
  for (const WorkersPoint& p : facts.points)
    if (!p.error.empty()) return true;
  return facts.points.empty() || !facts.stopped.empty();
}

WorkersFacts facts_from(const WorkersArguments& a, const Demand& demand) {
  WorkersFacts facts;
  facts.wanted = workers_from(a.workers);
  facts.max_stall = a.stall_percent / 100;
  facts.as = a.command.empty() ? a.as : "script";
  facts.demand_from = demand.from;
  facts.asked = {.devices = a.devices,
                 .demand = demand.samples_per_s,
                 .prefetch = a.prefetch,
                 .batch = a.batch};
  return facts;
}

std::string why_unmeasurable(const WorkersFacts& facts) {
  for (const WorkerBound& bound : facts.bounds)
    if (bound.too_many)
      return fmt::format(
          "the batches of {} devices do not fit into memory, even without workers ({})",
          facts.asked.devices, bound.because);
  return "";
}

// `script`: the user's own, or one of ours that only loads; if absent, loader_bench loads.
void measure(BenchRuns& runs, const std::optional<Script>& script, WorkersFacts& facts,
             const Budget& budget) {
  const auto look = look_at(runs, script ? "null" : runs.arguments().data);
  if (!look) return;
  facts.cores = look->limits.cores;
  if (!script) add_files(facts, look->context);
  facts.bounds = worker_bounds(look->limits, facts.asked, facts.sample_bytes);
  facts.stopped = why_unmeasurable(facts);
  if (!facts.stopped.empty()) return;
  std::unique_ptr<WorkersBench> bench;
  if (script)
    bench = std::make_unique<ScriptBench>(runs, *script, look->limits);
  else
    bench =
        std::make_unique<LoaderBench>(runs, budget, look->context.contains(context::kLoaderFormat));
  const bool went = measure_workers(*bench, facts, budget);
  const WorkersPoint* chosen = chosen_of(facts);
  if (went && chosen != nullptr) bench->measure_first_epoch(facts, chosen->workers);
}

int answer(const WorkersArguments& a, const std::string& folder,
           const std::optional<Script>& script, WorkersFacts facts, const Budget& budget) {
  BenchRuns runs(a, folder);
  if (script) facts.script = script->name;
  measure(runs, script, facts, budget);
  if (interrupted()) facts.stopped = "it was interrupted";
  facts.busy_elsewhere = std::fmax(facts.busy_elsewhere, runs.results().busy_elsewhere);
  write_and_print(a, folder,
                  loader_summary(runs.results(), request_json(a, facts), facts.busy_elsewhere,
                                 to_json(facts, advise_workers(facts))));
  if (interrupted()) {
    fmt::print(stderr, "interrupted: the results so far are in {}\n", folder);
    return exit_code::kInterrupted;
  }
  return failed(facts) ? exit_code::kMeasurementFailed : exit_code::kFine;
}

int run_script_workers(const WorkersArguments& a) {
  const Budget budget(a.time_budget);
  refuse_many_copies("it starts the command itself: start it once");
  std::string notice;
  Script script = script_from(a.command, &notice, Script::Count::kAsGiven);
  script.in_copy = a.in_copy;
  if (a.keep_private) make_private(script);
  WorkersFacts facts = facts_from(a, {});
  const RunFolder folder = RunFolder::create(a.out);
  catch_interrupts();
  return answer(a, folder.path(), script, std::move(facts), budget);
}

}  // namespace

std::vector<int> workers_from(const std::string& text) {
  std::vector<int> workers;
  if (text == "auto") return workers;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    int64_t value = -1;
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, value);
    if (error != std::errc{} || stop != text.data() + end || value < 0 || value > kMaxWorkersAsked)
      throw InputError(
          fmt::format("--workers {}: expected auto, or numbers from 0 to {} such as 0,1,2", text,
                      kMaxWorkersAsked));
    workers.push_back(static_cast<int>(value));
    at = end + 1;
  }
  return workers;
}

int run_workers(const WorkersArguments& a) {
  if (!a.command.empty()) return run_script_workers(a);
  refuse_many_copies(
      "it measures a whole machine: start it once, and give the number of ranks with --ranks");
  refuse_two_demands(a);
  const bool pytorch = a.as == "pytorch";
  if (pytorch && !has_torch_samples(a.data))
    throw InputError(
        "--worker-type pytorch needs --data DIR of class folders, tar shards or x.npy and y.npy");
  workers_from(a.workers);
  const RunFolder held = RunFolder::create(a.out);
  const std::string& folder = held.path();
  catch_interrupts();
  const Budget budget(a.time_budget);
  const LoadMeter meter;
  const Demand demand = demand_of(a, folder);
  WorkersFacts facts = facts_from(a, demand);
  if (a.model) facts.busy_elsewhere = std::fmax(0.0, meter.busy_elsewhere());
  if (!pytorch) return answer(a, folder, std::nullopt, std::move(facts), budget);
  const TorchLoader loader(a, folder, demand.samples_per_s);
  return answer(a, folder, loader.script(a.devices), std::move(facts), budget);
}

void add_workers(CLI::App& app, const std::vector<std::string>& command, int& code) {
  auto a = std::make_shared<WorkersArguments>();
  auto* const sub = &app;
  sub->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_option(*sub, flag::kData, a->data);
  add_option(*sub, flag::kWorkers, a->workers);
  add_count(*sub, flag::kSamplesPerSecond, a->samples_per_second);
  add_option(*sub, flag::kFrom, a->from);
  add_option(*sub, flag::kModel, a->model);
  add_option(*sub, flag::kDevice, a->device);
  add_option(*sub, flag::kRanks, a->devices)->check(whole_between(1, 1024));
  add_option(*sub, flag::kBatchPerDevice, a->batch)->check(whole_between(1, 1 << 20));
  add_option(*sub, flag::kLoader, a->loader, "the one that feeds training")
      ->check(whole_between(1, 1000));
  add_switch(*sub, flag::kPrivate, a->keep_private);
  add_switch(*sub, flag::kInCopy, a->in_copy);
  add_option(*sub, flag::kPrefetch, a->prefetch)->check(whole_between(1, 1024));
  add_option(*sub, flag::kWorkerType, a->as)
      ->check(CLI::IsMember({"threads", "processes", "pytorch"}));
  add_option(*sub, flag::kPython, a->python);
  add_option(*sub, flag::kStartMethod, a->start_method, "the default of that Python")
      ->check(CLI::IsMember({"fork", "forkserver", "spawn"}));
  add_option(*sub, flag::kImageSize, a->image_size)->check(whole_between(1, 8192));
  add_option(*sub, flag::kMaxWaitPercent, a->stall_percent)->check(between(0.01, 99.0));
  add_option(*sub, flag::kTimeBudget, a->time_budget)->check(above_zero());
  add_option(*sub, flag::kSeed, a->seed);
  add_out(*sub, a->out);
  add_json(*sub, a->json);
  add_quiet(*sub, a->quiet);
  add_verbose(*sub, a->verbose);
  add_no_color(*sub, a->no_color);
  sub->footer(
      "Examples:\n"
      "  howmany workers -- python train.py                        # your own script, unmodified\n"
      "  howmany workers --data photos                             # the curve and its knee\n"
      "  howmany workers --data photos --samples-per-second 1.8k   # demand of one H100\n"
      "  howmany workers --data photos --from howmany-out/X --ranks 4");
  sub->callback([a, sub, &command, &code] {
    a->command = command;
    a->own_prefetch = sub->count(flag::kPrefetch) == 0;
    command.empty() ? refuse_without_effect(*sub, *a) : refuse_with_script(*sub);
    code = run_workers(*a);
  });
}

}  // namespace howmany::reports
