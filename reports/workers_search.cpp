// Which number of workers to measure next.
#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "reports/backend_rounds.h"
#include "reports/statistics.h"
#include "reports/workers_advise.h"

namespace howmany {
namespace {

constexpr size_t kMostPoints = 8, kRuns = 5;
constexpr size_t kFewRuns = 3;          // tell whether the largest number gains
constexpr double kNoGain = 0.03;        // of the rate, from more workers
constexpr double kNearBest = 0.98;      // of the best rate
constexpr double kUsualSpread = 0.03;   // of runs of one number
constexpr double kContends = 0.94;      // of the best rate: another run may tell otherwise
constexpr double kContendsOnce = 0.85;  // the same of a number that ran only once
// Of the best predicted rate. The model rounds its corners: as many workers as cores make 0.87.
constexpr double kPredictedKnee = 0.85, kPredictedNear = 0.95;

const WorkersPoint* point_at(const WorkersFacts& facts, int workers) {
  const auto it = std::find_if(facts.points.begin(), facts.points.end(),
                               [&](const WorkersPoint& p) { return p.workers == workers; });
  return it == facts.points.end() ? nullptr : &*it;
}

bool measured(const WorkersFacts& facts, int workers) {
  return point_at(facts, workers) != nullptr;
}

bool feeds(const WorkersFacts& facts, const WorkersPoint& p) {
  return p.error.empty() && p.stall && p.stall->value <= facts.most_stall;
}

double rate_of(const WorkersPoint& p) {
  return p.error.empty() && std::isfinite(p.rate.value) ? p.rate.value : 0;
}

double best_rate(const WorkersFacts& facts) {
  double best = 0;
  for (const WorkersPoint& p : facts.points) best = std::max(best, rate_of(p));
  return best;
}

double sure_rate(const WorkersFacts& facts, const WorkersPoint& p) {
  return p.error.empty() ? howmany::sure_rate(p, facts.points) : 0;
}

double best_sure_rate(const WorkersFacts& facts) {
  double best = 0;
  for (const WorkersPoint& p : facts.points) best = std::max(best, sure_rate(facts, p));
  return best;
}

// Of the logarithm of a run, over all points that ran more than once; what is usual counts as one
// more run.
double spread_of_runs(const std::vector<WorkersPoint>& points) {
  double squares = kUsualSpread * kUsualSpread;
  size_t degrees = 1;
  for (const WorkersPoint& p : points) {
    std::vector<double> logs;
    for (const double run : p.runs) logs.push_back(std::log(run));
    if (logs.size() < 2) continue;
    const double middle = mean(logs);
    for (const double value : logs) squares += std::pow(value - middle, 2);
    degrees += logs.size() - 1;
  }
  return std::sqrt(squares / static_cast<double>(degrees));
}

// The fewest that the model takes for enough (none, where a sample costs less than handing it
// over); where no number is, as without a demand, the first near the best.
int predicted_choice(const WorkersFacts& facts, int most) {
  const bool demanded = facts.asked.demand > 0;
  for (int w = 0; demanded && w <= most; ++w)
    if (predicted_stall(facts.probes, facts.asked, w) <= facts.most_stall) return w;
  double best = 0;
  for (int w = 0; w <= most; ++w)
    best = std::max(best, predicted_rate(facts.probes, facts.asked, w));
  const double near = (demanded ? kPredictedNear : kPredictedKnee) * best;
  for (int w = 0; w <= most; ++w)
    if (predicted_rate(facts.probes, facts.asked, w) >= near) return w;
  return most;
}

// Beyond this many nothing more is to be had by the model, with room for its error.
int search_limit(const WorkersFacts& facts) {
  const int most = most_workers(facts.bounds);
  // Storage that answers slowly wants more workers than cores.
  const double each = std::max(1.0, facts.probes.sample_s / core_s(facts.probes));
  const double useful = std::ceil(2 * facts.probes.cores * each / facts.asked.devices) + 4;
  return static_cast<int>(std::min<double>(most, useful));
}

using Points = std::vector<const WorkersPoint*>;

Points points_that(const WorkersFacts& facts, const std::function<bool(const WorkersPoint&)>& are) {
  Points points;
  for (const WorkersPoint& p : facts.points)
    if (rate_of(p) > 0 && are(p)) points.push_back(&p);
  return points;
}

// The one with the fewest runs; nothing when each has enough.
std::optional<int> by_turns(const Points& points, size_t enough = kRuns) {
  const auto next = std::ranges::min_element(
      points, {}, [](const WorkersPoint* p) { return std::pair(p->runs.size(), p->workers); });
  if (next == points.end() || (*next)->runs.size() >= enough) return {};
  return (*next)->workers;
}

std::optional<int> next_wanted(const WorkersFacts& facts) {
  for (const int w : facts.wanted)
    if (!measured(facts, w)) return w;
  if (facts.asked.demand > 0) return {};
  return by_turns(points_that(facts, [](const auto&) { return true; }));
}

// A number that nothing contends with needs no other run.
std::optional<int> next_contender(const WorkersFacts& facts, size_t enough = kRuns) {
  const double best = best_rate(facts);
  const Points contenders = points_that(facts, [&](const WorkersPoint& p) {
    return rate_of(p) >= (p.runs.size() > 1 ? kContends : kContendsOnce) * best;
  });
  return contenders.size() > 1 ? by_turns(contenders, enough) : std::nullopt;
}

int half_more(int workers) { return workers + std::max(1, workers / 2); }

// A device's own, at least the two that can tell whether more than one worker pays.
int cores_of_each(const WorkersFacts& facts) {
  return static_cast<int>(std::max(2.0, std::round(facts.probes.cores / facts.asked.devices)));
}

// Between a number that is too small and one that suffices: first where the rate of one worker
// points to, then the neighbour, then the middle.
int between(int too_small, int suffices, double pointed_to) {
  const int there = static_cast<int>(std::ceil(std::min(pointed_to, 1e6)));
  if (there <= too_small) return (too_small + suffices) / 2;
  return std::min(there, suffices - 1);
}

std::optional<int> next_for_demand(const WorkersFacts& facts, int limit) {
  const double wanted = facts.asked.demand * facts.asked.devices;
  int fewest = limit + 1, too_small = -1;
  for (const WorkersPoint& p : facts.points)
    if (feeds(facts, p)) fewest = std::min(fewest, p.workers);
  for (const WorkersPoint& p : facts.points)
    if (!feeds(facts, p) && p.workers < fewest) too_small = std::max(too_small, p.workers);
  const WorkersPoint* last = point_at(facts, fewest <= limit ? fewest : too_small);
  const double pointed_to = wanted * std::max(1, last->workers) / std::max(rate_of(*last), 1e-9);
  if (fewest <= limit) {
    if (fewest - too_small <= 1) return {};
    return between(too_small, fewest, pointed_to);
  }
  if (too_small >= limit) return {};
  for (const WorkersPoint& p : facts.points) {
    const bool fewer = p.workers < too_small && p.workers > 0;
    if (fewer && rate_of(*last) < (1 + kNoGain) * rate_of(p)) return {};  // it gains no more
  }
  const int farthest = std::min(limit, std::max(half_more(too_small), cores_of_each(facts)));
  return std::clamp(static_cast<int>(std::ceil(std::min(pointed_to, 1e6))), too_small + 1,
                    farthest);
}

// More while the largest number gains: one worker makes no more than the caller does.
std::optional<int> more_for_rate(const WorkersFacts& facts, int limit) {
  const WorkersPoint& largest = *std::ranges::max_element(facts.points, {}, &WorkersPoint::workers);
  double fewer = 0;
  for (const WorkersPoint& p : facts.points)
    if (p.workers < largest.workers) fewer = std::max(fewer, rate_of(p));
  const int most = largest.workers;
  const bool first = facts.points.size() == 1 || most == 1;
  if (most >= limit || !(first || rate_of(largest) >= (1 + kNoGain) * fewer)) return {};
  return std::min(limit, most > 0 ? half_more(most) : cores_of_each(facts));
}

// Beyond the first number near the best: one more that does not gain, one fewer that loses.
std::optional<int> next_for_rate(const WorkersFacts& facts, int limit) {
  const double best = best_sure_rate(facts);
  if (best <= 0) return {};
  if (const auto more = more_for_rate(facts, limit)) return more;
  if (next_contender(facts, kFewRuns)) return {};
  int chosen = limit, too_small = -1;
  for (const WorkersPoint& p : facts.points)
    if (sure_rate(facts, p) >= kNearBest * best) chosen = std::min(chosen, p.workers);
  for (const WorkersPoint& p : facts.points)
    if (p.workers < chosen) too_small = std::max(too_small, p.workers);
  if (chosen - too_small <= 1) return {};
  return between(too_small, chosen, kNearBest * best / facts.asked.devices * facts.probes.sample_s);
}

bool fed(const WorkersFacts& facts) {
  return std::ranges::any_of(facts.points, [&](const auto& p) { return feeds(facts, p); });
}

// One not measured yet; a demand that no number meets leaves the question for the best rate.
std::optional<int> next_new(const WorkersFacts& facts) {
  const int limit = search_limit(facts);
  if (facts.points.size() >= kMostPoints) return {};
  if (facts.points.empty()) return predicted_choice(facts, limit);
  std::optional<int> next;
  const auto is_new = [&] { return next && !measured(facts, *next); };
  if (facts.asked.demand > 0) next = next_for_demand(facts, limit);
  if (!is_new() && !fed(facts)) next = next_for_rate(facts, limit);
  return is_new() ? next : std::nullopt;
}

}  // namespace

void add_run(std::vector<WorkersPoint>& points, WorkersPoint run) {
  if (run.error.empty() && std::isfinite(run.rate.value)) run.runs = {run.rate.value};
  const auto point = std::ranges::find(points, run.workers, &WorkersPoint::workers);
  if (point == points.end()) return points.push_back(std::move(run));
  if (point->error.empty()) point->error = run.error;
  if (run.runs.empty()) return;
  point->runs.push_back(run.rate.value);
  point->rate = metric_over_rounds(point->runs, run.rate.unit);
}

double sure_rate(const WorkersPoint& point, const std::vector<WorkersPoint>& points) {
  if (!std::isfinite(point.rate.value)) return 0;
  const auto runs = static_cast<double>(std::max<size_t>(1, point.runs.size()));
  return point.rate.value * std::exp(-spread_of_runs(points) / std::sqrt(runs));
}

std::optional<int> next_trial(const WorkersFacts& facts) {
  if (!facts.wanted.empty()) return next_wanted(facts);
  if (const auto next = next_new(facts)) return next;
  return fed(facts) ? std::nullopt : next_contender(facts);
}

}  // namespace howmany
