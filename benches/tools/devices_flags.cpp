// SPDX-License-Identifier: Apache-2.0
#include "benches/tools/devices_flags.h"

#include <CLI/CLI.hpp>

#include "benches/common/program.h"
#include "core/base/cli/number_check.h"
#include "core/base/cli/option.h"

namespace howmany::benches {
namespace {

constexpr const char* kDevicesExamples = R"(Examples:
  howmany devices           what is here, for people
  howmany devices --json    the same for programs: .cpu_devices.default_count, .gpus, ...
  howmany devices --engines                     what computes resnet18 and gpt2 on the first GPU
  howmany devices --engines --model vit_b_16 --batch-per-device 64)";

}  // namespace

DevicesFlags parse_devices_flags(int argc, char** argv) {
  DevicesFlags flags;
  CLI::App app(
      "Cores and the limit that decides, memory, GPUs, and the parts of this build that work.",
      "howmany devices");
  app.footer(kDevicesExamples);
  bool quiet = false;  // as in all commands; nothing here is progress
  add_switch(app, flag::kQuiet, quiet);
  add_switch(app, flag::kJson, flags.json);  // schema howmany.devices/1
  auto* const engines = add_switch(app, flag::kEngines, flags.engines);
  add_repeatable(app, flag::kModel, flags.models, "resnet18 and gpt2, with --engines")
      ->needs(engines);
  add_option(app, flag::kBatchPerDevice, flags.batch)
      ->check(whole_between(1, kMaxBatch))
      ->needs(engines);
  add_option(app, flag::kComputed, flags.computed)->group("");  // internal; see computed.h
  parse(app, argc, argv);
  return flags;
}

}  // namespace howmany::benches
