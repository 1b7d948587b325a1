// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string_view>

#include "core/base/schema/context.h"
#include "core/base/schema/flags.h"
#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/base/schema/samples.h"
#include "core/base/text/json.h"
#include "core/base/text/print_stderr.h"
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

std::string loader_unit(const std::string& counter) {
  if (counter.ends_with("_fraction")) return "ratio";
  if (counter.ends_with(metric::kBytesPerS)) return "B/s";
  if (counter.ends_with("_per_s")) return "1/s";
  if (counter.ends_with("_s") || counter == metric::kCpuSPerSample) return "s";
  return counter.find("bytes") != std::string::npos ? "bytes" : "";
}

// Parses a number that is stored as text. Returns 0 if it is missing.
double number_in(const nlohmann::json& context, const char* name) {
  const auto it = context.find(name);
  return it != context.end() && it->is_string() ? std::atof(it->get<std::string>().c_str()) : 0;
}

// Returns the number after "workers:" in the name of a row.
int workers_of(const BenchRow& row) {
  constexpr std::string_view kWord = "workers:";
  const size_t at = row.name.find(kWord);
  int workers = -1;
  if (at != std::string::npos)
    std::from_chars(row.name.data() + at + kWord.size(), row.name.data() + row.name.size(),
                    workers);
  if (workers < 0) throw InputError(fmt::format("{}: no number of workers", row.name));
  return workers;
}

std::string text_of(const SampleLine& line, const char* parameter) {
  const JsonNode root(line.json, "script_bench");
  return root.at(sample_line::kParameters).at(parameter).string();
}

int number_of(const SampleLine& line, const char* parameter) {
  const std::string text = text_of(line, parameter);
  const int value = text.empty() || text.size() > 9 ? -1 : std::atoi(text.c_str());
  if (value < 0) throw InputError(fmt::format("script_bench: {} is no number", parameter));
  return value;
}

void add_turn(WorkersPoint& point, const BenchRow& row, int round) {
  if (!row.error.empty()) {
    point.error = row.error;
    return;
  }
  const double rate = counter(row, metric::kSamplesPerS);
  if (!(rate > 0)) throw InputError(fmt::format("{}: a turn without samples/s", row.name));
  point.rates[round] = rate;
  if (row.counters.contains(metric::kStallFraction))
    point.stalls.push_back(counter(row, metric::kStallFraction));
  point.alone = counter(row, metric::kAloneSamplesPerS, point.alone);
  point.wait_p95_s = counter(row, metric::kLatencyP95S, point.wait_p95_s);
  point.first_batch_s = counter(row, metric::kFirstBatchS, point.first_batch_s);
  point.bytes_per_worker = counter(row, metric::kBytesPerWorker, point.bytes_per_worker);
}

}  // namespace

SuiteRun BenchRuns::run(const std::vector<std::string>& argv, const BenchScratch& scratch,
                        double timeout_seconds) const {
  Command command{.argv = argv, .timeout_seconds = timeout_seconds};
  command.on_stderr = [this, line = std::string()](std::string_view text) mutable {
    if (arguments_.verbose) return print_stderr("{}", text);
    for (const char c : text) {
      line += c;
      if (c != '\n') continue;
      if (is_listing(line) && !arguments_.quiet) print_stderr("{}", line);
      line.clear();
    }
  };
  SuiteRun run;
  const LoadMeter meter;
  run.ended = run_command(command);
  run.busy_elsewhere = run.ended.ok() ? meter.busy_elsewhere() : kNaN;
  if (run.ended.how == ProcessResult::How::kExited && run.ended.code == 2)
    throw InputError(run.ended.last_line());
  try {
    if (std::filesystem::exists(scratch.bench)) run.file = read_bench(scratch.bench);
    // The time budget did not suffice for these.
    std::erase_if(run.file.rows,
                  [](const BenchRow& row) { return row.counters.contains(metric::kSkipped); });
    if (std::filesystem::exists(scratch.samples)) run.samples = read_samples(scratch.samples);
  } catch (const InputError& error) {
    run.problem = error.what();
  }
  return run;
}

SuiteRun BenchRuns::run_loader(const std::string& data, const std::vector<std::string>& more,
                               double seconds, size_t cases) const {
  const BenchScratch scratch(folder_);
  const WorkersArguments& a = arguments_;
  std::vector<std::string> argv = {find_program("loader_bench"), "--benchmark_out=" + scratch.bench,
                                   "--benchmark_out_format=json"};
  const auto add = [&](const Flag& flag, const std::string& value) {
    argv.insert(argv.end(), {flag, value});
  };
  add(flag::kData, data);
  add(flag::kBatchPerDevice, std::to_string(a.batch));
  add(flag::kPrefetch, std::to_string(a.prefetch));
  add(flag::kImageSize, std::to_string(a.image_size));
  add(flag::kSeed, std::to_string(a.seed));
  add(flag::kCaseBudget, fmt::format("{:.3f}", seconds));
  add(flag::kSamplesFile, scratch.samples);
  argv.insert(argv.end(), more.begin(), more.end());
  return run(argv, scratch, 10 * seconds * static_cast<double>(cases) + kLoaderTimeout);
}

