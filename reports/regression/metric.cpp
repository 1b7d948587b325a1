// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/metric.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/schema/metrics.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

// Names of Google Benchmark and its memory manager, and name endings of counters. The first match
// counts, so "bytes_per_s" precedes "bytes".
struct Rule {
  std::string_view ending;
  bool whole;  // must match the whole name
  Better better;
  bool exact;
  std::string_view unit;
};
constexpr std::array<Rule, 34> kRules = {{
    {"real_time", true, Better::kLess, false, "s"},
    {"cpu_time", true, Better::kLess, false, "s"},
    {"bytes_per_second", false, Better::kMore, false, "B/s"},
    {metric::kBytesPerS, false, Better::kMore, false, "B/s"},
    {metric::kFlopPerS, false, Better::kMore, false, "FLOP/s"},
    {"_per_second", false, Better::kMore, false, "1/s"},
    {"_per_sec", false, Better::kMore, false, "1/s"},
    {"_per_s", false, Better::kMore, false, "1/s"},
    {"speedup", false, Better::kMore, false, "ratio"},
    {"efficiency", false, Better::kMore, false, "ratio"},
    {"allocs_per_iter", true, Better::kLess, true, ""},
    {"max_bytes_used", true, Better::kLess, true, "B"},
    {"total_allocated_bytes", true, Better::kLess, true, "B"},
    {"net_heap_growth", true, Better::kLess, true, "B"},
    {"bytes", true, Better::kLess, true, "B"},
    {"_bytes", false, Better::kLess, true, "B"},
    {"allocations", false, Better::kLess, true, ""},
    {"allocs", false, Better::kLess, true, ""},
    {"messages", false, Better::kLess, true, ""},
    {"launches", false, Better::kLess, true, ""},
    {"collectives", false, Better::kLess, true, ""},
    {"syscalls", false, Better::kLess, true, ""},
    {"instructions", false, Better::kLess, false, ""},  // hardware counters vary; see --direction
    {"cycles", false, Better::kLess, false, ""},
    {"misses", false, Better::kLess, false, ""},
    {"_seconds", false, Better::kLess, false, "s"},
    {"seconds", true, Better::kLess, false, "s"},
    {"latency", false, Better::kLess, false, ""},
    {"_ns", false, Better::kLess, false, "ns"},
    {"_us", false, Better::kLess, false, "us"},
    {"_ms", false, Better::kLess, false, "ms"},
    {"_s", false, Better::kLess, false, "s"},
    {"wait_fraction", false, Better::kLess, false, "ratio"},
    {"time", true, Better::kLess, false, ""},
}};

}  // namespace

std::optional<MetricKind> metric_kind(std::string_view name) {
  const auto fits = [&](const Rule& rule) {
    return rule.whole ? name == rule.ending : name.ends_with(rule.ending);
  };
  const auto rule = std::find_if(kRules.begin(), kRules.end(), fits);
  if (rule == kRules.end()) return std::nullopt;
  return MetricKind{rule->better, rule->exact, std::string(rule->unit)};
}

void add_metric_kind(MetricKinds& kinds, const std::string& text) {
  const size_t equals = text.rfind('=');
  const std::string name = text.substr(0, equals);
  const std::string how = equals == std::string::npos ? "" : text.substr(equals + 1);
  if (name.empty() || (how != "less" && how != "more" && how != "exact")) {
    throw InputError(
        fmt::format("--direction: \"{}\" is not METRIC=less, METRIC=more or METRIC=exact", text));
  }
  MetricKind kind = metric_kind(name).value_or(MetricKind{});
  if (how != "exact") kind.better = how == "more" ? Better::kMore : Better::kLess;
  kind.exact = how == "exact";
  kinds[name] = kind;
}

std::optional<MetricKind> metric_kind(const MetricKinds& kinds, std::string_view name) {
  const auto it = kinds.find(name);
  return it == kinds.end() ? metric_kind(name) : it->second;
}

}  // namespace howmany::reports
