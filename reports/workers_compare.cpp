// How numbers of workers are compared.
#include <algorithm>
#include <cmath>

#include "reports/statistics.h"
#include "reports/workers_advise.h"

namespace howmany {
namespace {

constexpr double kUsualSlope = 5e-4;  // of what a sample takes of a core, by one worker more
constexpr double kAgree = 5;          // standard errors
constexpr double kNearBest = 0.9825;

bool has_cores(const WorkersFacts& facts, const WorkersPoint& p) {
  return facts.probes.waiting_s > 0 && p.error.empty() && !p.runs.empty() && !p.busy.empty();
}

// Seconds of a core that a sample takes, as a line over the number of workers.
class CostOfSample {
 public:
  explicit CostOfSample(const WorkersFacts& facts) {
    double runs = 0, sum = 0, workers = 0;
    for_each(facts, [&](double n, double w, double) { runs += n, workers += n * w; });
    middle_ = workers / runs;
    for_each(facts, [&](double n, double, double cost) { sum += n * cost; });
    level_ = sum / runs;
    double both = 0, squares = std::pow(facts.spread / kUsualSlope, 2);
    for_each(facts, [&](double n, double w, double cost) {
      both += n * (w - middle_) * (cost - level_);
      squares += n * std::pow(w - middle_, 2);
    });
    slope_ = both / squares;
  }
  double operator()(int workers) const { return std::exp(level_ + slope_ * (workers - middle_)); }

 private:
  // Calls with the number of runs, that of workers and the cost's logarithm.
  template <typename Body>
  static void for_each(const WorkersFacts& facts, const Body& body) {
    for (const WorkersPoint& p : facts.points)
      if (has_cores(facts, p))
        body(static_cast<double>(p.runs.size()), p.workers,
             std::log(median(p.busy) / p.rate.value));
  }

  double middle_ = 0, level_ = 0, slope_ = 0;
};

// What keeps cores busier need not be what makes more, as where workers get in each other's way.
bool agree(const WorkersFacts& facts, const WorkersPoint& p) {
  if (!p.by_cores) return true;
  const double luck = std::hypot(facts.spread / std::sqrt(static_cast<double>(p.runs.size())),
                                 WorkersFacts::kUsualSpread);
  return std::abs(std::log(*p.by_cores / p.rate.value)) < kAgree * luck;
}

}  // namespace

void compare_by_cores(WorkersFacts& facts) {
  const CostOfSample cost(facts);
  for (WorkersPoint& p : facts.points) {
    p.by_cores.reset();
    if (has_cores(facts, p)) p.by_cores = median(p.busy) / cost(p.workers);
  }
  if (!std::ranges::all_of(facts.points, [&](const auto& p) { return agree(facts, p); }))
    for (WorkersPoint& p : facts.points) p.by_cores.reset();
}

bool told_by_cores(const WorkersFacts& facts) {
  return std::ranges::any_of(facts.points, [](const auto& p) { return p.by_cores.has_value(); });
}

bool suffices_by_cores(const WorkersFacts& facts, const WorkersPoint& point, double best) {
  return compared_rate(facts, point).value >= kNearBest * best;
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

}  // namespace howmany
