// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/change_text.h"

#include <fmt/format.h>

#include <cmath>

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

}  // namespace howmany::reports
