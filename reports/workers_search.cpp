// Which number of workers to measure next.
#include <algorithm>
#include <cmath>

#include "reports/workers_advise.h"

namespace howmany {
namespace {

constexpr int kMostTrials = 8;
constexpr double kNoGain = 0.03;    // of the rate, from one more worker
constexpr double kNearBest = 0.98;  // of the best rate
constexpr double kPredictedNear = 0.95;

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

// The fewest that the model takes for enough (none, where a sample costs less than handing it
// over); without a demand, the first near the best.
int predicted_choice(const WorkersFacts& facts, int most) {
  double best = 0;
  for (int w = 0; w <= most; ++w)
    best = std::max(best, predicted_rate(facts.probes, facts.asked, w));
  for (int w = 0; w <= most; ++w) {
    const bool enough = facts.asked.demand > 0
                            ? predicted_stall(facts.probes, facts.asked, w) <= facts.most_stall
                            : predicted_rate(facts.probes, facts.asked, w) >= kPredictedNear * best;
    if (enough) return w;
  }
  for (int w = 0; w <= most; ++w)  // no number is enough: what gets nearest
    if (predicted_rate(facts.probes, facts.asked, w) >= kPredictedNear * best) return w;
  return most;
}

// Beyond this many nothing more is to be had by the model, with room for its error.
int search_limit(const WorkersFacts& facts) {
  const int most = most_workers(facts.bounds);
  const int useful = static_cast<int>(std::ceil(2 * facts.probes.cores / facts.asked.devices)) + 4;
  // Storage that answers slowly wants more workers than cores.
  const int waiting = facts.probes.sample_s > 0 && facts.probes.read_s > facts.probes.sample_s / 2
                          ? 4 * useful
                          : useful;
  return std::min(most, waiting);
}

std::optional<int> next_wanted(const WorkersFacts& facts) {
  for (const int w : facts.wanted)
    if (!measured(facts, w)) return w;
  return {};
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
  return std::clamp(static_cast<int>(std::ceil(std::min(pointed_to, 1e6))), too_small + 1, limit);
}

// Around the first number near the best: one more that does not gain, one fewer that loses.
std::optional<int> next_for_rate(const WorkersFacts& facts, int limit) {
  double best = 0;
  for (const WorkersPoint& p : facts.points) best = std::max(best, rate_of(p));
  if (best <= 0) return {};
  int chosen = limit, most = 0, too_small = -1;
  for (const WorkersPoint& p : facts.points) {
    if (rate_of(p) >= kNearBest * best) chosen = std::min(chosen, p.workers);
    most = std::max(most, p.workers);
  }
  // One worker makes no more than the caller does: only two can tell that more do not pay.
  if ((chosen == most || most == 1) && most < limit)
    return std::min(limit, most + std::max(1, most / 2));
  for (const WorkersPoint& p : facts.points)
    if (p.workers < chosen) too_small = std::max(too_small, p.workers);
  if (chosen - too_small <= 1) return {};
  return between(too_small, chosen, kNearBest * best / facts.asked.devices * facts.probes.sample_s);
}

}  // namespace

std::optional<int> next_trial(const WorkersFacts& facts) {
  if (!facts.wanted.empty()) return next_wanted(facts);
  if (facts.points.size() >= kMostTrials) return {};
  const int limit = search_limit(facts);
  if (limit < 1) return measured(facts, 0) ? std::nullopt : std::optional<int>(0);
  if (facts.points.empty()) return predicted_choice(facts, limit);
  const auto next =
      facts.asked.demand > 0 ? next_for_demand(facts, limit) : next_for_rate(facts, limit);
  if (!next || measured(facts, *next)) return {};
  return next;
}

}  // namespace howmany
