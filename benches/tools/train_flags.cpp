// SPDX-License-Identifier: Apache-2.0
#include "benches/tools/train_flags.h"

#include <CLI/CLI.hpp>

#include "benches/common/parts_help.h"
#include "benches/common/program.h"
#include "core/base/cli/number_check.h"
#include "core/base/cli/option.h"
#include "core/base/error.h"
#include "core/base/schema/flags.h"
#include "parallel/modes/mode.h"

namespace howmany::benches {
namespace {

constexpr const char* kTrainExamples = R"(Examples:
  howmany train                                        simple_net, 100 samples, two epochs
  howmany train --mode ddp --devices cpu:0,cpu:1       the same losses, computed by two ranks
  howmany train --mode ddp --backend gloo              ... in processes of their own
  howmany train --model resnet18:image=64 --data photos --global-batch 16 --lr 0.01 --json
  howmany train --model mlp --devices cuda:0 --precision bf16
Prints the mean loss of every epoch. Ctrl-C ends after the running step and keeps what was printed.
A folder with images that cannot be read is refused, unless --on-bad-image skip leaves them out.
Exit codes: 0 done, 2 bad usage or input, 3 a rank or the data failed or the loss is not finite, 130
ended by Ctrl-C.)";

}  // namespace

void parse_train(int argc, char** argv, TrainFlags& flags) {
  Workload& work = flags.work;
  work.model = "simple_net";
  work.global_batch = 20;  // of 100 samples
  work.samples = 100;
  CLI::App app("One plain training run of any model, mode and data.", "howmany train");
  app.footer(parts_help() + "\n" + kTrainExamples);
  add_option(app, flag::kModel, work.model);
  add_option(app, flag::kMode, work.mode);
  add_option(app, flag::kBackend, work.backend);
  add_option(app, flag::kDevices, flags.devices, "the GPUs, else CPU devices: all, or the first");
  add_option(app, flag::kEpochs, flags.epochs)->check(above_zero());
  add_option(app, flag::kGlobalBatch, work.global_batch)->check(whole_between(1, kMaxBatch));
  add_option(app, flag::kSyntheticSamples, work.samples)->check(at_least_one());
  add_switch(app, flag::kJson, flags.json);
  add_switch(app, flag::kQuiet, flags.quiet);
  add_flags(app, work);
  parse(app, argc, argv);
  HM_REQUIRE(work.synthetic() || app.count(flag::kSyntheticSamples) == 0,
             "--synthetic-samples does not apply to {}, which has its own size", work.data);
  HM_REQUIRE(!work.synthetic() || app.count(flag::kOnBadImage) == 0,
             "--on-bad-image does not apply to synthetic data: give --data");
}

}  // namespace howmany::benches
