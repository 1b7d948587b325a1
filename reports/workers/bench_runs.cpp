// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/bench_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <stdexcept>

#include "core/base/schema/context.h"
#include "core/base/schema/flags.h"
#include "core/base/schema/metrics.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"
#include "reports/results/disturbance.h"
#include "reports/results/machine.h"

namespace howmany::reports {
namespace {

constexpr double kLoaderTimeout = 120;  // beyond the timed seconds
constexpr double kLookSeconds = 0.1;

// True for the bench's progress lines, which it prints for large folders.
bool is_listing(const std::string& line) {
  return line.ends_with(" files listed\n") || line.ends_with(" files checked\n");
}

}  // namespace

LoaderRun BenchRuns::run(const Argv& argv, double timeout_seconds) const {
  const BenchScratch scratch(folder_);
  Command command{.argv = argv(scratch), .timeout_seconds = timeout_seconds};
  command.on_stderr = [this, line = std::string()](std::string_view text) mutable {
    if (arguments_.verbose) return fmt::print(stderr, "{}", text);
    for (const char c : text) {
      line += c;
      if (c != '\n') continue;
      if (is_listing(line) && !arguments_.quiet) fmt::print(stderr, "{}", line);
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
    std::erase_if(run.file.rows, [](const BenchRow& row) {  // the budget did not suffice for them
      return row.counters.contains(metric::kSkipped);
    });
    if (std::filesystem::exists(scratch.samples)) run.samples = read_samples(scratch.samples);
  } catch (const InputError& error) {
    run.problem = error.what();
  }
  return run;
}

LoaderRun BenchRuns::run_loader(const std::string& data, const std::vector<std::string>& more,
                                double seconds, size_t cases) const {
  const auto argv = [&](const BenchScratch& scratch) {
    const WorkersArguments& a = arguments_;
    std::vector<std::string> all = {find_program("loader_bench"),
                                    "--benchmark_out=" + scratch.bench,
                                    "--benchmark_out_format=json"};
    const auto add = [&](const Flag& flag, const std::string& value) {
      all.insert(all.end(), {flag, value});
    };
    add(flag::kData, data);
    add(flag::kBatchPerDevice, std::to_string(a.batch));
    add(flag::kPrefetch, std::to_string(a.prefetch));
    add(flag::kImageSize, std::to_string(a.image_size));
    add(flag::kSeed, std::to_string(a.seed));
    add(flag::kCaseBudget, fmt::format("{:.3f}", seconds));
    add(flag::kSamplesFile, scratch.samples);
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  return run(argv, 10 * seconds * static_cast<double>(cases) + kLoaderTimeout);
}

void BenchRuns::keep(const LoaderRun& run) {
  if (results_.context.empty()) results_.context = run.file.context;
  results_.context.erase(context::kLoaderLimits);
  results_.busy_elsewhere = std::fmax(results_.busy_elsewhere, run.busy_elsewhere);
  std::ranges::copy(run.file.rows, std::back_inserter(results_.rows));
  std::ranges::copy(run.samples, std::back_inserter(results_.samples));
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const BenchRow& row : results_.rows) rows.push_back(nlohmann::ordered_json(row.json));
  std::string lines;
  for (const SampleLine& line : results_.samples) lines += dump_json_line(line.json);
  write_text(folder_ + "/loader.samples.jsonl", lines);
  write_text(folder_ + "/loader.json",
             dump_json({{"context", results_.context}, {"benchmarks", rows}}));
}

void BenchRuns::tell(const std::string& text) const {
  if (!arguments_.quiet) fmt::print(stderr, "{}\n", text);
}

std::optional<LoaderLook> look_at(const BenchRuns& runs, const std::string& data) {
  const LoaderRun run = runs.run_loader(data, {flag::kWorkers, "0"}, kLookSeconds, 1);
  if (run.interrupted()) return std::nullopt;
  if (!run.problem.empty()) throw InputError(run.problem);
  if (run.file.rows.empty()) throw std::runtime_error("loader_bench " + run.ended.describe());
  const std::string& error = run.file.rows[0].error;
  if (error.find("out of memory") != std::string::npos)
    throw InputError(fmt::format("{}; lower --batch-per-device or --image-size", error));
  if (!error.empty()) throw InputError(fmt::format("--data {}: {}", data, error));
  const auto limits = run.file.context.find(context::kLoaderLimits);
  if (limits == run.file.context.end() || !limits->is_string())
    throw InputError("loader_bench reports no limits");
  return LoaderLook{
      limits_from_json(parse_json(limits->get<std::string>(), "loader_limits"), "loader_limits"),
      run.file.context};
}

}  // namespace howmany::reports
