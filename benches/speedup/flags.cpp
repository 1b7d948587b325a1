#include "benches/speedup/flags.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <fstream>

#include "benches/common/program.h"
#include "core/base/cli/number_check.h"
#include "core/base/error.h"
#include "core/base/schema/flags.h"
#include "core/base/text/names.h"
#include "parallel/mode.h"

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
  app.add_option(flag::kModel, flags.models, "name or name:key=value,...; may be repeated")
      ->expected(1)
      ->take_all();
  app.add_option(flag::kMode, flags.modes, "of " + fmt::format("{}", fmt::join(mode_names(), ", ")))
      ->delimiter(',');
  app.add_option(flag::kBackend, flags.backends, "between ranks; local: threads of one process")
      ->delimiter(',');
  app.add_option(flag::kDevices, flags.devices, "cpu:0,cpu:1 or cpu:0-3: measure on exactly these");
  app.add_option(flag::kDeviceCount, flags.counts, "measure on the first n of the devices, each n")
      ->delimiter(',')
      ->check(above_zero());
  auto* weak = app.add_option(flag::kBatchPerDevice, flags.batch_per_device, "weak scaling")
                   ->check(CLI::Range(int64_t{1}, kMostBatch));
  app.add_option(flag::kGlobalBatch, flags.global_batch, "strong scaling")
      ->check(CLI::Range(int64_t{1}, kMostBatch))
      ->excludes(weak);
  app.add_option(flag::kBudgetSeconds, flags.timing.budget_seconds, "of timed steps, each case")
      ->check(at_least_zero())
      ->capture_default_str();
  app.add_option("--min-iterations", flags.timing.min_iterations)
      ->check(above_zero())
      ->capture_default_str();
  app.add_option("--max-iterations", flags.timing.max_iterations)
      ->check(above_zero())
      ->capture_default_str();
  app.add_option(flag::kSamples, flags.samples, "append every timed step to this file")
      ->envname("HOWMANY_SAMPLES");
  app.add_option(
      flag::kProfile, flags.trace,
      "profile some steps after the timed ones, and append them to this trace of Perfetto");
  app.add_flag("--graph-gain", flags.graph_gain,
               "instead: single:graph=on against graph=off on one GPU, in turn");
  app.add_flag(flag::kList, flags.list, "names of the cases, one a line");
}

}  // namespace

std::vector<std::string> parse_speedup(int argc, char** argv, SpeedupFlags& flags) {
  flags.work.steady = true;
  flags.work.optim.lr = 0.01;
  CLI::App app("Times training steps over models, modes, backends and device counts.",
               "speedup_bench");
  app.footer(kSpeedupExamples);
  add_speedup_flags(app, flags);
  add_flags(app, flags.work);
  std::vector<std::string> google = parse(app, argc, argv);
  flags.modes = join_options(flags.modes);
  if (app.count("--min-iterations") == 0)
    flags.timing.min_iterations =
        std::min(flags.timing.min_iterations, flags.timing.max_iterations);
  HM_REQUIRE(flags.timing.max_iterations >= flags.timing.min_iterations,
             "--max-iterations {} is below --min-iterations {}", flags.timing.max_iterations,
             flags.timing.min_iterations);
  HM_REQUIRE(flags.trace.empty() || std::ofstream(flags.trace, std::ios::app).good(),
             "--profile: cannot write {}", flags.trace);
  return google;
}

}  // namespace howmany::benches
