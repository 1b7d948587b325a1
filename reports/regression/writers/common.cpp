// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/writers/common.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/text/format.h"
#include "core/base/text/table.h"

namespace howmany::reports {

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
