// SPDX-License-Identifier: Apache-2.0
#include "benches/speedup/flags.h"

#include <CLI/CLI.hpp>
#include <fstream>

#include "benches/common/parts_help.h"
#include "benches/common/program.h"
#include "core/base/cli/number_check.h"
#include "core/base/cli/option.h"
#include "core/base/error.h"
#include "core/base/schema/flags.h"
#include "core/base/text/options.h"
#include "parallel/modes/mode.h"

namespace howmany::benches {
namespace {

constexpr const char* kSpeedupExamples = R"(Examples:
  speedup_bench                                          the default grid of this machine
  speedup_bench --model mlp --mode single,ddp --devices cpu:0,cpu:1 --batch-per-device 512
  speedup_bench --mode model,pipeline:micro_batches=8,schedule=gpipe,hybrid --backend local
  speedup_bench --model resnet18 --mode ddp --backend gloo --device-count 1,2 --global-batch 32
  speedup_bench --model resnet18 --mode ddp --devices cuda:0,cuda:1 --precision bf16
  speedup_bench --model resnet18 --mode single,single:graph=on --devices cuda:0
  speedup_bench --model resnet18 --mode ddp,ddp:graph=on --backend nccl --devices cuda:0,cuda:1
  speedup_bench --model mlp --graph-gain                 what the captured step gains on the first GPU
  speedup_bench --benchmark_filter=data_parallel --benchmark_out=speedup.json
Flags of Google Benchmark (--benchmark_...) work as usual.
Exit codes: 0 measured, 2 bad usage or input, 3 a measurement failed (the others are kept).)";

void add_speedup_flags(CLI::App& app, SpeedupFlags& flags) {
  add_repeatable(app, flag::kModel, flags.models, "mlp and resnet18");
  add_option(app, flag::kMode, flags.modes, "all that this machine supports")->delimiter(',');
  add_option(app, flag::kBackend, flags.backends, "auto")->delimiter(',');
  add_option(app, flag::kDevices, flags.devices, "GPUs if there are any, else CPU devices");
  add_option(app, flag::kDeviceCount, flags.counts, "powers of two, and all")
      ->delimiter(',')
      ->check(above_zero());
  auto* weak = add_option(app, flag::kBatchPerDevice, flags.batch_per_device, "by model")
                   ->check(whole_between(1, kMaxBatch));
  add_option(app, flag::kGlobalBatch, flags.global_batch, "")
      ->check(whole_between(1, kMaxBatch))
      ->excludes(weak);
  add_option(app, flag::kCaseBudget, flags.timing.budget_seconds)->check(at_least_zero());
  add_option(app, flag::kMinIterations, flags.timing.min_iterations)->check(above_zero());
  add_option(app, flag::kMaxIterations, flags.timing.max_iterations)->check(above_zero());
  add_option(app, flag::kSamplesFile, flags.samples)->envname("HOWMANY_SAMPLES");
  add_option(app, flag::kTraceFile, flags.trace);
  add_switch(app, flag::kGraphGain, flags.graph_gain);
  add_switch(app, flag::kList, flags.list);
}

}  // namespace

std::vector<std::string> parse_speedup(int argc, char** argv, SpeedupFlags& flags) {
  flags.work.steady = true;
  flags.work.optim.lr = 0.01;
  CLI::App app("Times training steps over models, modes, backends and device counts.",
               "speedup_bench");
  app.footer(parts_help() + "\n" + kSpeedupExamples);
  add_speedup_flags(app, flags);
  add_flags(app, flags.work);
  std::vector<std::string> google = parse(app, argc, argv);
  flags.modes = join_options(flags.modes);
  if (app.count(flag::kMinIterations) == 0)
    flags.timing.min_iterations =
        std::min(flags.timing.min_iterations, flags.timing.max_iterations);
  HM_REQUIRE(flags.timing.max_iterations >= flags.timing.min_iterations,
             "--max-iterations {} is below --min-iterations {}", flags.timing.max_iterations,
             flags.timing.min_iterations);
  HM_REQUIRE(flags.trace.empty() || std::ofstream(flags.trace, std::ios::app).good(),
             "--trace-file: cannot write {}", flags.trace);
  return google;
}

}  // namespace howmany::benches
