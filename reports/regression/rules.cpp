// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

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

std::set<std::string> names_of(const std::vector<Row>& rows) {
  std::set<std::string> names;
  for (const Row& row : rows) names.insert(row.benchmark);
  return names;
}

bool is_open(const Row& row) {
  return !row.kind.exact &&
         (row.verdict == Verdict::kSlower || row.verdict == Verdict::kInconclusive);
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

std::vector<std::string> to_escalate(const Comparison& screen) {
  std::set<std::string> names;
  for (const Row& row : screen.rows) {
    if (is_open(row)) names.insert(row.benchmark);
  }
  return {names.begin(), names.end()};
}

Suite only(const Suite& suite, const std::vector<std::string>& names) {
  if (names.empty()) return suite;
  Suite part = suite;
  const std::set<std::string> wanted(names.begin(), names.end());
  std::erase_if(part.benchmarks, [&](const Benchmark& b) { return !wanted.contains(b.name); });
  return part;
}

Comparison settled(const Comparison& screen, const Comparison& fresh) {
  Comparison result = screen;
  const std::set<std::string> again = names_of(fresh.rows);
  std::erase_if(result.rows, [&](const Row& row) { return again.contains(row.benchmark); });
  result.rows.insert(result.rows.end(), fresh.rows.begin(), fresh.rows.end());
  std::stable_sort(result.rows.begin(), result.rows.end(),
                   [](const Row& a, const Row& b) { return a.verdict < b.verdict; });
  result.notes.push_back(fmt::format(
      "{} benchmarks were measured again, on fresh pairs, which alone decide", again.size()));
  return result;
}

Comparison unsettled(const Comparison& screen, const std::string& why) {
  Comparison result = screen;
  for (Row& row : result.rows) {
    if (row.verdict != Verdict::kSlower || row.kind.exact) continue;
    row.verdict = Verdict::kInconclusive;
    row.why =
        fmt::format("slower in {} pairs, not confirmed on fresh ones: {}", row.base_samples, why);
  }
  std::stable_sort(result.rows.begin(), result.rows.end(),
                   [](const Row& a, const Row& b) { return a.verdict < b.verdict; });
  return result;
}

bool RunOrder::base_first() {
  if (!half_) first_ = random_() % 2 == 0;
  half_ = !half_;
  return half_ == first_;
}

}  // namespace howmany::reports