void BenchRuns::keep(SuiteRun run) {
  run.file.context.erase(context::kLoaderLimits);
  run.round = static_cast<int>(kept_.size());
  kept_.push_back(std::move(run));
  write_suite(folder_, "loader", kept_);
}

void BenchRuns::tell(const std::string& text) const {
  if (!arguments_.quiet) print_stderr("{}\n", text);
}

std::optional<nlohmann::json> look_at(const BenchRuns& runs, const std::string& data) {
  const SuiteRun run = runs.run_loader(data, {flag::kWorkers, "0"}, kLookSeconds, 1);
  if (interrupted()) return std::nullopt;
  if (!run.problem.empty()) throw InputError(run.problem);
  if (run.file.rows.empty()) throw std::runtime_error("loader_bench " + run.ended.describe());
  const std::string& error = run.file.rows[0].error;
  if (error.find("out of memory") != std::string::npos)
    throw InputError(fmt::format("{}; lower --batch-per-device or --image-size", error));
  if (!error.empty()) throw InputError(fmt::format("--data {}: {}", data, error));
  return run.file.context;
}

nlohmann::json limits_in(const nlohmann::json& context) {
  const JsonNode root(context, "loader_bench");
  return parse_json(root.at(context::kLoaderLimits).string(), context::kLoaderLimits);
}

double counter(const BenchRow& row, const char* name, double otherwise) {
  const auto it = row.counters.find(name);
  return it == row.counters.end() ? otherwise : it->second;
}

Measurement measurement_of(const BenchRow& row) {
  Measurement m{"loader", "", {}, {}, {}};
  std::string rest = row.name.substr(std::min(row.name.find('/') + 1, row.name.size()));
  for (size_t part = 0; !rest.empty(); ++part) {
    const size_t end = std::min(rest.find('/'), rest.size());
    const std::string word = rest.substr(0, end);
    const size_t colon = part == 0 ? std::string::npos : word.find(':');
    if (colon != std::string::npos)
      m.parameters[word.substr(0, colon)] = word.substr(colon + 1);
    else
      m.name += (m.name.empty() ? "" : "/") + word;
    rest.erase(0, end + 1);
  }
  if (!row.error.empty()) m.flags.push_back("failed: " + row.error);
  for (const auto& [name, value] : row.counters)
    if (name != metric::kSamples) m.metrics[name] = {value, loader_unit(name), {}, {}, 1, "runs"};
  return m;
}

std::set<int> add_turns(WorkersFacts& facts, const std::vector<BenchRow>& rows) {
  const int begin = next_round(facts.points);
  std::set<int> numbers;
  std::map<int, int> rounds;  // by workers: a number repeats once per round
  for (const BenchRow& row : rows) {
    const int workers = workers_of(row);
    add_turn(point_at(facts.points, workers), row, begin + rounds[workers]++);
    numbers.insert(workers);
  }
  return numbers;
}

void add_script(WorkersFacts& facts, const std::vector<BenchRow>& rows,
                const std::vector<SampleLine>& samples) {
  if (rows.size() != samples.size() || rows.empty())
    throw InputError("script_bench: its rows and samples do not fit together");
  for (size_t i = 0; i < rows.size(); ++i)
    point_at(facts.points, workers_of(rows[i])).own |= text_of(samples[i], parameter::kOwn) == "1";
  const SampleLine& first = samples.front();
  const JsonNode line(first.json, "script_bench");
  const int ranks = std::max(1, static_cast<int>(line.at(sample_line::kWorld).integer()));
  facts.asked.devices = ranks;
  facts.asked.batch = number_of(first, parameter::kGlobalBatch) / ranks;
  facts.asked.prefetch = number_of(first, parameter::kPrefetch);
  facts.sample_bytes = number_of(first, parameter::kBytes) /
                       static_cast<double>(std::max<int64_t>(1, facts.asked.batch));
  facts.gpu = text_of(first, parameter::kDevice) == "cuda";
}

void add_files(WorkersFacts& facts, const nlohmann::json& context) {
  facts.bad = number_in(context, context::kLoaderFilesBad);
  facts.looked_at = facts.bad + number_in(context, context::kLoaderFilesUsed);
  facts.first_bad = context.value(context::kLoaderFirstBad, "");
  facts.data_notes = context.value(context::kLoaderNotes, "");
  facts.sample_bytes = number_in(context, context::kLoaderSampleBytes);
}

}  // namespace howmany::reports
