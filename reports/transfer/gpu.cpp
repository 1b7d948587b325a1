// SPDX-License-Identifier: Apache-2.0
#include "reports/transfer/gpu.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/base/statistics.h"
#include "reports/results/cell.h"

namespace howmany::reports {
namespace {

constexpr std::array<const char*, 3> kKinds = {"host_to_device", "device_to_host",
                                               "device_to_device"};

Curve& curve_of(std::vector<CopyLine>& lines, const Measurement& m) {
  std::map<std::string, std::string> parameters = m.parameters;
  parameters.erase(parameter::kBytes);
  for (CopyLine& line : lines)
    if (line.kind == m.name && line.parameters == parameters) return line.curve;
  lines.push_back({m.name, parameters, {}});
  return lines.back().curve;
}

std::vector<CopyLine> lines_of(const std::vector<Measurement>& measurements) {
  std::vector<CopyLine> lines;
  for (const char* kind : kKinds)
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

void add_verdict(GpuCopies& copies, const std::string& gpu, int gpus, const std::string& op,
                 const std::string& from, const std::string& to, const Curve& curve) {
  if (curve.empty()) return;
  const CurvePoint& p = curve.back();
  if (const auto verdict = judge(gpu, gpus, op, p.bytes, p.bytes / p.seconds))
    copies.verdicts.push_back({op, from, to, p.bytes, p.bytes / p.seconds, *verdict});
}

void add_verdicts(GpuCopies& copies, const std::string& gpu) {
  constexpr const char* kPinned = "pinned memory";
  for (const std::string& device : copies.devices) {
    const std::map<std::string, std::string> pinned = {
        {"device", device}, {"memory", "pinned"}, {"how", "async"}};
    add_verdict(copies, gpu, 1, "host_to_device", kPinned, device,
                copies.curve("host_to_device", pinned));
    add_verdict(copies, gpu, 1, "device_to_host", device, kPinned,
                copies.curve("device_to_host", pinned));
  }
  for (const CopyLine& line : copies.lines)
    if (line.path() == "peer")
      add_verdict(copies, gpu, 2, line.kind, line.parameters.at(parameter::kFrom),
                  line.parameters.at(parameter::kTo), line.curve);
}

nlohmann::ordered_json direction_json(const GpuCopies& copies, const std::string& device,
                                      const std::string& kind) {
  using Having = std::map<std::string, std::string>;
  const auto find = [&](const char* memory, Having more) -> const Curve& {
    more.insert({{"device", device}, {"memory", memory}});
    return copies.curve(kind, more);
  };
  const auto rate = [](const Curve& c) {
    return finite_or_null(c.empty() ? kNaN : c.back().bytes / c.back().seconds);
  };
  const Curve& pinned = find("pinned", {{"how", "sync"}});
  const bool known = !pinned.empty();
  return {
      {"pageable_bytes_per_s", rate(find("pageable", {{"how", "sync"}}))},
      {"pinned_bytes_per_s", rate(pinned)},
      {"pinned_async_bytes_per_s", rate(find("pinned", {{"how", "async"}}))},
      {"registered_bytes_per_s", rate(find("registered", {{"how", "async"}}))},
      {"write_combined_bytes_per_s", rate(find("write_combined", {{"how", "async"}}))},
      {"both_ways_bytes_per_s", rate(find("pinned", {{"beside", "other_way"}}))},
      {"latency_s", finite_or_null(known ? fit_alpha_beta(pinned).latency : kNaN)},
      {"latency_below_bytes", finite_or_null(known ? latency_below(pinned).value_or(kNaN) : kNaN)}};
}

}  // namespace

std::string CopyLine::path() const {
  const auto found = parameters.find(parameter::kPath);
  const bool between = kind == "device_to_device" && found != parameters.end() &&
                       parameters.contains(parameter::kFrom) && parameters.contains(parameter::kTo);
  return between ? found->second : "";
}

const Curve& GpuCopies::curve(const std::string& kind,
                              const std::map<std::string, std::string>& having) const {
  static const Curve none;
  for (const CopyLine& line : lines) {
    const auto has = [&](const auto& wanted) {
      const auto found = line.parameters.find(wanted.first);
      return found != line.parameters.end() && found->second == wanted.second;
    };
    if (line.kind == kind &&
        line.parameters.contains(parameter::kBeside) == having.contains("beside") &&
        std::ranges::all_of(having, has))
      return line.curve;
  }
  return none;
}

GpuCopies gpu_copies_of(const std::vector<Measurement>& measurements, const std::string& gpu) {
  GpuCopies copies;
  copies.lines = lines_of(measurements);
  for (const CopyLine& line : copies.lines) {
    const auto device = line.parameters.find(parameter::kDevice);
    if (device != line.parameters.end() &&
        std::ranges::find(copies.devices, device->second) == copies.devices.end())
      copies.devices.push_back(device->second);
  }
  for (const Measurement& m : measurements)
    if (is_timed_transfer(m, "small_copies_to_device") && is_of_gpu(m)) copies.small.push_back(m);
  add_verdicts(copies, gpu);
  return copies;
}

bool is_of_gpu(const Measurement& m) {
  return std::ranges::any_of(std::array{"device", "from", "to"}, [&](const char* key) {
    return parameter_of(m, key).starts_with("cuda");
  });
}

bool can_compare(const CurvePoint& a, const CurvePoint& b) { return a.interval && b.interval; }

bool within_noise(const CurvePoint& a, const CurvePoint& b) {
  return !can_compare(a, b) ||
         (a.interval->low <= b.interval->high && b.interval->low <= a.interval->high);
}

std::optional<RateComparison> compare_rates(const Curve& curve, const Curve& than) {
  for (auto p = curve.rbegin(); p != curve.rend(); ++p)
    if (const CurvePoint* other = at_size(than, p->bytes); other && can_compare(*p, *other))
      return RateComparison{p->bytes, p->bytes / p->seconds, p->bytes / other->seconds,
                            within_noise(*p, *other)};
  return {};
}

nlohmann::ordered_json devices_json(const GpuCopies& copies) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const std::string& device : copies.devices)
    all.push_back({{"device", device},
                   {"to_device", direction_json(copies, device, "host_to_device")},
                   {"from_device", direction_json(copies, device, "device_to_host")}});
  return all;
}

nlohmann::ordered_json verdicts_json(const GpuCopies& copies) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const CopyVerdict& v : copies.verdicts) {
    const Reference& reference = *v.against.reference;
    all.push_back({{"op", v.op},
                   {"from", v.from},
                   {"to", v.to},
                   {"bytes", v.bytes},
                   {metric::kBytesPerS, v.bytes_per_s},
                   {"verdict", v.against.words},
                   {"ratio", v.against.ratio},
                   {"reference_bytes_per_s", reference.bytes_per_s},
                   {"system", reference.system},
                   {"source", reference.source},
                   {"read", reference.read}});
  }
  return all;
}

}  // namespace howmany::reports
