// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/launches.h"

#include <algorithm>

#include "core/base/statistics.h"
#include "core/base/text/json.h"

namespace howmany::reports {
namespace {

// Other load only adds to a time, so the best repetition describes the program best.
double best_of(const std::optional<MetricKind>& kind, const std::vector<double>& values) {
  if (!kind || kind->exact) return median(values);
  return kind->better == Better::kLess ? std::ranges::min(values) : std::ranges::max(values);
}

// Searches from `place` on, since launches keep their order, and sets it to the result.
Benchmark& benchmark_of(Suite& side, const std::string& name, size_t& place) {
  std::vector<Benchmark>& all = side.benchmarks;
  for (size_t i = 0; i < all.size(); ++i, ++place) {
    place %= all.size();
    if (all[place].name == name) return all[place];
  }
  place = all.size();
  all.emplace_back().name = name;
  return all.back();
}

}  // namespace

void add_launch(Suite& side, const Suite& launch, int64_t block, const MetricKinds& kinds) {
  side.launches = true;
  size_t place = 0;
  for (const Benchmark& measured : launch.benchmarks) {
    if (measured.metrics.empty()) continue;
    Benchmark& benchmark = benchmark_of(side, measured.name, place);
    for (const auto& [metric, samples] : measured.metrics) {
      std::vector<double> values;
      for (const Sample& sample : samples) values.push_back(sample.value);
      benchmark.metrics[metric].push_back({block, best_of(metric_kind(kinds, metric), values)});
    }
  }
}

Suite blocks_of(const Suite& side, int64_t first, int64_t last) {
  Suite part;
  part.source = side.source;
  part.context = side.context;
  part.launches = side.launches;
  const auto before = [](const Sample& sample, int64_t block) { return sample.index < block; };
  for (const Benchmark& whole : side.benchmarks) {
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
