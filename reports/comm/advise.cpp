// SPDX-License-Identifier: Apache-2.0
#include "reports/comm/advise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/base/schema/context.h"
#include "core/base/schema/marks.h"
#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/base/statistics.h"
#include "core/base/text/bytes.h"
#include "core/base/text/format.h"
#include "reports/comm/choice.h"
#include "reports/comm/reference.h"
#include "reports/comm/torch.h"
#include "reports/results/cell.h"

namespace howmany::reports {
namespace {

constexpr double kSlow = 1.25;  // a slow rank, relative to the others: beyond the usual variation
constexpr double kAllHidden = 1.1;  // of the shorter: larger values are noise
constexpr double kNoFit = 1;        // fits with a larger residual error are not reported
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

// Compares an all_reduce concurrent with matrix products with running one after the other.
std::string both_at_once(const Measurement& m) {
  const double comm = value_of(m, metric::kCommAloneS), gemm = value_of(m, metric::kGemmAloneS);
  const double hidden = value_of(m, metric::kHiddenFraction);  // share of the shorter
  if (hidden > kAllHidden) return "times varied too much to judge the gain of running both at once";
  if (hidden >= 0)
    return fmt::format("running both at once hides {} of the shorter",
                       format_percent(std::min(1.0, hidden)));
  return fmt::format("both at once take {} longer than one after the other",
                     format_percent(-hidden * std::min(comm, gemm) / (comm + gemm)));
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

bool everywhere(const std::vector<NamedCurve>& curves, double bytes) {
  return std::ranges::all_of(
      curves, [&](const NamedCurve& named) { return at_size(named.curve, bytes) != nullptr; });
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

Reach reach_of(const OperationResults& operation, const std::vector<Measurement>& measurements) {
  Reach reach;
  double asked = 0;
  for (const Measurement& m : measurements) {
    if (!of_sweep(m) || !is_of(operation, m)) continue;
    const double bytes = number_of(m, parameter::kBytes);
    asked = std::max(asked, bytes);
    if (everywhere(operation.sweep, bytes))
      reach.to = std::max(reach.to, bytes);
    else
      reach.whole = false;
  }
  reach.beyond = asked > reach.to;
  return reach;
}

std::vector<OperationResults> operations_of(const std::vector<Measurement>& measurements) {
  std::vector<OperationResults> operations;
  for (const Measurement& m : measurements)
    if (is_timed(m) && m.parameters.contains(parameter::kBytes))
      add_point(curve_of(operation_of(operations, m).curves, backend_of(m)), point_of(m));
  add_sweep(operations, measurements);
  for (OperationResults& operation : operations) {
    add_fits(operation);
    operation.best = best_ranges(operation.sweep);
    operation.reach = reach_of(operation, measurements);
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

// Compares bus bandwidth with the ceiling. The links between GPUs, which nccl uses, have no
// measured ceiling.
std::vector<PathVerdict> verdicts_of(const std::vector<Measurement>& measurements,
                                     const Ceilings& ceilings) {
  std::map<std::string, PathVerdict> largest;
  for (const Measurement& m : measurements) {
    const double rate = value_of(m, metric::kBusbwBytesPerS);
    if (!is_timed(m) || op_of(m) != "all_reduce" || !std::isfinite(rate)) continue;
    if (backend_of(m).ends_with("nccl")) continue;
    const bool tcp = backend_of(m).ends_with("gloo");
    PathVerdict verdict{backend_of(m),
                        op_of(m),
                        tcp ? "loopback TCP" : "memory copy, all threads",
                        number_of(m, parameter::kBytes),
                        rate,
                        tcp ? ceilings.loopback_tcp : ceilings.copy_all_threads};
    if (verdict.bytes < (tcp ? kStream : kOutOfCaches)) continue;  // caches are faster
    if (std::isfinite(verdict.ceiling) && verdict.bytes > largest[verdict.backend].bytes)
      largest[verdict.backend] = verdict;
  }
  std::vector<PathVerdict> all;
  for (const auto& [backend, verdict] : largest)
    if (verdict.ceiling > 0) all.push_back(verdict);
  return all;
}

std::vector<ReferenceLine> references_of(const std::vector<Measurement>& measurements,
                                         const std::string& gpu) {
  std::vector<ReferenceLine> lines;
  for (const Measurement& m : measurements) {
    if (gpu.empty() || !is_timed(m) || backend_of(m) != "nccl") continue;
    const double bytes = number_of(m, parameter::kBytes),
                 rate = value_of(m, metric::kBusbwBytesPerS);
    const int gpus = count_of(m, parameter::kDevices);
    if (const auto verdict = judge(gpu, gpus, op_of(m), bytes, rate))
      lines.push_back({op_of(m), verdict->words, verdict->reference->system, verdict->source, bytes,
                       rate, verdict->bytes_per_s});
  }
  return lines;
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

class BackendWriter {
 public:
  explicit BackendWriter(BackendAdvice& advice) : advice_(advice) {}

  void write(const std::vector<Measurement>& measurements, const std::vector<Measurement>& main) {
    for (const TorchGap& gap : advice_.torch)
      if (differs(gap)) advice_.notes.push_back(words_of(gap));
    for (const PathVerdict& v : advice_.verdicts)
      advice_.notes.push_back(
          fmt::format("{} moves {} in an {} of {}: {} of this machine's {} ({}).", v.backend,
                      format_rate(v.bytes_per_s), v.op, format_bytes(v.bytes),
                      format_ratio(v.ratio()), v.path, format_rate(v.ceiling)));
    for (const ReferenceLine& r : advice_.references)
      advice_.notes.push_back(fmt::format("{} of {} over nccl: {} is {} for {} ({}; {}).", r.op,
                                          format_bytes(r.bytes), format_rate(r.bytes_per_s),
                                          r.verdict, r.system, format_rate(r.reference), r.source));
    add_slow_ranks(main);
    add_overlap(main);
    add_problems(measurements);
  }

 private:
  struct SlowRank {
    double rank, of_others;
  };
  // Returns the slowest rank if every measurement and round names the same one.
  static std::optional<SlowRank> slow_rank(const std::vector<const Measurement*>& paces) {
    std::set<double> ranks;
    double least = std::numeric_limits<double>::infinity();
    for (const Measurement* m : paces) {
      const auto slowest = m->metrics.find(metric::kSlowestRank);
      if (has_failed(*m) || slowest == m->metrics.end()) continue;
      const Metric& rank = slowest->second;
      if (!std::isfinite(rank.value)) return {};
      ranks.insert({rank.value, rank.low.value_or(rank.value), rank.high.value_or(rank.value)});
      least = std::min(least, value_of(*m, metric::kOfOthers));
    }
    if (ranks.size() != 1 || !(least > kSlow) || !std::isfinite(least)) return {};
    return SlowRank{*ranks.begin(), least};
  }

  void add_slow_ranks(const std::vector<Measurement>& measurements) {
    std::vector<const Measurement*> paces;
    std::map<std::string, std::vector<const Measurement*>> links;  // by backend
    for (const Measurement& m : measurements) {
      if (op_of(m) == "pace") paces.push_back(&m);
      if (op_of(m) == "links") links[backend_of(m)].push_back(&m);
    }
    if (const auto slow = slow_rank(paces))
      advice_.notes.push_back(
          fmt::format("Rank {:.6g} is slow: the same work takes it {}x as long as the others, "
                      "which wait for it in every collective.",
                      slow->rank, format_ratio(slow->of_others)));
    for (const auto& [backend, all] : links)
      if (const auto slow = slow_rank(all))
        advice_.notes.push_back(fmt::format(
            "Rank {:.6g} has slow links over {}: a message takes {}x as long to it as between the "
            "others, which wait for it in every collective.",
            slow->rank, backend, format_ratio(slow->of_others)));
  }

  void add_overlap(const std::vector<Measurement>& measurements) {
    for (const Measurement& m : measurements) {
      if (m.suite != "backend" || op_of(m) != "overlap" || has_failed(m)) continue;
      const double comm = value_of(m, metric::kCommBesideS) / value_of(m, metric::kCommAloneS);
      const double gemm = value_of(m, metric::kGemmBesideS) / value_of(m, metric::kGemmAloneS);
      if (!std::isfinite(comm) || !std::isfinite(gemm)) continue;
      advice_.notes.push_back(fmt::format(
          "{}: an all_reduce of {} during matrix products takes {}x as long as alone, and the "
          "products {}x; {}.",
          backend_of(m), format_bytes(number_of(m, parameter::kBytes)), format_ratio(comm),
          format_ratio(gemm), both_at_once(m)));
    }
  }

  void add_problems(const std::vector<Measurement>& measurements) {
    std::set<std::string> told;
    for (const Measurement& m : measurements)
      for (const std::string& flag : m.flags) {
        if (flag.starts_with("failed: ") && told.insert(flag).second)
          advice_.notes.push_back(fmt::format("Failed: {} of {}: {}.", m.name,
                                              format_bytes(number_of(m, parameter::kBytes)),
                                              without_full_stop(flag.substr(8))));
        if (flag == mark::kRehearsal && told.insert(flag).second)
          advice_.notes.push_back(
              "Ranks shared a GPU: a rehearsal, which says nothing about several.");
        if (flag == mark::kOversubscribed && told.insert(flag).second)
          advice_.notes.push_back(
              "Ranks shared cores or a GPU (oversubscribed): with their own they would do better.");
        if (flag == mark::kShortOfCores && told.insert(flag).second)
          advice_.notes.push_back(
              "Fewer cores than GPUs fed them (short of cores): with one each they may do better.");
      }
  }

  BackendAdvice& advice_;
};

}  // namespace

std::string gpu_of(const nlohmann::json& context) {
  if (context.contains("many_hosts")) return "";  // references are for one host
  const auto gpu = context.find(context::kGpu);
  return gpu != context.end() && gpu->is_string() ? gpu->get<std::string>() : "";
}

BackendAdvice advise_backend(const std::vector<Measurement>& measurements, const std::string& gpu) {
  BackendAdvice advice;
  advice.operations = operations_of(measurements);
  const std::vector<Measurement> main = of_most_ranks(measurements);
  advice.models = models_of(main);
  advice.ceilings = ceilings_of(measurements);
  advice.verdicts = verdicts_of(main, advice.ceilings);
  advice.references = references_of(main, gpu);
  advice.torch = torch_gaps(advice.operations);
  choose_backend(advice);
  BackendWriter(advice).write(measurements, main);
  return advice;
}

}  // namespace howmany::reports
