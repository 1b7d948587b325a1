// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/results.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/base/schema/marks.h"
#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/base/schema/samples.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"

namespace howmany::reports {
namespace {

constexpr double kBursts = 0.05;     // of a step, waiting for data
constexpr double kSameBatch = 0.02;  // relative difference

std::string bench_path(const std::string& folder) { return folder + "/speedup.json"; }
std::string samples_path(const std::string& folder) { return folder + "/speedup.samples.jsonl"; }

std::vector<const BenchRun*> in_file_order(const Results& results) {
  std::vector<const BenchRun*> runs;
  for (const BenchRun& run : results.runs) runs.push_back(&run);
  std::sort(runs.begin(), runs.end(), [](const BenchRun* a, const BenchRun* b) {
    return std::tie(a->configuration, a->round) < std::tie(b->configuration, b->round);
  });
  return runs;
}

// Returns the row as Google Benchmark would write it if one process ran all repetitions.
nlohmann::ordered_json bench_row(const BenchRun& run, int rounds) {
  nlohmann::ordered_json row = run.row.json;
  row["name"] = run.row.name;
  row["run_name"] = run.row.name;
  row["run_type"] = "iteration";
  row["family_index"] = run.configuration;
  row["per_family_instance_index"] = 0;
  row["repetitions"] = rounds;
  row["repetition_index"] = run.round;
  return row;
}

std::string device_list(const Request& request, int count) {
  const auto here = std::min(count, static_cast<int>(request.devices.size()));
  const std::vector<std::string> first(request.devices.begin(), request.devices.begin() + here);
  return fmt::format("{}", fmt::join(first, ","));
}

void add_nodes(const Request& request, const Configuration& c,
               std::map<std::string, std::string>& parameters) {
  if (request.across.nodes.many() && !c.is_rehearsal())
    parameters[parameter::kNodes] = std::to_string(nodes_of(request, c.devices));
}

// Returns the parameters that script_bench reported for a configuration; empty if no run succeeded.
std::map<std::string, std::string> observed(const Results& results, size_t configuration) {
  for (const BenchRun& run : results.runs) {
    if (run.configuration != configuration || run.samples.seconds.empty()) continue;
    std::map<std::string, std::string> all;
    const JsonNode root(run.samples.json, "samples");
    for (const auto& [key, value] : root.at(sample_line::kParameters).members())
      all[key] = value.string();
    return all;
  }
  return {};
}

double batch_in(const std::map<std::string, std::string>& seen) {
  const auto found = seen.find(parameter::kGlobalBatch);
  return found == seen.end() ? 0 : std::atof(found->second.c_str());
}

// The program printed samples per second, so its samples are the seconds of one sample.
bool is_per_sample(const std::map<std::string, std::string>& seen) {
  const auto found = seen.find(parameter::kRate);
  return found != seen.end() && found->second == metric::kSamplesPerS;
}

// Samples per step of a configuration, relative to the baseline, which is the first one.
double work_of(const Results& results, size_t configuration) {
  if (is_per_sample(observed(results, configuration))) return 1;
  const double one = batch_in(observed(results, 0)), n = batch_in(observed(results, configuration));
  return one > 0 && n > 0 ? n / one : kNaN;
}

// weak, strong or neither: from the samples per step on the most devices. Empty if only one device
// was measured.
std::string scaling_of_script(const std::vector<Configuration>& all, const Results& results) {
  for (size_t i = all.size(); i-- > 1;) {
    const double work = work_of(results, i), n = all[i].devices;
    if (n == 1 || std::isnan(work) || is_per_sample(observed(results, i))) continue;
    if (std::abs(work - n) < kSameBatch * n) return "weak";
    return std::abs(work - 1) < kSameBatch ? "strong" : "neither";
  }
  return "";
}

std::map<std::string, std::string> parameters_of_script(const Plan& plan, const Results& results,
                                                        size_t configuration) {
  const std::vector<Configuration> configs = configurations(plan.request);
  const Configuration& c = configs[configuration];
  std::map<std::string, std::string> all = observed(results, configuration);
  if (c.mode == "single" || all.empty()) {
    all[parameter::kMode] = c.mode;
    all[parameter::kBackend] = c.backend;
  }
  all[parameter::kScript] = "1";
  all[parameter::kModel] = c.model;
  all[parameter::kDevices] = std::to_string(c.devices);
  if (const std::string scaling = scaling_of_script(configs, results); !scaling.empty())
    all[parameter::kScaling] = scaling;
  all[parameter::kCoresPerDevice] = std::to_string(plan.request.cores_per_device);
  all["device_list"] = device_list(plan.request, c.devices);
  add_nodes(plan.request, c, all);
  if (const double batch = batch_in(all); batch > 0)
    all[parameter::kBatchPerDevice] = std::to_string(std::llround(batch / c.devices));
  return all;
}

std::map<std::string, std::string> parameters(const Request& request, const Configuration& c) {
  std::map<std::string, std::string> all = {
      {"model", c.model},
      {"mode", c.mode},
      {"backend", c.backend},
      {"devices", std::to_string(c.devices)},
      {"device_list", device_list(request, c.devices)},
      {"global_batch", std::to_string(global_batch(request, c))},
      {"scaling", request.scaling == Scaling::kWeak ? "weak" : "strong"},
      {"cores_per_device", std::to_string(request.cores_per_device)}};
  if (request.scaling == Scaling::kWeak) all["batch_per_device"] = std::to_string(c.batch);
  if (request.sync_batchnorm) all["sync_batchnorm"] = "1";
  for (const auto& [name, word] : request.forwarded.given()) {
    std::string key = name;
    std::ranges::replace(key, '-', '_');
    all[key] = word;
  }
  add_nodes(request, c, all);
  if (request.workers >= 0) all["workers"] = std::to_string(request.workers);
  return all;
}

Metric metric_of(const Estimate& estimate, const std::string& unit) {
  Metric metric{estimate.value, unit, {}, {}, estimate.n, estimate.basis};
  if (estimate.interval) {
    metric.low = estimate.interval->low;
    metric.high = estimate.interval->high;
  }
  return metric;
}

Rounds rounds_of(const Results& results, size_t configuration) {
  Rounds rounds;
  for (const BenchRun& run : results.runs) {
    if (run.configuration == configuration && !run.samples.seconds.empty()) {
      rounds[run.round] = run.samples.seconds;
    }
  }
  return rounds;
}

// As rounds_of(), but a run that waited for data is replaced by its mean. Waits come in bursts, so
// its median step shows no waiting.
Rounds paces_of(const Results& results, size_t configuration) {
  Rounds rounds = rounds_of(results, configuration);
  for (const BenchRun& run : results.runs) {
    const auto wait = run.row.counters.find(metric::kDataWaitFraction);
    if (run.configuration != configuration || wait == run.row.counters.end()) continue;
    const auto round = rounds.find(run.round);
    if (round == rounds.end() || !(wait->second > kBursts)) continue;
    round->second = {mean(round->second)};
  }
  return rounds;
}

void add_once(std::vector<std::string>& flags, const std::string& flag) {
  if (std::find(flags.begin(), flags.end(), flag) == flags.end()) flags.push_back(flag);
}

std::vector<std::string> flags_of(const Plan& plan, const Results& results, size_t configuration) {
  std::vector<std::string> flags;
  int good = 0;
  for (const BenchRun& run : results.runs) {
    if (run.configuration != configuration) continue;
    if (!run.row.error.empty()) {
      add_once(flags, "failed: " + run.row.error);
      continue;
    }
    ++good;
    for (const std::string& flag : run.samples.flags) add_once(flags, flag);
    const Script& script = plan.request.script;
    if (script.alone) add_once(flags, mark::kUsesOneDevice);
    if (!script.why_alone.empty()) add_once(flags, mark::kFailsWithRanks + script.why_alone);
    if (!script.why_one_node.empty()) add_once(flags, mark::kFailsOnNodes + script.why_one_node);
    if (script.has_group) add_once(flags, mark::kHasGroup);
    if (script.own_ranks > 0) add_once(flags, mark::kOwnRanks);
    if (plan.request.script.try_ddp) add_once(flags, mark::kTryDdp);
    if (!run.samples.converged) add_once(flags, "not converged");
  }
  if (good < plan.request.rounds) {
    add_once(flags, fmt::format("{} of {} rounds", good, plan.request.rounds));
    if (results.interrupted) add_once(flags, "interrupted");
    if (results.out_of_time)
      add_once(flags, fmt::format("{}{:.0f}", mark::kOutOfTime, std::ceil(results.whole_seconds)));
  }
  return flags;
}

const char* unit_of(const std::string& counter) {
  if (counter == metric::kFlopPerS) return "FLOP/s";
  if (counter.ends_with(metric::kBytesPerS)) return "B/s";
  if (counter.starts_with("peak_bytes") || counter == metric::kGpuMemoryBytes) return "bytes";
  if (counter.ends_with("_per_s")) return "1/s";
  if (counter.ends_with("_s")) return "s";
  return counter.ends_with("_fraction") ? "ratio" : "";
}

// Adds the median over rounds of each counter that does not follow from the samples, and the
// largest load from other programs.
void add_counters(Measurement& m, const Results& results, size_t configuration) {
  std::map<std::string, std::vector<double>> values;
  for (const BenchRun& run : results.runs) {
    if (run.configuration != configuration || run.samples.seconds.empty()) continue;
    for (const auto& [name, value] : run.row.counters) values[name].push_back(value);
  }
  for (const auto& [name, all] : values) {
    if (m.metrics.contains(name) || name == metric::kSamples) continue;
    const double value = name == metric::kBusyElsewhereFraction ? quantile(all, 1) : median(all);
    m.metrics[name] = {value, unit_of(name), {}, {}, static_cast<int64_t>(all.size()), "rounds"};
  }
}

void add_spread(Measurement& m, const Rounds& rounds) {
  std::vector<double> pooled;
  for (const auto& [round, seconds] : rounds) {
    pooled.insert(pooled.end(), seconds.begin(), seconds.end());
  }
  const auto n = static_cast<int64_t>(pooled.size());
  m.metrics[metric::kP95S] = {quantile(pooled, 0.95), "s", {}, {}, n, "iterations"};
  m.metrics[metric::kMinS] = {quantile(pooled, 0), "s", {}, {}, n, "iterations"};
  m.metrics[metric::kCv] = {coefficient_of_variation(pooled), "ratio", {}, {}, n, "iterations"};
}

void add_rate(Measurement& m, double batch) {
  const Metric& step = m.metrics[metric::kMedianS];
  Metric rate{batch / step.value, "1/s", {}, {}, step.n, step.basis};
  if (step.low) rate.high = batch / *step.low;
  if (step.high) rate.low = batch / *step.high;
  m.metrics[metric::kSamplesPerS] = rate;
}

bool share_a_round(const Rounds& a, const Rounds& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](const auto& entry) { return b.contains(entry.first); });
}

