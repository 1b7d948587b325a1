// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/base/schema/context.h"
#include "core/base/schema/metrics.h"
#include "core/base/statistics.h"

namespace howmany::reports {
namespace {

std::string loader_unit(const std::string& counter) {
  if (counter.ends_with("_fraction")) return "ratio";
  if (counter.ends_with(metric::kBytesPerS)) return "B/s";
  if (counter.ends_with("_per_s")) return "1/s";
  if (counter.ends_with("_s") || counter == metric::kCpuSPerSample) return "s";
  return counter.find("bytes") != std::string::npos ? "bytes" : "";
}

// Returns the rate of batches of `each` samples that take `seconds`.
Metric rate_of(const std::vector<double>& seconds, double each) {
  Metric rate{each / mean(seconds), "1/s", {}, {}, static_cast<int64_t>(seconds.size()),
              "iterations"};
  const auto interval = mean_interval(seconds);
  if (interval && interval->low > 0) {
    rate.low = each / interval->high;
    rate.high = each / interval->low;
  }
  return rate;
}

// Parses a number that is stored as text. Returns 0 if it is missing.
double number_in(const nlohmann::json& context, const char* name) {
  const auto it = context.find(name);
  return it != context.end() && it->is_string() ? std::atof(it->get<std::string>().c_str()) : 0;
}

}  // namespace

double counter(const BenchRow& row, const char* name, double otherwise) {
  const auto it = row.counters.find(name);
  return it == row.counters.end() ? otherwise : it->second;
}

namespace {

// Returns the counter with the interval of its `_half_width`, limited to 0 to 1.
Metric with_half_width(const BenchRow& row, const char* name, const char* unit) {
  Metric metric{counter(row, name), unit, {}, {}, 1, "iterations"};
  const double half = counter(row, (std::string(name) + "_half_width").c_str(), NAN);
  if (!std::isfinite(half)) return metric;
  metric.low = std::max(0.0, metric.value - half);
  metric.high = std::min(1.0, metric.value + half);
  return metric;
}

// Returns the last line of that name, or nullptr. A row's name may continue after it: Google
// Benchmark appends suffixes, and paced runs do too.
const SampleLine* line_of(const std::vector<SampleLine>& samples, const std::string& name) {
  const SampleLine* found = nullptr;
  for (const SampleLine& line : samples)
    if (name.starts_with(line.name) && !line.seconds.empty() &&
        (found == nullptr || line.name.size() >= found->name.size()))
      found = &line;
  return found;
}

}  // namespace

Measurement measurement_of(const BenchRow& row, const std::vector<SampleLine>& samples) {
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
    if (!name.ends_with("_half_width") && name != metric::kSamples)
      m.metrics[name] = {value, loader_unit(name), {}, {}, 1, "runs"};
  const SampleLine* line = line_of(samples, row.name);
  const auto rate = row.counters.find(metric::kSamplesPerS);
  if (line != nullptr && rate != row.counters.end())
    m.metrics[metric::kSamplesPerS] = rate_of(line->seconds, rate->second * mean(line->seconds));
  if (row.counters.contains(metric::kStallFraction))
    m.metrics[metric::kStallFraction] = with_half_width(row, metric::kStallFraction, "ratio");
  return m;
}

void refuse_too_large(const std::vector<BenchRow>& rows) {
  for (const BenchRow& row : rows)
    if (row.error.find("out of memory") != std::string::npos)
      throw InputError(fmt::format("{}; lower --batch-per-device or --image-size", row.error));
}

void add_files(WorkersFacts& facts, const nlohmann::json& context) {
  facts.files = number_in(context, context::kLoaderFiles);
  facts.bad = number_in(context, context::kLoaderFilesBad);
  facts.looked_at = facts.bad + number_in(context, context::kLoaderFilesUsed);
  facts.first_bad = context.value(context::kLoaderFirstBad, "");
}

}  // namespace howmany::reports
