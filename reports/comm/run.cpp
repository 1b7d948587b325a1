// SPDX-License-Identifier: Apache-2.0
#include "reports/comm/run.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "core/base/schema/flags.h"
#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/base/statistics.h"
#include "core/base/text/files.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "core/base/text/print_stderr.h"
#include "reports/html/summary_files.h"
#include "reports/results/disturbance.h"
#include "reports/results/machine.h"
#include "reports/results/scratch.h"

namespace howmany::reports {
namespace {

namespace fs = std::filesystem;

void read_files(const BenchScratch& scratch, SuiteRun& run) {
  try {
    if (fs::exists(scratch.bench) && fs::file_size(scratch.bench) > 0)
      run.file = read_bench(scratch.bench);
    if (fs::exists(scratch.samples)) run.samples = read_samples(scratch.samples);
  } catch (const InputError& error) {
    run.problem = error.what();
  }
}

std::string backend_unit(const std::string& name) {
  if (name.ends_with(metric::kBytesPerS)) return "bytes/s";
  if (name.ends_with("_per_s")) return "1/s";
  if (name.ends_with("_s")) return "s";
  if (name == "bytes") return "bytes";
  return name == metric::kCv || name.ends_with("fraction") || name.starts_with("of_") ? "ratio"
                                                                                      : "";
}

// Parses suite/case.../key:value/key:value. The case has the parts without a colon, and torch's
// backends.
void read_name(const std::string& name, Measurement& m) {
  size_t at = 0;
  while (at <= name.size()) {
    const size_t end = std::min(name.find('/', at), name.size());
    const std::string part = name.substr(at, end - at);
    const size_t colon = part.find(':');
    if (at == 0) {
      m.suite = part;
    } else if (colon == std::string::npos || is_torch_backend(part)) {
      m.name += (m.name.empty() ? "" : "/") + part;
    } else {
      m.parameters[part.substr(0, colon)] = part.substr(colon + 1);
    }
    at = end + 1;
  }
}

// Splits "oversubscribed; rehearsal". A skip reason is kept whole, because it may contain anything.
std::vector<std::string> flags_in(const std::string& label) {
  if (label.empty()) return {};
  if (label.starts_with("skipped: ")) return {label};
  std::vector<std::string> flags;
  size_t at = 0;
  for (size_t end; (end = label.find("; ", at)) != std::string::npos; at = end + 2)
    flags.push_back(label.substr(at, end - at));
  flags.push_back(label.substr(at));
  return flags;
}

const SampleLine* samples_of(const SuiteRun& run, const std::string& name,
                             const std::string& timing) {
  for (const SampleLine& line : run.samples) {
    const auto parameters = line.json.find("parameters");
    const std::string own = parameters == line.json.end() || !parameters->is_object()
                                ? ""
                                : parameters->value(parameter::kTiming, std::string());
    if (line.name == name && (own.empty() || own == timing)) return &line;
  }
  return nullptr;
}

// Adds the interval of the median, and of every rate that is derived from it.
void add_interval(Measurement& m, const SampleLine* line, const std::string& metric,
                  const std::string& prefix) {
  const auto found = m.metrics.find(metric);
  if (line == nullptr || line->seconds.empty() || found == m.metrics.end()) return;
  Metric& seconds = found->second;
  const auto interval = median_interval(line->seconds);
  for (auto& [name, value] : m.metrics) {
    const bool is_rate = name.ends_with(metric::kBytesPerS) &&
                         name.starts_with("pipelined_") == (prefix == "pipelined_");
    if (&value != &seconds && !is_rate) continue;
    value.n = static_cast<int64_t>(line->seconds.size());
    value.basis = "iterations";
    if (!interval) continue;
    value.low = is_rate ? value.value * seconds.value / interval->high : interval->low;
    value.high = is_rate ? value.value * seconds.value / interval->low : interval->high;
  }
}

Measurement measurement_of(const SuiteRun& run, const BenchRow& row) {
  Measurement m;
  read_name(row.name, m);
  const auto label = row.json.find("label");
  if (label != row.json.end() && label->is_string()) m.flags = flags_in(label->get<std::string>());
  if (!row.error.empty()) m.flags = {"failed: " + row.error};
  if (!row.error.empty() || row.counters.contains(metric::kSkipped)) return m;
  for (const auto& [name, value] : row.counters)
    if (name != metric::kSamples) m.metrics[name] = {value, backend_unit(name), {}, {}, 0, ""};
  if (const auto calls = row.counters.find(metric::kSamples); calls != row.counters.end())
    m.metrics["calls"] = {calls->second, "", {}, {}, 0, ""};
  add_interval(m, samples_of(run, row.name, "isolated"), metric::kMedianS, "");
  add_interval(m, samples_of(run, row.name, "pipelined"), metric::kPipelinedS, "pipelined_");
  return m;
}

}  // namespace

SuiteRun run_suite(const SuiteCommand& asked) {
  const BenchScratch scratch(asked.folder);
  Command command{.argv = {find_program(asked.program)}, .timeout_seconds = asked.timeout_seconds};
  if (!asked.interpreter.empty())
    command.argv.insert(command.argv.begin(), {asked.interpreter, "-W", "ignore"});
  command.argv.insert(command.argv.end(), asked.arguments.begin(), asked.arguments.end());
  if (asked.one_of_many)
    command.environment = {"HOWMANY_SAMPLES=" + scratch.samples, "BENCHMARK_OUT=" + scratch.bench};
  else
    command.argv.insert(command.argv.end(),
                        {flag::kSamplesFile, scratch.samples, "--benchmark_out=" + scratch.bench,
                         "--benchmark_out_format=json"});
  if (asked.verbose) command.on_stderr = [](std::string_view text) { print_stderr("{}", text); };
  SuiteRun run;
  run.program = asked.program;
  const LoadMeter meter;
  run.ended = run_command(command);
  run.busy_elsewhere = run.ended.ok() ? meter.busy_elsewhere() : kNaN;
  if (run.ended.how == ProcessResult::How::kExited && run.ended.code == 2)
    throw InputError(run.ended.last_line().empty() ? asked.program + " refused its arguments"
                                                   : run.ended.last_line());
  read_files(scratch, run);
  if (!run.ended.ok()) run.problem = run.ended.describe();
  if (run.problem.empty() && run.file.rows.empty()) run.problem = "it left no results";
  return run;
}

std::vector<Measurement> measurements_of(const SuiteRun& run) {
  std::vector<Measurement> all;
  for (const BenchRow& row : run.file.rows) all.push_back(measurement_of(run, row));
  return all;
}

bool has_wrong_data(const std::vector<Measurement>& measurements) {
  for (const Measurement& m : measurements)
    for (const std::string& flag : m.flags)
      if (flag.starts_with("failed: wrong data")) return true;
  return false;
}

double max_busy_elsewhere(const std::vector<SuiteRun>& runs) {
  double most = 0;
  for (const SuiteRun& run : runs) most = std::fmax(most, run.busy_elsewhere);
  return most;
}

void add_busy_elsewhere(const std::vector<SuiteRun>& runs, nlohmann::json& context) {
  context[metric::kBusyElsewhereFraction] = max_busy_elsewhere(runs);
}

double busy_elsewhere_in(const nlohmann::json& context) {
  const auto share = context.find(metric::kBusyElsewhereFraction);
  return share != context.end() && share->is_number() ? share->get<double>() : 0;
}

void refuse_old_results(const std::string& out) {
  if (!out.empty() && fs::exists(out + "/summary.json"))
    throw InputError(fmt::format("{} holds a run already; choose another --out", out));
}

void write_suite(const std::string& folder, const std::string& suite,
                 const std::vector<SuiteRun>& runs) {
  nlohmann::ordered_json context = nlohmann::ordered_json::object();
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::string lines;
  for (const SuiteRun& run : runs) {
    if (context.empty()) context = run.file.context;
    for (const BenchRow& row : run.file.rows) {
      rows.push_back(nlohmann::ordered_json(row.json));
      rows.back()["repetition_index"] = run.round;
    }
    for (const SampleLine& line : run.samples) {
      nlohmann::ordered_json json(line.json);
      json["round"] = run.round;
      lines += dump_json_line(json);
    }
  }
  write_text(folder + "/" + suite + ".json",
             dump_json({{"context", context}, {"benchmarks", rows}}));
  write_text(folder + "/" + suite + ".samples.jsonl", lines);
}

void write_summary_files(const std::string& folder, Summary& summary,
                         const nlohmann::json& request) {
  summary.context["howmany_version"] = HM_VERSION;
  summary.context["howmany_date"] = utc_now("%Y-%m-%dT%H:%M:%SZ");
  summary.context["howmany_request"] = request;
  write_summary(folder, summary);
}

}  // namespace howmany::reports
