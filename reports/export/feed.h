// SPDX-License-Identifier: Apache-2.0
// The answer of `howmany gpus` as plain figures for other systems, from the summary that
// report.html shows. Nothing is computed here.
//
// Privacy. Holds names of models, scripts, devices and clusters, but no commands, paths, hosts or
//   environment.
// Untrusted input. Texts have a limited length and no control characters.
// Thread safety. Values only; not tied to any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/results/record.h"

namespace howmany::reports {

// A metric of a configuration: "step_time", "step_time_low" and "step_time_high", each followed by
// the unit.
struct FeedMetric {
  const char *name, *unit, *help;
};
inline constexpr FeedMetric kFeedMetrics[] = {
    {"step_time", "seconds", "Time of a training step"},
    {"throughput", "samples_per_second", "Training samples per second of all devices"},
    {"throughput", "batches_per_second", "Batches of one device per second, of all devices"},
    {"speedup", "ratio", "Speedup over one device"},
    {"efficiency", "ratio", "Parallel efficiency: speedup divided by the number of devices"},
};

struct FeedValue {
  double value = 0;
  std::optional<double> low, high;  // at 95 % if measured, at 90 % otherwise
};

// A configuration.
struct FeedRow {
  const char* evidence;  // "measured", "rehearsed" or "predicted"
  int devices = 1, nodes = 1;
  std::string mode = {}, backend = {};
  bool best = false, valid = false;  // as in the answer's table; true if not measured
  std::map<const FeedMetric*, FeedValue> values = {};
};

// An answer to "how many devices", from measured rows or with rows beyond them.
struct FeedAnswer {
  const char* evidence;
  std::optional<double> devices;
  std::optional<bool> certain;  // nullopt: not known
};

// One model or script.
struct Feed {
  std::string model = {}, because = {};
  std::map<std::string, std::string> params = {}, tags = {};
  std::optional<double> unix_seconds = {};  // of the run
  std::vector<FeedAnswer> answers = {};
  std::vector<FeedRow> rows = {};
};

// Returns one feed per model. Throws InputError if no row has a figure that may count.
std::vector<Feed> feeds_of(const Summary& summary);

}  // namespace howmany::reports