// `work`: samples per step relative to the baseline.
void add_speedup(Measurement& m, const Rounds& single, const Rounds& rounds, double work,
                 int devices) {
  if (!share_a_round(single, rounds) || std::isnan(work)) return;
  const Estimate times = speedup(single, rounds, work);
  m.metrics["speedup"] = metric_of(times, "ratio");
  m.metrics["efficiency"] = metric_of(scaled(times, 1.0 / devices), "ratio");
}

}  // namespace

void write_results(const std::string& folder, const Plan& plan, const Results& results) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::string lines;
  for (const BenchRun* run : in_file_order(results)) {
    rows.push_back(bench_row(*run, plan.request.rounds));
    if (run->samples.seconds.empty()) continue;
    nlohmann::ordered_json line = run->samples.json;
    line["configuration"] = run->configuration;
    line["round"] = run->round;
    lines += dump_json_line(line);
  }
  // Writes samples first: a row without samples would count as measured.
  write_text(samples_path(folder), lines);
  write_text(bench_path(folder), dump_json({{"context", results.context}, {"benchmarks", rows}}));
}

Results read_results(const std::string& folder, const Plan& plan) {
  Results results;
  if (!std::filesystem::exists(bench_path(folder))) return results;
  BenchFile file = read_bench(bench_path(folder));
  results.context = file.context;
  const auto count = static_cast<int>(configurations(plan.request).size());
  for (BenchRow& row : file.rows) {
    if (row.family >= count || row.repetition >= plan.request.rounds) {
      throw InputError(
          fmt::format("[{}] {} does not belong to the plan", bench_path(folder), row.name));
    }
    results.runs.push_back({static_cast<size_t>(row.family), row.repetition, std::move(row), {}});
  }
  for (SampleLine& line : read_samples(samples_path(folder))) {
    const JsonNode node(line.json, samples_path(folder));
    const int64_t configuration = node.at("configuration").integer();
    const int64_t round = node.at("round").integer();
    for (BenchRun& run : results.runs) {
      if (static_cast<int64_t>(run.configuration) == configuration && run.round == round &&
          run.row.error.empty()) {
        run.samples = std::move(line);
        break;
      }
    }
  }
  return results;
}

