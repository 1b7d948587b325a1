// SPDX-License-Identifier: Apache-2.0
#include "benches/tools/memory_flags.h"

#include <CLI/CLI.hpp>

#include "benches/common/parts_help.h"
#include "benches/common/program.h"
#include "core/backends/selection.h"
#include "core/base/cli/number_check.h"
#include "core/base/cli/option.h"
#include "core/base/error.h"
#include "core/base/text/names.h"
#include "core/base/text/options.h"
#include "core/tensor/device.h"

namespace howmany::benches {
namespace {

constexpr const char* kMemoryExamples = R"(Examples:
  howmany memory --model gpt2:size=large --optimizer adamw --device-memory 24GB
  howmany memory --model resnet50 --batch-per-device 256 --precision bf16 --device-memory 40GB
  howmany memory --model vit_b_16 --mode ddp,pipeline,pipeline:recompute=1 --device-count 4
  howmany memory --model gpt2:size=xl --global-batch 64 --device-count 8,16,32 --json
  howmany memory --model llama-7b --precision bf16 --optimizer adamw --device-memory 80GB
  howmany memory --model bert_large:length=512 --attention eager --device-memory "32 GB"
  howmany memory --model resnet18 --kernels onednn     # on CPU devices
  howmany memory --device-memory 40GB -- python train.py       # your own PyTorch script
  howmany memory --device-count 1,8,64 -- torchrun train.py    # and with FSDP on more ranks

Nothing runs and no GPU is needed. The memory is estimated from the tensors of a training step.
Your own script runs for some steps on one device; options: --device-count, --device-memory,
--private, --in-copy, --json and --quiet.
40GB are 40e9 bytes; 40G and 40GiB are 40 x 2^30.)";

constexpr int kMaxDevices = 16'384;

}  // namespace

MemoryFlags parse_memory_flags(int argc, char** argv) {
  MemoryFlags flags;
  Workload& work = flags.work;
  CLI::App app("Does a model fit? The memory of a training step on each device, estimated.",
               "howmany memory");
  app.footer(parts_help() + "\n" + kMemoryExamples);
  const auto set_precision = [&work](const std::string& name) {
    work.precision = precision_named(name);
  };
  add_option(app, flag::kModel, work.model);
  add_list(app, flag::kMode, flags.modes, "single, ddp and the levels of sharded");
  add_option(app, flag::kDeviceCount, flags.counts, "1,2,4,8")
      ->delimiter(',')
      ->check(whole_between(1, kMaxDevices));
  auto* const weak = add_option(app, flag::kBatchPerDevice, flags.batch_per_device, "by model")
                         ->check(whole_between(1, kMaxBatch));
  add_option(app, flag::kGlobalBatch, flags.global_batch, "")
      ->check(whole_between(1, kMaxBatch))
      ->excludes(weak);
  add_option_function<std::string>(app, flag::kPrecision, set_precision, "f32");
  auto* const kernels = add_option(app, flag::kKernels, work.kernels, "those of a GPU");
  add_option(app, flag::kCoresPerDevice, work.cores_per_device)
      ->check(above_zero())
      ->needs(kernels);
  add_option(app, flag::kOptimizer, work.optimizer);
  add_option(app, flag::kMomentum, work.optim.momentum)->check(at_least_zero());
  add_memory(app, flag::kDeviceMemory, flags.device_memory, "that of the smallest GPU here");
  add_option(app, flag::kAttention, flags.attention);
  add_switch(app, flag::kSyncBatchnorm, work.sync_batchnorm);
  bool quiet = false;  // as in all commands; nothing here is progress
  add_switch(app, flag::kQuiet, quiet);
  add_switch(app, flag::kJson, flags.json);  // schema howmany.memory/1
  parse(app, argc, argv);
  flags.modes = join_options(flags.modes);
  if (flags.modes == std::vector<std::string>{"all"}) {
    const std::vector<std::string_view> all = mode_names();
    flags.modes.assign(all.begin(), all.end());
  }
  if (!work.kernels.empty()) require_known("kernels", work.kernels, backend_names());
  configure_cpu_devices({.cores_per_device = work.cores_per_device});
  require_known("attention", flags.attention, {"flash", "eager"});
  make_model(work.model);
  make_optimizer(work.optimizer, work.optim);
  for (const std::string& mode : flags.modes) mode_traits(mode);
  HM_REQUIRE(work.optim.momentum == 0 || work.optimizer == "sgd",
             "{} is for sgd: {} has moments of its own", flag::kMomentum.name, work.optimizer);
  return flags;
}

}  // namespace howmany::benches
