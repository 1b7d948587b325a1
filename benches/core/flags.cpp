#include "benches/core/flags.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "benches/common/program.h"
#include "core/base/cli/number_check.h"
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
  app.add_option("--budget", options.timing.budget_seconds, "Seconds for each, at most")
      ->check(above_zero())
      ->capture_default_str();
  app.add_option(flag::kSamples, options.samples, "Append every sample to this file, a line each");
  app.add_option(flag::kDevice, options.device, "A GPU, cuda:0 (default: CPU cores, one and all)");
  app.add_option_function<std::string>(
         "--precision", [&](const std::string& name) { options.precision = precision_named(name); },
         fmt::format("Of a GPU: {}", fmt::join(precision_names(), ", ")))
      ->default_str("f32");
  app.footer(kCoreExamples);
  return parse(app, argc, argv);
}

}  // namespace howmany::benches
