// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/cli/number_check.h"
#include "core/base/cli/option.h"
#include "core/base/cli/output_options.h"
#include "core/base/private_folder.h"
#include "core/base/process.h"
#include "core/base/schema/context.h"
#include "core/base/schema/exit_codes.h"
#include "core/base/schema/flags.h"
#include "core/base/schema/limits.h"
#include "core/base/schema/metrics.h"
#include "core/base/text/json.h"
#include "core/base/text/print_stderr.h"
#include "core/base/text/table.h"
#include "reports/nodes/nodes.h"
#include "reports/results/disturbance.h"
#include "reports/results/machine.h"
#include "reports/results/rounds.h"
#include "reports/results/run_folder.h"
#include "reports/workers/advise.h"
#include "reports/workers/demand.h"
#include "reports/workers/loader_bench.h"
#include "reports/workers/render.h"
#include "reports/workers/script_bench.h"

namespace howmany::reports {
namespace {

constexpr int64_t kMaxWorkersAsked = 1024;
constexpr double kScriptBudget = 600;  // seconds, if none is given
constexpr double kDemandSeconds = 3;   // of training steps for --model

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
  for (const Flag& option : {flag::kInCopy, flag::kPrivate, flag::kLoader})
    refuse(option, false, "for a script: howmany workers -- python train.py");
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
  if (!a.quiet) print_stderr("training {} on {} for its demand\n", *a.model, a.device);
  return demand_of_model(*a.model, a.device, a.batch, std::min(kDemandSeconds, a.time_budget / 10),
                         folder);
}

// The user's own script decides what concerns samples, and its words are not shown.
nlohmann::json request_json(const WorkersArguments& a, const WorkersFacts& facts) {
  nlohmann::json all = {{"command", "workers"},
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

WorkersFacts facts_from(const WorkersArguments& a) {
  WorkersFacts facts;
  facts.wanted = workers_from(a.workers);
  facts.max_stall = a.stall_percent / 100;
  facts.as = a.command.empty() ? a.as : "script";
  facts.asked = {.devices = a.devices, .demand = 0, .prefetch = a.prefetch, .batch = a.batch};
  return facts;
}

// `script`: the user's own, or torch_loader(); nullptr: loader_bench loads.
void measure(BenchRuns& runs, const Script* script, WorkersFacts& facts, const Budget& budget) {
  const auto seen = look_at(runs, script != nullptr ? "null" : runs.arguments().data);
  if (!seen) return;
  const nlohmann::json limits = limits_in(*seen);
  if (script == nullptr) add_files(facts, *seen);
  facts.bounds = worker_bounds(limits, facts.asked, facts.sample_bytes);
  facts.cores = limits.at(limit::kCores);
  for (const WorkerBound& bound : facts.bounds)
    if (bound.too_many)
      facts.stopped =
          fmt::format("the batches of {} devices do not fit into memory, even without workers ({})",
                      facts.asked.devices, bound.because);
  if (!facts.stopped.empty()) return;
  const auto bench = script != nullptr
                         ? make_script_bench(runs, *script, limits)
                         : make_loader_bench(runs, budget, seen->contains(context::kLoaderFormat));
  measure_workers(*bench, facts, budget);
}

int answer(const WorkersArguments& a, const std::string& folder, const Script* script,
           WorkersFacts facts, const Budget& budget) {
  BenchRuns runs(a, folder);
  if (script != nullptr) facts.script = script->name;
  measure(runs, script, facts, budget);
  if (interrupted()) facts.stopped = "it was interrupted";
  facts.busy_elsewhere = std::fmax(facts.busy_elsewhere, max_busy_elsewhere(runs.kept()));
  Summary summary;
  std::vector<std::vector<Measurement>> rounds;  // a number has a turn in each
  for (const SuiteRun& run : runs.kept())
    for (const BenchRow& row : run.file.rows) rounds.push_back({measurement_of(row)});
  summary.measurements = over_rounds(rounds);
  if (!runs.kept().empty()) summary.context = runs.kept()[0].file.context;
  summary.context[metric::kBusyElsewhereFraction] = facts.busy_elsewhere;
  summary.answer["workers"] = to_json(facts, advise_workers(facts));
  write_summary_files(folder, summary, request_json(a, facts));
  const bool color = color_wanted(STDOUT_FILENO);
  fmt::print("{}",
             a.json ? dump_json(to_json(summary)) : workers_text(summary, folder, folder, color));
  if (interrupted()) {
    print_stderr("interrupted: the results so far are in {}\n", folder);
    return exit_code::kInterrupted;
  }
  return failed(facts) ? exit_code::kMeasurementFailed : exit_code::kFine;
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
  const Budget budget(a.time_budget);
  const bool own = !a.command.empty(), pytorch = a.as == "pytorch";
  refuse_many_copies(own ? "it starts the command itself: start it once"
                         : "it measures a whole machine: start it once, and give the number of "
                           "ranks with --ranks");
  if (a.model.has_value() + a.from.has_value() + a.samples_per_second.has_value() > 1)
    throw InputError("--model, --from and --samples-per-second each set the demand: give one");
  if (!own && pytorch && !has_torch_samples(a.data))
    throw InputError(
        "--worker-type pytorch needs --data DIR of images, tar shards or x.npy and y.npy");
  WorkersFacts facts = facts_from(a);
  std::optional<Script> script;
  if (own) {
    std::string notice;
    script = script_from(a.command, &notice, Script::Count::kAsGiven);
    script->in_copy = a.in_copy;
    if (a.keep_private) make_private(*script);
  }
  const RunFolder folder = RunFolder::create(a.out);
  const LoadMeter meter;
  const Demand demand = demand_of(a, folder.path());
  if (a.model) facts.busy_elsewhere = std::fmax(0.0, meter.busy_elsewhere());
  facts.demand_from = demand.from;
  facts.asked.demand = demand.samples_per_s;
  const PrivateFolder scratch;
  if (!own && pytorch) script = torch_loader(a, scratch.path(), demand.samples_per_s);
  return answer(a, folder.path(), script ? &*script : nullptr, std::move(facts), budget);
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
  add_option(*sub, flag::kTimeBudget, a->time_budget, "60; 600 for a command")->check(above_zero());
  add_option(*sub, flag::kSeed, a->seed)->check(whole_between(0, kMaxSeed));
  add_out(*sub, a->out);
  add_json(*sub, a->json);
  add_quiet(*sub, a->quiet);
  add_verbose(*sub, a->verbose);
  sub->footer(
      "Examples:\n"
      "  howmany workers -- python train.py                        # your own script, unmodified\n"
      "  howmany workers --data photos                             # the curve and its knee\n"
      "  howmany workers --data photos --samples-per-second 1.8k   # demand of one H100\n"
      "  howmany workers --data photos --from howmany-out/X --ranks 4");
  sub->callback([a, sub, &command, &code] {
    a->command = command;
    a->own_prefetch = sub->count(flag::kPrefetch) == 0;
    if (!command.empty() && sub->count(flag::kTimeBudget) == 0) a->time_budget = kScriptBudget;
    command.empty() ? refuse_without_effect(*sub, *a) : refuse_with_script(*sub);
    code = measure_within_job(1, 1, [&] { return run_workers(*a); });
  });
}

}  // namespace howmany::reports
