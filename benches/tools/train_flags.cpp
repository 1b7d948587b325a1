#include "benches/tools/train_flags.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "benches/common/program.h"
#include "core/base/cli/number_check.h"
#include "core/base/error.h"
#include "core/base/schema/flags.h"
#include "parallel/mode.h"

namespace howmany::benches {
namespace {

constexpr const char* kTrainExamples = R"(Examples:
  howmany train                                        simple_net, 100 samples, two epochs
  howmany train --mode ddp --devices cpu:0,cpu:1       the same losses, computed by two ranks
  howmany train --mode ddp --backend gloo              ... in processes of their own
  howmany train --model resnet18:image=64 --data photos --batch 16 --lr 0.01 --json
  howmany train --model mlp --devices cuda:0 --precision bf16
Prints the mean loss of every epoch. Ctrl-C ends after the running step and keeps what was printed.
A folder with images that cannot be read is refused, unless --on-bad-image skip leaves them out.
Exit codes: 0 done, 2 bad usage or input, 3 a rank or the data failed or the loss is not finite, 130
ended by Ctrl-C.)";

}  // namespace

void parse_train(int argc, char** argv, TrainFlags& flags) {
  Workload& work = flags.work;
  work.model = "simple_net";
  work.global_batch = 20;
  work.samples = 100;
  CLI::App app("One plain training run of any model, mode and data.", "howmany train");
  app.footer(kTrainExamples);
  app.add_option(flag::kModel, work.model, "name or name:key=value,...")->capture_default_str();
  app.add_option(flag::kMode, work.mode,
                 fmt::format("{}; single:graph=on and ddp:graph=on capture a GPU's step",
                             fmt::join(mode_names(), ", ")))
      ->capture_default_str();
  app.add_option(flag::kBackend, work.backend, "between ranks; local: threads of one process; auto")
      ->capture_default_str();
  app.add_option(
      flag::kDevices, flags.devices,
      "cpu:0,cpu:1 or cpu:0-3, of all ranks or of those on each host (default: GPUs where "
      "there are any; all, or the first)");
  app.add_option("--epochs", flags.epochs)->check(above_zero())->capture_default_str();
  app.add_option(flag::kBatch, work.global_batch, "samples in a step, over all devices")
      ->check(CLI::Range(int64_t{1}, kMostBatch))
      ->capture_default_str();
  app.add_option(flag::kSamples, work.samples, "size of the synthetic data")
      ->check(at_least_one())
      ->capture_default_str();
  app.add_flag(flag::kJson, flags.json, "a summary on stdout instead of lines");
  add_flags(app, work);
  parse(app, argc, argv);
  HM_REQUIRE(work.synthetic() || app.count(flag::kSamples) == 0,
             "--samples is the size of synthetic data: {} has its own", work.data);
  HM_REQUIRE(!work.synthetic() || app.count("--on-bad-image") == 0,
             "--on-bad-image is about files, and synthetic data has none: give --data");
}

}  // namespace howmany::benches
