// SPDX-License-Identifier: Apache-2.0
// Comparison of numbers of workers.
#include "reports/workers/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/statistics.h"
#include "reports/workers/points.h"

namespace howmany::reports {
namespace {

constexpr double kLuckOfLoader = 0.045;  // relative; lasts for a loader's lifetime
constexpr double kUsuallyDearer = 1e-3;  // prior growth of a sample's cost per worker,
constexpr double kOftenDearer = 3e-3;    // and its standard deviation
constexpr double kAgree = 4;             // standard errors
constexpr double kNearBestWorth = 0.9875;
constexpr size_t kFewestOfCurve = 4;  // numbers of workers
constexpr double kSoftest = 0.01, kSharpest = 4, kFiner = 1.03;
constexpr double kMisfit = 5e-3;  // relative error of the curve besides noise

bool has_cores(const WorkersFacts& facts, const WorkersPoint& p) {
  return facts.probes.waiting_s > 0 && p.error.empty() && !p.runs.empty() && !p.busy.empty();
}

// The time slices of one number of workers, summarized.
struct Told {
  int workers;
  double busy, slices;
  double cost, runs;  // cost: core seconds per sample
};

std::vector<Told> told_of(const WorkersFacts& facts) {
  std::vector<Told> all;
  for (const WorkersPoint& p : facts.points) {
    if (!has_cores(facts, p)) continue;
    const double busy = median(p.busy);
    all.push_back({p.workers, busy, static_cast<double>(p.busy.size()), busy / p.rate.value,
                   static_cast<double>(p.runs.size())});
  }
  return all;
}

struct RateLine {
  double level = 0, slope = 0, misfit = 0;
};

class LineFit {
 public:
  void add(double weight, double x, double y) {
    n_ += weight, x_ += weight * x, y_ += weight * y;
    xx_ += weight * x * x, xy_ += weight * x * y, yy_ += weight * y * y;
  }
  // Fits a line with a prior for the slope, of weight `known`.
  RateLine line(double usual = 0, double known = 0) const {
    const double squares = xx_ - x_ * x_ / n_ + known;
    const double slope = squares > 0 ? (xy_ - x_ * y_ / n_ + known * usual) / squares : 0;
    return with(slope);
  }
  RateLine with(double slope) const {
    const double level = (y_ - slope * x_) / n_;
    return {level, slope, yy_ - level * y_ - slope * xy_};
  }

 private:
  double n_ = 0, x_ = 0, y_ = 0, xx_ = 0, xy_ = 0, yy_ = 0;
};

// Fits busy cores as a line over the idle term at this sharpness. Errors are relative.
RateLine line_at(const std::vector<Told>& told, double sharpness) {
  LineFit fit;
  for (const Told& t : told)
    fit.add(t.slices / (t.busy * t.busy), std::exp(-sharpness * t.workers), t.busy);
  return fit.line();
}

// Fits the logarithm of core seconds per sample over the number of workers. Workers may slow each
// other down, but not speed each other up, so the slope is at least 0.
RateLine cost_of_sample(const std::vector<Told>& told, double spread) {
  LineFit fit;
  for (const Told& t : told)
    fit.add(1 / (std::pow(kLuckOfLoader, 2) + std::pow(spread, 2) / t.runs), t.workers,
            std::log(t.cost));
  const RateLine line = fit.line(kUsuallyDearer, 1 / std::pow(kOftenDearer, 2));
  return line.slope > 0 ? line : fit.with(0);
}

bool fits(const std::vector<Told>& told, double spread, const WorkersCurve& curve) {
  return std::ranges::all_of(told, [&](const Told& t) {
    const double off = std::log(curve.busy(t.workers) / t.busy);
    return std::abs(off) < kAgree * spread / std::sqrt(t.slices) + kMisfit;
  });
}

// Returns nullopt with fewer than four numbers or if the curve does not fit.
std::optional<WorkersCurve> curve_of(const std::vector<Told>& told, double spread, double dearer) {
  if (told.size() < kFewestOfCurve) return {};
  WorkersCurve curve{.dearer = dearer};
  double least = std::numeric_limits<double>::infinity();
  for (double sharpness = kSoftest; sharpness < kSharpest; sharpness *= kFiner) {
    const RateLine line = line_at(told, sharpness);
    if (line.slope >= 0 || line.misfit >= least) continue;
    least = line.misfit;
    curve.most = line.level, curve.idle = -line.slope, curve.sharpness = sharpness;
  }
  if (!std::isfinite(least) || !fits(told, spread, curve)) return {};
  return curve;
}

// Checks that busy cores and rates agree. They may not, for example if workers slow each other
// down.
bool agree(const WorkersFacts& facts, const WorkersPoint& p) {
  if (!p.by_cores) return true;
  const double luck =
      std::hypot(facts.spread / std::sqrt(static_cast<double>(p.runs.size())), kLuckOfLoader);
  return std::abs(std::log(*p.by_cores / p.rate.value)) < kAgree * luck;
}

}  // namespace

void compare_by_cores(WorkersFacts& facts) {
  const std::vector<Told> told = told_of(facts);
  const RateLine cost = cost_of_sample(told, facts.spread);
  facts.curve = curve_of(told, facts.spread_of_busy, cost.slope);
  for (WorkersPoint& p : facts.points) {
    p.by_cores.reset();
    if (!has_cores(facts, p)) continue;
    const double busy = facts.curve ? facts.curve->busy(p.workers) : median(p.busy);
    p.by_cores = busy / std::exp(cost.level + cost.slope * p.workers);
  }
  if (std::ranges::all_of(facts.points, [&](const auto& p) { return agree(facts, p); })) return;
  facts.curve.reset();
  for (WorkersPoint& p : facts.points) p.by_cores.reset();
}

std::optional<int> fewest_by_curve(const WorkersFacts& facts, int limit) {
  if (!facts.curve) return {};
  double best = 0;
  for (int w = 1; w <= limit; ++w) best = std::max(best, facts.curve->worth(w));
  int fewest = 1;
  while (facts.curve->worth(fewest) < kNearBestWorth * best) ++fewest;
  return fewest;
}

bool told_by_cores(const WorkersFacts& facts) {
  return std::ranges::any_of(facts.points, [](const auto& p) { return p.by_cores.has_value(); });
}

bool suffices_by_cores(const WorkersFacts& facts, const WorkersPoint& point, double best) {
  return compared_rate(facts, point).value >= kNearBestWorth * best;
}

double ComparedRate::sure() const { return value * std::exp(-error); }

ComparedRate compared_rate(const WorkersFacts& facts, const WorkersPoint& point) {
  if (!point.error.empty() || !std::isfinite(point.rate.value)) return {};
  if (point.by_cores)
    return {*point.by_cores,
            facts.spread_of_busy / std::sqrt(static_cast<double>(point.busy.size()))};
  const auto runs = static_cast<double>(std::max<size_t>(1, point.runs.size()));
  return {point.rate.value, facts.spread / std::sqrt(runs)};
}

}  // namespace howmany::reports
