// SPDX-License-Identifier: Apache-2.0
// Estimates rates from rounds of interleaved time slices.
#include "reports/workers/points.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "core/base/statistics.h"
#include "reports/comm/rounds.h"
#include "reports/workers/compare.h"

namespace howmany::reports {
namespace {

constexpr int kPolishes = 20;
constexpr double kSmooth = 1e-6;

using Round = WorkersFacts::Round;

// Median polish: log(slice) = number + round + noise.
class Polish {
 public:
  explicit Polish(const std::vector<Round>& rounds) : rounds_(rounds) {
    for (const Round& round : rounds) begin(round);
    for (int i = 0; i < kPolishes && fit_numbers() > kSmooth; ++i)
      for (size_t r = 0; r < rounds.size(); ++r) of_round_[r] = speed_in(rounds[r]);
    if (!rounds.empty()) usual_ = median(of_round_);
  }

  // Returns samples/s of that number in each round, scaled to the median round.
  std::vector<double> runs(int workers) const {
    std::vector<double> all;
    for (size_t r = 0; r < rounds_.size(); ++r)
      if (const auto it = rounds_[r].find(workers); it != rounds_[r].end())
        all.push_back(it->second * std::exp(usual_ - of_round_[r]));
    return all;
  }

 private:
  // Estimates the round's speed from known numbers. New numbers start at the rate in this round.
  void begin(const Round& round) {
    of_round_.push_back(speed_in(round));
    for (const auto& [workers, rate] : round)
      of_number_.try_emplace(workers, std::log(rate) - of_round_.back());
  }

  double speed_in(const Round& round) const {
    std::vector<double> left;
    for (const auto& [workers, rate] : round)
      if (const auto number = of_number_.find(workers); number != of_number_.end())
        left.push_back(std::log(rate) - number->second);
    return left.empty() ? 0 : median(left);
  }

  // Returns the largest change of a number.
  double fit_numbers() {
    std::map<int, std::vector<double>> left;
    for (size_t r = 0; r < rounds_.size(); ++r)
      for (const auto& [workers, rate] : rounds_[r])
        left[workers].push_back(std::log(rate) - of_round_[r]);
    double most = 0;
    for (const auto& [workers, values] : left) {
      const double before = std::exchange(of_number_[workers], median(values));
      most = std::max(most, std::abs(of_number_[workers] - before));
    }
    return most;
  }

  const std::vector<Round>& rounds_;
  std::vector<double> of_round_;
  std::map<int, double> of_number_;
  double usual_ = 0;
};

void check(const WorkersFacts& facts, const Round& round) {
  if (round.empty()) throw std::invalid_argument("a round without time slices");
  for (const auto& [workers, rate] : round)
    if (!(rate > 0) || point_at(facts, workers) == nullptr)
      throw std::invalid_argument("a round of no known number of workers, or of no rate");
}

void scale(Metric& rate, double by) {
  rate.value *= by;
  if (rate.low) *rate.low *= by;
  if (rate.high) *rate.high *= by;
}

// Returns the standard deviation of a run's logarithm over all rounds. The prior counts as one
// sample. Fitted numbers and rounds reduce the degrees of freedom.
double spread_of(const WorkersFacts& facts, size_t rounds,
                 std::vector<double> WorkersPoint::*runs) {
  double squares = std::pow(WorkersFacts::kUsualSpread, 2),
         degrees = 2 - static_cast<double>(rounds);
  for (const WorkersPoint& p : facts.points) {
    if ((p.*runs).empty()) continue;
    const double middle = std::log(median(p.*runs));
    for (const double run : p.*runs) squares += std::pow(std::log(run) - middle, 2);
    degrees += static_cast<double>((p.*runs).size()) - 1;
  }
  return std::sqrt(squares / std::max(1.0, degrees));
}

}  // namespace

double WorkersCurve::busy(int workers) const {
  return most - idle * std::exp(-sharpness * workers);
}

double WorkersCurve::worth(int workers) const {
  return busy(workers) * std::exp(-dearer * workers);
}

const WorkersPoint* point_at(const WorkersFacts& facts, int workers) {
  const auto it = std::ranges::find(facts.points, workers, &WorkersPoint::workers);
  return it == facts.points.end() ? nullptr : &*it;
}

WorkersPoint* point_at(WorkersFacts& facts, int workers) {
  return const_cast<WorkersPoint*>(point_at(std::as_const(facts), workers));
}

void add_rounds(WorkersFacts& facts, const std::vector<Round>& rounds,
                const std::vector<Round>& busy) {
  for (const auto* all : {&rounds, &busy})
    for (const Round& round : *all) check(facts, round);
  facts.rounds.insert(facts.rounds.end(), rounds.begin(), rounds.end());
  facts.busy.insert(facts.busy.end(), busy.begin(), busy.end());
  if (facts.rounds.empty()) return;
  const Polish polish(facts.rounds), polish_busy(facts.busy);
  std::vector<double> faster;  // log ratio to the previous rate
  for (WorkersPoint& p : facts.points) {
    const double before = p.rate.value;
    p.runs = polish.runs(p.workers);
    p.busy = polish_busy.runs(p.workers);
    if (p.runs.empty()) continue;
    p.rate = metric_over_rounds(p.runs, "1/s");
    if (before > 0) faster.push_back(std::log(p.rate.value / before));
  }
  for (WorkersPoint& p : facts.points)
    if (p.runs.empty() && !faster.empty()) scale(p.rate, std::exp(mean(faster)));
  facts.spread = spread_of(facts, facts.rounds.size(), &WorkersPoint::runs);
  facts.spread_of_busy = spread_of(facts, facts.busy.size(), &WorkersPoint::busy);
  compare_by_cores(facts);
}

}  // namespace howmany::reports