const BenchRun* first_failed(const Results& results) {
  const auto found =
      std::ranges::find_if(results.runs, [](auto& r) { return !r.row.error.empty(); });
  return found == results.runs.end() ? nullptr : &*found;
}

std::vector<Measurement> measurements(const Plan& plan, const Results& results) {
  const Request& request = plan.request;
  const std::vector<Configuration> all = configurations(request);
  std::vector<Measurement> list;
  Rounds single;
  for (size_t i = 0; i < all.size(); ++i) {
    const Configuration& c = all[i];
    const Rounds rounds = paces_of(results, i);
    if (c.mode == "single") single = rounds;
    const bool script = request.script.given();
    Measurement m{c.is_rehearsal() ? "rehearsal" : "speedup",
                  c.mode + "/" + c.model,
                  script ? parameters_of_script(plan, results, i) : parameters(request, c),
                  {},
                  {}};
    m.flags = flags_of(plan, results, i);
    if (!rounds.empty()) {
      m.metrics[metric::kMedianS] = metric_of(step_time(rounds), "s");
      add_spread(m, rounds_of(results, i));
      const bool per_sample = is_per_sample(m.parameters);
      const double batch = per_sample ? 1
                           : script   ? batch_in(m.parameters)
                                      : static_cast<double>(global_batch(request, c));
      add_rate(m, batch);
      const double weak = request.scaling == Scaling::kWeak ? c.devices : 1;
      add_speedup(m, single, rounds, script ? work_of(results, i) : weak, c.devices);
      add_counters(m, results, i);
      if (per_sample)  // there is no time of a step
        for (const char* const name : {metric::kMedianS, metric::kP95S, metric::kMinS})
          m.metrics.erase(name);
    }
    list.push_back(std::move(m));
  }
  return list;
}

}  // namespace howmany::reports
