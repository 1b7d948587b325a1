// Which way a metric is better, and whether it is exact: Google Benchmark's JSON says neither, so
// it follows from the name. Values only; safe from any thread.
//
//   metric_kind("items_per_second")->better   // Better::kMore
//   metric_kind("allocs_per_iter")->exact     // true: any change is a change, no test needed
//   metric_kind("loss")                       // nothing: listed, never judged
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace howmany::reports {

enum class Better { kLess, kMore };

struct MetricKind {
  Better better = Better::kLess;
  bool exact = false;
  std::string unit;  // "s", "B", "1/s", "B/s", "ratio", ""
};

std::optional<MetricKind> metric_kind(std::string_view name);

// What was said on the command line, "name=less|more|exact": before what the name tells.
using MetricKinds = std::map<std::string, MetricKind, std::less<>>;
// Throws InputError naming --direction.
void add_metric_kind(MetricKinds& kinds, const std::string& text);
std::optional<MetricKind> metric_kind(const MetricKinds& kinds, std::string_view name);

}  // namespace howmany::reports
