// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/run.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "core/base/schema/flags.h"
#include "reports/results/disturbance.h"
#include "reports/results/machine.h"
#include "reports/results/record.h"
#include "reports/results/scratch.h"

namespace howmany::reports {
namespace {

constexpr double kLoaderTimeout = 120;  // beyond the timed seconds

std::vector<std::string> loader_argv(const WorkersArguments& a, double seconds,
                                     const BenchScratch& scratch) {
  std::vector<std::string> argv = {find_program("loader_bench"), "--benchmark_out=" + scratch.bench,
                                   "--benchmark_out_format=json"};
  const auto add = [&](const Flag& flag, const std::string& value) {
    argv.insert(argv.end(), {flag, value});
  };
  add(flag::kData, a.data);
  add(flag::kBatchPerDevice, std::to_string(a.batch));
  add(flag::kPrefetch, std::to_string(a.prefetch));
  add(flag::kImageSize, std::to_string(a.image_size));
  add(flag::kSeed, std::to_string(a.seed));
  add(flag::kCaseBudget, fmt::format("{:.3f}", seconds));
  add(flag::kSamplesFile, scratch.samples);
  return argv;
}

// True for the bench's progress lines, which it prints for large folders.
bool is_listing(const std::string& line) {
  return line.ends_with(" files listed\n") || line.ends_with(" files checked\n");
}

}  // namespace

LoaderRun run_loader_bench(const WorkersArguments& arguments, const std::string& folder,
                           const std::vector<std::string>& more, double seconds, size_t cases) {
  const BenchScratch scratch(folder);
  Command command{.argv = loader_argv(arguments, seconds, scratch),
                  .timeout_seconds = 10 * seconds * static_cast<double>(cases) + kLoaderTimeout};
  command.argv.insert(command.argv.end(), more.begin(), more.end());
  command.on_stderr = [&arguments, line = std::string()](std::string_view text) mutable {
    if (arguments.verbose) return fmt::print(stderr, "{}", text);
    for (const char c : text) {
      line += c;
      if (c != '\n') continue;
      if (is_listing(line) && !arguments.quiet) fmt::print(stderr, "{}", line);
      line.clear();
    }
  };
  LoaderRun run;
  const LoadMeter meter;
  run.ended = run_command(command);
  if (run.ended.ok()) run.busy_elsewhere = meter.busy_elsewhere();
  if (run.ended.how == ProcessResult::How::kExited && run.ended.code == 2)
    throw InputError(run.ended.last_line());
  try {
    if (std::filesystem::exists(scratch.bench)) run.file = read_bench(scratch.bench);
    if (std::filesystem::exists(scratch.samples)) run.samples = read_samples(scratch.samples);
  } catch (const InputError& error) {
    run.problem = error.what();
  }
  return run;
}

}  // namespace howmany::reports
