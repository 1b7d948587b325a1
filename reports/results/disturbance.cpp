// SPDX-License-Identifier: Apache-2.0
#include "reports/results/disturbance.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace howmany::reports {
namespace {

constexpr double kMaxBusy = 0.1;  // of the cores
constexpr std::chrono::seconds kMinMetered(1);

double percent_of_cores(double busy_elsewhere) { return 100 * std::min(busy_elsewhere, 1.0); }

}  // namespace

double LoadMeter::busy_elsewhere() const {
  const bool is_long = std::chrono::steady_clock::now() - start_ >= kMinMetered;
  return is_long && before_.total_seconds > 0 ? reports::busy_elsewhere(before_, read_core_use())
                                              : std::numeric_limits<double>::quiet_NaN();
}

bool is_disturbed(double busy_elsewhere) { return busy_elsewhere > kMaxBusy; }

std::optional<int> RepeatedRounds::next(std::span<const double> busy_elsewhere) {
  std::optional<int> worst;
  for (int round = 0; round < static_cast<int>(busy_elsewhere.size()); ++round) {
    const double busy = busy_elsewhere[static_cast<size_t>(round)];
    if (!is_disturbed(busy) || repeated_.contains(round)) continue;
    if (!worst || busy > busy_elsewhere[static_cast<size_t>(*worst)]) worst = round;
  }
  if (worst) repeated_.insert(*worst);
  return worst;
}

std::string busy_note(double busy_elsewhere) {
  return fmt::format(
      "The machine was not idle: other programs used up to {:.0f} % of its cores. Measure again "
      "when it is idle.",
      percent_of_cores(busy_elsewhere));
}

std::string uncertain_because(double busy_elsewhere, const std::string& because) {
  return fmt::format("Uncertain: other programs used up to {:.0f} % of the cores. {}",
                     percent_of_cores(busy_elsewhere), because);
}

}  // namespace howmany::reports
