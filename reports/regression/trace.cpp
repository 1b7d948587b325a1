// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "core/base/statistics.h"
#include "core/base/text/json.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

Launch launch_from(const JsonNode& node) {
  constexpr int64_t kMaxBlock = int64_t{1} << 40;
  Launch launch;
  launch.block = node.at("block").integer_between(0, kMaxBlock);
  launch.arm = node.at("arm").string();
  launch.position = node.at("position").integer_between(0, kMaxBlock);
  launch.wall_seconds = node.at("wall_s").number();
  for (const auto& [name, metrics] : node.at("values").members()) {
    for (const auto& [metric, list] : metrics.members()) {
      std::vector<double>& values = launch.values[name][metric];
      for (const JsonNode& value : list.items()) {
        values.push_back(value.number());
        if (metric == "real_time" && values.back() <= 0) value.fail("a time of 0 or less");
      }
      if (values.empty()) list.fail("is empty");
    }
  }
  return launch;
}

const char* const kBlocks = "howmany_blocks";

// Other load only adds to a time, so the best repetition describes the program best.
double best_of(const std::optional<MetricKind>& kind, const std::vector<double>& values) {
  if (!kind || kind->exact) return median(values);
  return kind->better == Better::kLess ? std::ranges::min(values) : std::ranges::max(values);
}

}  // namespace

TraceFile::TraceFile(std::string path) : path_(std::move(path)) {
  file_.open(path_, std::ios::app);
  if (!file_) throw InputError(fmt::format("cannot write {}", path_));
}

void TraceFile::add(const Launch& launch) {
  const nlohmann::ordered_json line = {{"block", launch.block},
                                       {"arm", launch.arm},
                                       {"position", launch.position},
                                       {"wall_s", launch.wall_seconds},
                                       {"values", launch.values}};
  file_ << dump_json_line(line) << std::flush;
  if (!file_) throw std::runtime_error(fmt::format("cannot write {}: is the disk full?", path_));
}

std::vector<Launch> trace_from_text(const std::string& text, const std::string& source) {
  std::vector<Launch> launches;
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    if (end == std::string::npos) break;  // the process was killed while writing it
    const std::string place = fmt::format("{}:{}", source, ++number);
    const nlohmann::json json = parse_json(text.substr(at, end - at), place);
    launches.push_back(launch_from(JsonNode(json, place)));
    at = end + 1;
  }
  return launches;
}

Suite suite_of(const std::vector<Launch>& launches, const std::string& arm,
               const MetricKinds& kinds) {
  Suite suite;
  suite.source = arm;
  suite.context[kBlocks] = "one trace";
  suite.launches = true;
  std::map<std::string, size_t> places;
  for (const Launch& launch : launches) {
    if (launch.arm != arm) continue;
    for (const auto& [name, metrics] : launch.values) {
      const auto [it, is_new] = places.try_emplace(name, suite.benchmarks.size());
      if (is_new) suite.benchmarks.emplace_back().name = name;
      Benchmark& benchmark = suite.benchmarks[it->second];
      for (const auto& [metric, values] : metrics) {
        const double best = best_of(metric_kind(kinds, metric), values);
        benchmark.metrics[metric].push_back({launch.block, best});
      }
    }
  }
  return suite;
}

Launch launch_of(const Suite& suite) {
  Launch launch;
  for (const Benchmark& benchmark : suite.benchmarks) {
    for (const auto& [metric, samples] : benchmark.metrics) {
      std::vector<double>& values = launch.values[benchmark.name][metric];
      for (const Sample& sample : samples) values.push_back(sample.value);
    }
  }
  return launch;
}

Suite blocks_of(const Suite& suite, int64_t first, int64_t last) {
  Suite part;
  part.source = suite.source;
  part.context = suite.context;
  part.launches = suite.launches;
  const auto before = [](const Sample& sample, int64_t block) { return sample.index < block; };
  for (const Benchmark& whole : suite.benchmarks) {
    Benchmark& benchmark = part.benchmarks.emplace_back();
    benchmark.name = whole.name;
    benchmark.error = whole.error;
    benchmark.skipped = whole.skipped;
    for (const auto& [metric, samples] : whole.metrics) {
      const auto from = std::lower_bound(samples.begin(), samples.end(), first, before);
      const auto to = std::lower_bound(from, samples.end(), last, before);
      if (from != to) benchmark.metrics[metric].assign(from, to);
    }
  }
  return part;
}

std::string bench_json(const Suite& suite) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  int64_t family = 0;
  for (const Benchmark& benchmark : suite.benchmarks) {
    const auto times = benchmark.metrics.find("real_time");
    if (times == benchmark.metrics.end()) continue;
    for (const Sample& sample : times->second) {
      nlohmann::ordered_json row = {{"name", benchmark.name},
                                    {"family_index", family},
                                    {"per_family_instance_index", 0},
                                    {"run_name", benchmark.name},
                                    {"run_type", "iteration"},
                                    {"repetitions", times->second.size()},
                                    {"repetition_index", sample.index},
                                    {"threads", 1},
                                    {"iterations", 1},
                                    {"real_time", sample.value * 1e9},
                                    {"cpu_time", sample.value * 1e9},
                                    {"time_unit", "ns"}};
      for (const auto& [metric, samples] : benchmark.metrics) {
        if (metric == "real_time") continue;
        const auto same = std::find_if(samples.begin(), samples.end(), [&](const Sample& other) {
          return other.index == sample.index;
        });
        if (same == samples.end()) continue;
        row[metric] = same->value * (metric == "cpu_time" ? 1e9 : 1);
      }
      rows.push_back(std::move(row));
    }
    ++family;
  }
  return dump_json({{"context", suite.context}, {"benchmarks", rows}});
}

}  // namespace howmany::reports
