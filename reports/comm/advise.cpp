// SPDX-License-Identifier: Apache-2.0
#include "reports/comm/advise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/base/schema/marks.h"
#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/base/statistics.h"
#include "core/base/text/bytes.h"
#include "core/base/text/format.h"
#include "reports/comm/recommend.h"
#include "reports/results/cell.h"

namespace howmany::reports {
namespace {

constexpr double kSlow = 1.25;  // a slow rank, relative to the others: beyond the usual variation
constexpr double kNoFit = 1;    // fits with a larger residual error are not reported
constexpr double kOutOfCaches = 16 << 20, kStream = 1 << 20;  // bytes; sizes of the ceilings

bool is_of(const OperationResults& c, const Measurement& m) {
  return c.op == op_of(m) && c.dtype == parameter_of(m, parameter::kDtype) &&
         c.devices == count_of(m, parameter::kDevices);
}

OperationResults& operation_of(std::vector<OperationResults>& operations, const Measurement& m) {
  for (OperationResults& c : operations)
    if (is_of(c, m)) return c;
  operations.push_back({.op = op_of(m),
                        .dtype = parameter_of(m, parameter::kDtype),
                        .devices = count_of(m, parameter::kDevices)});
  return operations.back();
}

Curve& curve_of(std::vector<NamedCurve>& curves, const std::string& backend) {
  for (NamedCurve& named : curves)
    if (named.backend == backend) return named.curve;
  curves.push_back({backend, {}});
  return curves.back().curve;
}

void add_point(Curve& curve, const CurvePoint& point) {
  const auto place = std::ranges::lower_bound(curve, point.bytes, {}, &CurvePoint::bytes);
  if (place == curve.end() || place->bytes != point.bytes) curve.insert(place, point);
}

bool of_sweep(const Measurement& m) {
  return m.suite == "backend" && m.parameters.contains(parameter::kBytes) &&
         !m.parameters.contains(parameter::kModel);
}

void add_sweep(std::vector<OperationResults>& operations,
               const std::vector<Measurement>& measurements) {
  for (const Measurement& m : measurements) {
    const auto same = [&](const OperationResults& c) { return is_of(c, m); };
    const auto operation = std::ranges::find_if(operations, same);
    if (!of_sweep(m) || operation == operations.end()) continue;
    operation->tried.insert(backend_of(m));
    if (is_timed(m)) add_point(curve_of(operation->sweep, backend_of(m)), point_of(m));
  }
}

void add_fits(OperationResults& operation) {
  for (const NamedCurve& named : operation.curves) {
    const AlphaBeta fit = fit_alpha_beta(named.curve);
    if (fit.error && *fit.error < kNoFit) operation.fits[named.backend] = fit;
  }
}

std::vector<OperationResults> operations_of(const std::vector<Measurement>& measurements) {
  std::vector<OperationResults> operations;
  for (const Measurement& m : measurements)
    if (is_timed(m) && m.parameters.contains(parameter::kBytes))
      add_point(curve_of(operation_of(operations, m).curves, backend_of(m)), point_of(m));
  add_sweep(operations, measurements);
  for (OperationResults& operation : operations) {
    add_fits(operation);
    operation.crossing = crossing_of(operation.sweep);
  }
  return operations;
}

// Sums the times of all buckets. Intervals are added, because disturbances of consecutive buckets
// are correlated.
CurvePoint together(const std::vector<const Measurement*>& buckets) {
  CurvePoint sum{0, 0, Interval{}};
  for (const Measurement* m : buckets) {
    const CurvePoint point = point_of(*m);
    sum.bytes += point.bytes, sum.seconds += point.seconds;
    sum.one_round |= point.one_round;
    if (!point.interval) sum.interval.reset();
    if (sum.interval) sum.interval->low += point.interval->low;
    if (sum.interval) sum.interval->high += point.interval->high;
  }
  return sum;
}

using Buckets = std::map<std::string, std::vector<const Measurement*>>;  // by backend

void add_time(ModelTime& model, const std::string& backend,
              const std::vector<const Measurement*>& buckets) {
  std::vector<const Measurement*> timed;
  std::ranges::copy_if(buckets, std::back_inserter(timed), [](auto* m) { return is_timed(*m); });
  const auto missing = static_cast<int>(model.bytes.size() - timed.size());
  if (missing == 0) model.times[backend] = together(timed);
  if (missing > 0) model.missing[backend] = missing;
  if (std::ranges::any_of(buckets, [](auto* m) { return has_failed(*m); }))
    model.failed.insert(backend);
}

ModelTime model_time(const std::string& name, const Buckets& all) {
  const auto& most = std::ranges::max_element(all, {}, [](const auto& entry) {
                       return entry.second.size();
                     })->second;
  ModelTime model{.model = name, .dtype = parameter_of(*most[0], parameter::kDtype)};
  for (const Measurement* m : most) model.bytes.push_back(number_of(*m, parameter::kBytes));
  for (const auto& [backend, buckets] : all) add_time(model, backend, buckets);
  return model;
}

std::vector<ModelTime> models_of(const std::vector<Measurement>& measurements) {
  std::vector<std::string> names;  // in the order first seen
  std::map<std::string, Buckets> buckets;
  for (const Measurement& m : measurements) {
    const std::string name = parameter_of(m, parameter::kModel);
    if (m.suite != "backend" || name.empty()) continue;
    if (!buckets.contains(name)) names.push_back(name);
    buckets[name][backend_of(m)].push_back(&m);
  }
  std::vector<ModelTime> models;
  for (const std::string& name : names) models.push_back(model_time(name, buckets[name]));
  return models;
}

Ceilings ceilings_of(const std::vector<Measurement>& measurements) {
  Ceilings found{kNaN, kNaN, kNaN};
  double most = 0;
  for (const Measurement& m : measurements) {
    if (m.suite != "transfer" || has_failed(m)) continue;
    const double rate = value_of(m, metric::kBytesPerS), bytes = number_of(m, parameter::kBytes);
    if (m.name == "loopback_tcp" && bytes >= kStream) found.loopback_tcp = rate;
    if (m.name != "copy" || bytes < kOutOfCaches) continue;
    const double threads = number_of(m, parameter::kThreads);
    if (threads == 1) found.copy_one_thread = rate;
    if (threads >= most) found.copy_all_threads = rate, most = threads;
  }
  return found;
}

// Keeps only the largest number of ranks. Tables show the others.
std::vector<Measurement> of_most_ranks(std::vector<Measurement> all) {
  double most = 0;
  for (const Measurement& m : all)
    if (m.suite == "backend") most = std::max(most, number_of(m, parameter::kDevices));
  std::erase_if(all, [&](const Measurement& m) {
    return m.suite == "backend" && number_of(m, parameter::kDevices) < most;
  });
  return all;
}

// Returns a sentence on the slowest rank if every backend and round names the same one.
std::optional<std::string> slow_rank(const std::vector<Measurement>& measurements) {
  std::set<double> ranks;
  double of_others = std::numeric_limits<double>::infinity();
  for (const Measurement& m : measurements) {
    const auto slowest = m.metrics.find(metric::kSlowestRank);
    if (op_of(m) != "pace" || has_failed(m) || slowest == m.metrics.end()) continue;
    const Metric& rank = slowest->second;
    if (!std::isfinite(rank.value)) return {};
    ranks.insert({rank.value, rank.low.value_or(rank.value), rank.high.value_or(rank.value)});
    of_others = std::min(of_others, value_of(m, metric::kOfOthers));
  }
  if (ranks.size() != 1 || !(of_others > kSlow) || !std::isfinite(of_others)) return {};
  return fmt::format(
      "Rank {:.6g} is slow: the same work takes it {}x as long as the others, which wait for it in "
      "every collective.",
      *ranks.begin(), format_ratio(of_others));
}

void add_problems(const std::vector<Measurement>& measurements, std::vector<std::string>& notes) {
  std::set<std::string> seen;
  for (const Measurement& m : measurements)
    for (const std::string& flag : m.flags) {
      if (!seen.insert(flag).second) continue;
      if (flag.starts_with("failed: "))
        notes.push_back(fmt::format("Failed: {} of {}: {}.", m.name,
                                    format_bytes(number_of(m, parameter::kBytes)),
                                    without_full_stop(flag.substr(8))));
      if (flag == mark::kRehearsal)
        notes.push_back("Ranks shared a GPU: a rehearsal, which says nothing about several.");
      if (flag == mark::kOversubscribed)
        notes.push_back(
            "Ranks shared cores or a GPU (oversubscribed): with their own they would do better.");
      if (flag == mark::kShortOfCores)
        notes.push_back(
            "Fewer cores than GPUs fed them (short of cores): with one each they may do better.");
    }
}

}  // namespace

BackendAdvice advise_backend(const std::vector<Measurement>& measurements) {
  BackendAdvice advice;
  advice.operations = operations_of(measurements);
  const std::vector<Measurement> main = of_most_ranks(measurements);
  advice.models = models_of(main);
  advice.ceilings = ceilings_of(measurements);
  recommend_backend(advice);
  if (const auto slow = slow_rank(main)) advice.notes.push_back(*slow);
  add_problems(measurements, advice.notes);
  return advice;
}

}  // namespace howmany::reports
