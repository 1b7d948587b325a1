// SPDX-License-Identifier: Apache-2.0
// Derives from a metric's name which direction is better, and whether it is exact. Google
// Benchmark's JSON has neither. Values only; safe from any thread.
//
//   metric_kind("items_per_second")->better   // Better::kMore
//   metric_kind("allocs_per_iter")->exact     // true: any change is a change, no test needed
//   metric_kind("loss")                       // nullopt: listed, never judged
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

// Kinds from the command line, "name=less|more|exact". They override the name's.
using MetricKinds = std::map<std::string, MetricKind, std::less<>>;
// Throws InputError that names --direction.
void add_metric_kind(MetricKinds& kinds, const std::string& text);
std::optional<MetricKind> metric_kind(const MetricKinds& kinds, std::string_view name);

}  // namespace howmany::reports
