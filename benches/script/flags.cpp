// SPDX-License-Identifier: Apache-2.0
#include "benches/script/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "benches/common/program.h"
#include "benches/common/step_log.h"
#include "benches/script/rated.h"
#include "core/base/cli/number_check.h"
#include "core/base/cli/option.h"
#include "core/base/error.h"
#include "core/base/schema/flags.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"

namespace howmany::benches {
namespace {

constexpr int64_t kMaxMemory = int64_t{1} << 50, kMaxRanks = 16'384;
constexpr const char* kScriptExamples = R"(Examples:
  script_bench -- python train.py
  script_bench --workers 0,1,2,4 -- python train.py
  script_bench --rate '(?<samples_per_s>[0-9.]+) img/s' -- python train_jax.py
  script_bench --devices cpu:0,cpu:1 -- torchrun --nproc-per-node {n} train.py --epochs 9
{n} stands for the number of devices, {port} for a free port.
Flags of Google Benchmark (--benchmark_...) work as usual.
Exit codes: 0 measured, 2 bad usage or input, 3 the measurement failed.)";

// Returns the JSON of a GPU, from that text or the file of that name.
std::string counted_gpu(const std::string& text) try {
  const std::string source = std::string("script_bench ") + flag::kCount.name;
  const nlohmann::json json = parse_json(text.starts_with("{") ? text : read_text(text), source);
  const JsonNode gpu(json, source);
  gpu.at("name").string();
  gpu.at("memory").integer_between(1, kMaxMemory);
  if (const JsonNode capability = gpu.at("capability"); capability.items().size() != 2)
    capability.fail("expected two numbers, such as [8, 0]");
  for (const JsonNode& part : gpu.at("capability").items()) part.integer_between(0, 1000);
  gpu.at("devices").integer_between(1, kMaxRanks);
  return json.dump();
} catch (const InputError& e) {
  throw std::invalid_argument(e.what());
}

void take_counted(const std::string& text, ScriptCommand& command) {
  HM_REQUIRE(command.rate.empty(), "--count needs the hook, and --rate does without it");
  HM_REQUIRE(!command.turns.given(), "--count times no steps, and --workers needs them");
  command.counted_for = counted_gpu(text);
}

// The hook reads the table again.
void take_world(ScriptCommand& command) {
  const std::string& path = command.rehearsal.costs;
  if (path.empty()) return;
  HM_REQUIRE(command.rate.empty(), "--rehearse needs the hook, and --rate does without it");
  command.rehearsal.world = read_cost_table(path).world;
  HM_REQUIRE(command.rehearsal.world >= command.ranks,
             "the cost table is for fewer ranks than devices");
}

}  // namespace

std::vector<std::string> parse_script(int argc, char** argv, ScriptFlags& flags) {
  char** const end = std::find(argv + 1, argv + argc, std::string_view("--"));
  CLI::App app("Times the training steps of a PyTorch script, unmodified.", "script_bench");
  app.footer(kScriptExamples);
  add_option(app, flag::kModel, flags.name);
  add_option(app, flag::kDevices, flags.device_list);
  add_option(app, flag::kCoresPerDevice, flags.cores_per_device)->check(whole_between(1, 4096));
  add_option(app, flag::kCaseBudget, flags.command.seconds)->check(at_least_zero());
  add_option(app, flag::kMaxIterations, flags.command.max_steps)->check(above_zero());
  add_option(app, flag::kSamplesPerStep, flags.command.samples_per_step, "from its batches")
      ->check(whole_between(1, kMaxBatch));
  add_option(app, flag::kRate, flags.command.rate, "")->check(not_empty());
  bool keep_private = false;
  add_switch(app, flag::kPrivate, keep_private);
  add_switch(app, flag::kInCopy, flags.command.in_copy);
  WorkerTurns& turns = flags.command.turns;
  add_option(app, flag::kWorkers, turns.numbers, "unchanged")
      ->delimiter(',')
      ->check(whole_between(0, 1024));
  add_option(app, flag::kMostWorkers, turns.most)->check(whole_between(0, 1 << 20));
  add_option(app, flag::kRounds, turns.rounds)->check(whole_between(1, 1000));
  add_option(app, flag::kPrefetch, turns.prefetch, "the script's own")
      ->check(whole_between(0, 1024));
  add_option(app, flag::kLoader, turns.loader, "the one that feeds training")
      ->check(whole_between(0, 1000));
  add_option(app, flag::kNodes, flags.command.nodes)->check(whole_between(1, 4096));
  int ranks = 1;
  add_option(app, flag::kRanks, ranks)->check(whole_between(0, 4096));
  add_switch(app, flag::kTryDdp, flags.command.try_ddp);
  add_switch(app, flag::kTry, flags.command.tries);
  add_switch(app, flag::kCountMemory, flags.command.count_memory);
  std::string counted_for;
  add_option(app, flag::kCount, counted_for, "");
  add_option(app, flag::kRehearse, flags.command.rehearsal.costs, "");
  add_option(app, flag::kRunTimeout, flags.run_timeout)->check(above_zero());
  add_option(app, flag::kStartTimeout, flags.command.start_timeout)->check(above_zero());
  add_option(app, flag::kSamplesFile, flags.samples)->envname("HOWMANY_SAMPLES");
  std::vector<std::string> google = parse(app, static_cast<int>(end - argv), argv);
  if (end != argv + argc) flags.command.words.assign(end + 1, argv + argc);
  HM_REQUIRE(!flags.command.words.empty(), "no command; write it after --");
  flags.command.quote = !keep_private;
  flags.command.ranks = std::max(1, ranks);
  flags.command.any_world = ranks == 0;
  check_rate(flags.command);
  if (turns.given() && counted_for.empty()) return google;
  if (!counted_for.empty()) take_counted(counted_for, flags.command);
  if (flags.command.count_memory || !counted_for.empty()) return take_world(flags.command), google;
  flags.command.devices = parse_devices(flags.device_list);
  flags.command.ranks = static_cast<int>(flags.command.devices.size()) * flags.command.nodes;
  flags.command.threads = flags.cores_per_device;
  take_world(flags.command);
  return google;
}

}  // namespace howmany::benches
