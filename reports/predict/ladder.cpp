// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.h"
#include "reports/predict/rungs.h"

namespace howmany::reports {
namespace {

constexpr double kFloor = 0.1;  // of the scale, per doubling, as in predict-check

const Rung& rung_named(std::string_view name) {
  return *std::ranges::find(kRungs, name, &Rung::name);
}

void check(const std::vector<RateAt>& measured, int devices) {
  if (measured.empty()) throw InputError("no measured rate to predict from");
  for (size_t i = 0; i < measured.size(); ++i) {
    const RateAt& one = measured[i];
    if (one.devices < 1 || !(one.per_s > 0) || !std::isfinite(one.per_s))
      throw InputError(
          fmt::format("the rate on {} devices, {}, is not above 0", one.devices, one.per_s));
    if (i > 0 && one.devices <= measured[i - 1].devices)
      throw InputError(fmt::format("two rates on {} devices", one.devices));
  }
  if (devices <= measured.back().devices)
    throw InputError(fmt::format("{} devices were measured, so {} need no prediction",
                                 measured.back().devices, devices));
}

const Rung& rung_of(const std::vector<RateAt>& measured, int devices, int devices_per_node) {
  const int most = measured.back().devices;
  if (devices <= devices_per_node) return rung_named(measured.size() == 1 ? "one" : "some");
  if (most < devices_per_node) return rung_named("across");
  if (measured.size() == 1) return rung_named("base");
  return rung_named(most == devices_per_node ? "node" : "nodes");
}

double loss_at(const std::vector<RateAt>& measured, const Rung& rung, double doublings) {
  const double before = -std::log(relative_efficiency(measured.front(), measured.back()));
  return std::max(before + (rung.a + rung.b * std::max(before, 0.0)) * doublings, 0.0);
}

// The interval around `loss`, for residuals from `low` to `high`.
Range efficiency_at(double loss, double scale, double low, double high) {
  return {std::exp(-loss), std::exp(-(loss + high * scale)), std::exp(-(loss + low * scale))};
}

// Seconds of a step over those in one node, on a slow network.
double slow_step(double nodes) {
  return 1 + kSlowNetwork * 2 * (std::max(nodes, 1.0) - 1) / std::max(nodes, 1.0);
}

double width(const Range& range) { return std::log(range.high / range.low); }

}  // namespace

double relative_efficiency(const RateAt& first, const RateAt& one) {
  return one.per_s / one.devices / (first.per_s / first.devices);
}

Predicted predict(const std::vector<RateAt>& measured, int devices, int devices_per_node,
                  std::optional<double> loss) {
  check(measured, devices);
  const Rung& rung = rung_of(measured, devices, devices_per_node);
  const RateAt &first = measured.front(), &last = measured.back();
  const double doublings = std::log2(static_cast<double>(devices) / last.devices);
  Predicted result;
  result.devices = devices;
  if (doublings > rung.max_doublings) {
    result.refused = fmt::format("more than {:.0f} times the {} measured devices: never compared",
                                 std::exp2(rung.max_doublings), last.devices);
    return result;
  }
  const double by_model = loss_at(measured, rung, doublings);
  const double scale = kFloor * doublings + std::max(loss.value_or(0), by_model);
  result.efficiency = loss ? efficiency_at(*loss, scale, rung.known_low, rung.known_high)
                           : efficiency_at(by_model, scale, rung.low, rung.high);
  Range& of_first = result.efficiency;
  const double before = relative_efficiency(first, last), node = devices_per_node;
  of_first.high = std::max(of_first.value, std::min(of_first.high, std::max(before, 1.0)));
  if (!loss && holds_slow_networks(measured, devices, devices_per_node))
    of_first.low = std::min(of_first.low, std::min(before, 1.0) * slow_step(last.devices / node) /
                                              slow_step(devices / node));
  const double linear = first.per_s / first.devices * devices;
  const Range& e = result.efficiency;
  result.per_s = {linear * e.value, linear * e.low, linear * e.high};
  return result;
}

Predicted predict_computed(double per_s, int devices, int devices_per_node, double computed_loss,
                           double exchanges) {
  const std::vector<RateAt> one = {{1, per_s}};
  const Predicted by_model = predict(one, devices, devices_per_node);
  if (!by_model.refused.empty()) return by_model;
  const bool in_node = devices <= devices_per_node;
  const double doublings = std::log2(static_cast<double>(devices));
  const double unexplained = (in_node ? kRestInNode : kRestAcross) * doublings / exchanges;
  const double loss = computed_loss + unexplained;
  Predicted result = predict(one, devices, devices_per_node, loss);
  if (!in_node) return result;
  const double scale = kFloor * doublings + std::max(loss, 0.0);
  Range& e = result.efficiency;
  e = efficiency_at(loss, scale, kComputedLow, kComputedHigh);
  e.high = std::max(e.value, std::min(e.high, 1.0));
  result.per_s = {per_s * devices * e.value, per_s * devices * e.low, per_s * devices * e.high};
  return result;
}

bool holds_slow_networks(const std::vector<RateAt>& measured, int devices, int devices_per_node) {
  const std::string_view rung = rung_of(measured, devices, devices_per_node).name;
  return rung == "across" || rung == "base";
}

RungUsed rung_used(const std::vector<RateAt>& measured, int devices, int devices_per_node) {
  const Rung& rung = rung_of(measured, devices, devices_per_node);
  return {std::string(rung.name), rung.curves, rung.sources};
}

std::optional<NextRun> next_run(const std::vector<RateAt>& measured, int devices,
                                int devices_per_node) {
  const Predicted now = predict(measured, devices, devices_per_node);
  std::optional<NextRun> best;
  for (const int more : std::array{2, devices_per_node, 2 * devices_per_node}) {
    if (more <= measured.back().devices || more >= devices) continue;
    const Predicted between = predict(measured, more, devices_per_node);
    if (!between.refused.empty()) continue;
    std::vector<RateAt> then = measured;
    then.push_back({more, between.per_s.value});
    const Predicted narrower = predict(then, devices, devices_per_node);
    if (!narrower.refused.empty()) continue;
    const double before = best                  ? width(best->efficiency)
                          : now.refused.empty() ? width(now.efficiency)
                                                : INFINITY;
    if (width(narrower.efficiency) < before) best = NextRun{more, narrower.efficiency};
  }
  return best;
}

}  // namespace howmany::reports
