// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/text/format.h"
#include "core/base/text/table.h"

namespace howmany::reports {
namespace {

constexpr double kMaxRatio = 1000;
constexpr const char* kLarger = "> 1000x";

// Returns the number of a share in percent, without the unit.
std::string percent(double share, int decimals = 2) {
  return fmt::format("{:+.{}f}", 100 * share, std::abs(share) < 10 ? decimals : 0);
}

bool is_small(double share) { return std::isfinite(share) && share < kMaxRatio; }

}  // namespace

std::string change_text(double share, int decimals) {
  if (std::isnan(share) || share < -1) return "-";
  return is_small(share) ? percent(share, decimals) + " %" : kLarger;
}

std::string ratio_text(double ratio) {
  if (std::isnan(ratio) || ratio < 0) return "-";
  if (ratio > kMaxRatio) return kLarger;
  return fmt::format("{:.{}f}", ratio, ratio < 100 ? 3 : 0);
}

std::string interval_text(const std::optional<Interval>& interval) {
  if (!interval) return "";
  if (is_small(interval->low) && is_small(interval->high)) {
    return fmt::format("[{}, {}] %", percent(interval->low), percent(interval->high));
  }
  return fmt::format("[{}, {}]", change_text(interval->low), change_text(interval->high));
}

std::string change_text(const Row& row) { return row.change ? change_text(*row.change) : "-"; }

std::string value_text(const Row& row, std::optional<double> value) {
  if (!value || !std::isfinite(*value)) return "-";
  if (row.kind.unit == "s") {
    return *value < 1e-6 ? fmt::format("{:.3g} ns", *value * 1e9) : format_seconds(*value);
  }
  const bool whole = *value == std::floor(*value) && std::abs(*value) < 1e15;
  const std::string number = row.kind.exact && whole ? fmt::format("{:.0f}", *value)
                             : *value >= 1           ? format_count(*value)
                                                     : fmt::format("{:.3g}", *value);
  return row.kind.unit.empty() ? number : number + " " + row.kind.unit;
}

std::string p_text(const Row& row) {
  if (!row.p_slower || !row.p_faster) return "";
  const double p = std::min(*row.p_slower, *row.p_faster);
  return p < 0.0001 ? "<0.0001" : fmt::format("{:.4f}", p);
}

std::string title(const Row& row) {
  return row.metric == "real_time" ? row.benchmark : row.benchmark + " " + row.metric;
}

std::string short_title(const Row& row) { return shortened(title(row), kNameWidth); }

std::string samples_text(const Row& row) {
  if (row.base_samples == row.candidate_samples) return fmt::format("{}", row.base_samples);
  return fmt::format("{}/{}", row.base_samples, row.candidate_samples);
}

std::string sentence(const Row& row) {
  std::string text = title(row);
  if (row.change && row.base) {
    text += fmt::format(": {} to {}, {}", value_text(row, row.base), value_text(row, row.candidate),
                        change_text(row));
    if (row.interval) text += " " + interval_text(row.interval);
  }
  return row.why.empty() ? text : text + ": " + row.why;
}

std::string method(const Comparison& c) {
  const std::optional<double>& effect = c.options.min_effect;
  return fmt::format(
      "{}; Hodges-Lehmann shift of log ratios with 95 % interval; Holm's correction over the "
      "suite, "
      "alpha {}; floor {:.3g} %; same within {:.3g} %",
      c.paired ? "signed rank of pairs" : "rank sum of unpaired samples", c.options.alpha,
      100 * effect.value_or(c.paired ? kPairedEffect : kUnpairedEffect),
      100 * c.options.same_within);
}

}  // namespace howmany::reports
