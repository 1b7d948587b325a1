// SPDX-License-Identifier: Apache-2.0
#include "benches/core/flags.h"

#include <CLI/CLI.hpp>

#include "benches/common/program.h"
#include "core/base/cli/number_check.h"
#include "core/base/cli/option.h"
#include "core/base/schema/flags.h"

namespace howmany::benches {
namespace {

constexpr const char* kCoreExamples = R"(Examples:
  core_bench                                              this CPU, by one core and by all
  core_bench --benchmark_filter=step/resnet18             one of its training steps
  core_bench --device cuda:0 --precision bf16             a GPU, against its own rates in bf16
Exit codes: 0 measured, 2 bad usage, 3 a measurement failed (the others are kept).)";

}  // namespace

std::vector<std::string> parse_core(int argc, char** argv, CoreFlags& options) {
  CLI::App app("Times operations and whole training steps against the machine's own rates.",
               "core_bench");
  const auto set_precision = [&](const std::string& name) {
    options.precision = precision_named(name);
  };
  add_option(app, flag::kCaseBudget, options.timing.budget_seconds)->check(above_zero());
  add_option(app, flag::kSamplesFile, options.samples);
  add_option(app, flag::kDevice, options.device, "CPU cores, one and all");
  add_option_function<std::string>(app, flag::kPrecision, set_precision, "f32");
  app.footer(kCoreExamples);
  return parse(app, argc, argv);
}

}  // namespace howmany::benches
