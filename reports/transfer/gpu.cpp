// SPDX-License-Identifier: Apache-2.0
#include "reports/transfer/gpu.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/schema/parameters.h"
#include "core/base/statistics.h"
#include "reports/results/cell.h"

namespace howmany::reports {
namespace {

using Having = std::map<std::string, std::string>;

Curve& curve_of(std::vector<CopyLine>& lines, const Measurement& m) {
  Having parameters = m.parameters;
  parameters.erase(parameter::kBytes);
  for (CopyLine& line : lines)
    if (line.kind == m.name && line.parameters == parameters) return line.curve;
  lines.push_back({m.name, parameters, {}});
  return lines.back().curve;
}

std::vector<CopyLine> lines_of(const std::vector<Measurement>& measurements) {
  std::vector<CopyLine> lines;
  for (const char* kind : {kToDevice, kFromDevice})
    for (const Measurement& m : measurements) {
      const double bytes = number_of(m, parameter::kBytes);
      if (!is_timed_transfer(m, kind) || !is_of_gpu(m)) continue;
      if (!std::isfinite(bytes) || bytes <= 0) continue;
      Curve& curve = curve_of(lines, m);
      if (at_size(curve, bytes) == nullptr) curve.push_back(point_of(m));
    }
  for (CopyLine& line : lines) std::ranges::sort(line.curve, {}, &CurvePoint::bytes);
  return lines;
}

}  // namespace

const Curve& GpuCopies::curve(const std::string& kind, const Having& having) const {
  static const Curve none;
  for (const CopyLine& line : lines) {
    const auto has = [&](const auto& wanted) {
      const auto found = line.parameters.find(wanted.first);
      return found != line.parameters.end() && found->second == wanted.second;
    };
    if (line.kind == kind &&
        line.parameters.contains(parameter::kBeside) == having.contains(parameter::kBeside) &&
        std::ranges::all_of(having, has))
      return line.curve;
  }
  return none;
}

GpuCopies gpu_copies_of(const std::vector<Measurement>& measurements) {
  GpuCopies copies;
  copies.lines = lines_of(measurements);
  for (const CopyLine& line : copies.lines) {
    const auto device = line.parameters.find(parameter::kDevice);
    if (device != line.parameters.end() &&
        std::ranges::find(copies.devices, device->second) == copies.devices.end())
      copies.devices.push_back(device->second);
  }
  return copies;
}

bool is_of_gpu(const Measurement& m) {
  return std::ranges::any_of(std::array{"device", "from", "to"}, [&](const char* key) {
    return parameter_of(m, key).starts_with("cuda");
  });
}

DirectionRates rates_of(const GpuCopies& copies, const std::string& device,
                        const std::string& kind) {
  const auto find = [&](const char* memory, const char* how, Having more = {}) -> const Curve& {
    more.insert({{"device", device}, {"memory", memory}, {"how", how}});
    return copies.curve(kind, more);
  };
  const auto rate = [](const Curve& c) {
    return c.empty() ? kNaN : c.back().bytes / c.back().seconds;
  };
  const Curve& pinned = find("pinned", "sync");
  return {.pageable = rate(find("pageable", "sync")),
          .pinned = rate(pinned),
          .pinned_async = rate(find("pinned", "async")),
          .registered = rate(find("registered", "async")),
          .write_combined = rate(find("write_combined", "async")),
          .both_ways = rate(find("pinned", "async", {{parameter::kBeside, "other_way"}})),
          .latency_s = pinned.empty() ? kNaN : fit_alpha_beta(pinned).latency,
          .latency_below = pinned.empty() ? kNaN : latency_below(pinned).value_or(kNaN)};
}

bool within_noise(const CurvePoint& a, const CurvePoint& b) {
  return !a.interval || !b.interval ||
         (a.interval->low <= b.interval->high && b.interval->low <= a.interval->high);
}

std::optional<RateComparison> compare_rates(const Curve& curve, const Curve& than) {
  for (auto p = curve.rbegin(); p != curve.rend(); ++p)
    if (const CurvePoint* other = at_size(than, p->bytes); other && p->interval && other->interval)
      return RateComparison{p->bytes, p->bytes / p->seconds, p->bytes / other->seconds,
                            within_noise(*p, *other)};
  return {};
}

}  // namespace howmany::reports
