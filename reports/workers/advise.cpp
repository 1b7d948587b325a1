// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/advise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/schema/reasons.h"
#include "core/base/text/format.h"
#include "reports/results/disturbance.h"
#include "reports/workers/compare.h"
#include "reports/workers/levers.h"
#include "reports/workers/limit.h"
#include "reports/workers/notes.h"

namespace howmany::reports {
namespace {

constexpr double kClearlySlower = 0.8;  // without an interval

double low_of(const Metric& m) { return m.low.value_or(m.value); }
double high_of(const Metric& m) { return m.high.value_or(m.value); }

class Advisor {
 public:
  explicit Advisor(const WorkersFacts& facts) : facts_(facts), best_(best_of(facts.points)) {
    for (const WorkersPoint& p : facts.points)
      if (p.error.empty() && !p.rates.empty()) points_.push_back(&p);
  }

  WorkersAdvice advise() {
    add_failures();
    if (best_ == nullptr) {
      advice_.certain = false;
      advice_.reason = reason::kNothingMeasured;
      advice_.because = fmt::format("No answer: {}.", facts_.why_none.empty()
                                                          ? "no number of workers could be measured"
                                                          : facts_.why_none);
      return advice_;
    }
    advice_.limit = RateLimit(facts_, *best_).name();
    if (facts_.undecided) add_undecided();
    demanded() ? for_demand() : for_rate();
    if (!advice_.feeds) advice_.levers = levers_of(facts_, *best_, *advice_.recommended);
    add_notes();
    add(bound_notes(facts_.bounds));
    add_lines();
    mark_disturbed(facts_.busy_elsewhere, advice_);
    return std::move(advice_);
  }

 private:
  bool demanded() const { return facts_.asked.demand > 0; }
  double all() const { return facts_.asked.demand * facts_.asked.devices; }
  std::string devices() const { return number(facts_.asked.devices, "device"); }
  std::string workers(int n) const {
    return facts_.asked.devices > 1 ? number(n, "worker") + " a device" : number(n, "worker");
  }

  void for_demand() {
    const WorkersPoint* chosen = fewest_that_feed(facts_.points, facts_.most_stall);
    if (chosen == nullptr) return cannot_feed();
    const Metric stall = stall_of(*chosen);
    advice_.recommended = chosen->workers;
    advice_.feeds = true;
    advice_.limit = "training itself";
    advice_.reason = reason::kFeedsDemand;
    const bool sure = high_of(stall) <= facts_.most_stall;
    advice_.certain = advice_.certain && sure;
    advice_.because = fmt::format(
        "Use {}: {} {} at {} samples/s ({}). Training waits {} of the time; {} is allowed.",
        workers(chosen->workers), chosen->workers == 1 ? "it feeds" : "they feed", devices(),
        format_count(all()), facts_.demand_from, percent(stall.value), percent(facts_.most_stall));
    if (!sure)
      advice_.notes.push_back(
          fmt::format("Uncertain: the 95 % interval of the stall reaches {}; measure longer with "
                      "--time-budget, or take one worker more.",
                      percent(high_of(stall))));
    add_fewer(*chosen);
  }

  void add_fewer(const WorkersPoint& chosen) {
    const WorkersPoint* fewer = nullptr;
    for (const WorkersPoint* p : points_)
      if (p->workers < chosen.workers) fewer = p;
    if (fewer == nullptr) return;
    advice_.notes.push_back(fmt::format("With {} training waits {} of the time.",
                                        workers(fewer->workers), percent(stall_of(*fewer).value)));
  }

  void cannot_feed() {
    const WorkersPoint& near = fewest_near(facts_.points, *best_);
    const double rate = rate_of(near).value;
    advice_.recommended = near.workers;
    advice_.limit = limit_of_demand();
    advice_.reason = reason::kDemandNotMet;
    advice_.because = fmt::format(
        "{} {} at {} samples/s ({}). The limit is {}. {} {} nearest with {} samples/s and {} "
        "stall.",
        facts_.undecided ? "No measured number of workers feeds" : "No number of workers feeds",
        devices(), format_count(all()), facts_.demand_from, advice_.limit, workers(near.workers),
        near.workers == 1 ? "comes" : "come", format_count(rate), percent(stall_of(near).value));
    advice_.notes.push_back(fmt::format("This rate is enough for {:.2g} of {} such {}.",
                                        rate / facts_.asked.demand, facts_.asked.devices,
                                        facts_.asked.devices == 1 ? "device" : "devices"));
  }

  // Idle cores do not limit the demand.
  std::string limit_of_demand() const {
    const bool idle = all() * core_s(facts_.probes) < facts_.probes.cores;
    if (!idle || advice_.limit != RateLimit(facts_, *best_).name_of_cores()) return advice_.limit;
    return facts_.undecided || !facts_.wanted.empty() ? "the numbers of workers that were measured"
                                                      : "the loader, not " + advice_.limit;
  }

  void add_undecided() {
    advice_.certain = false;
    advice_.notes.push_back(
        "Uncertain: the time budget was spent before the answer was decided; measure longer with "
        "--time-budget.");
  }

  void for_rate() {
    const WorkersPoint& chosen = fewest_near(facts_.points, *best_);
    advice_.recommended = chosen.workers;
    const WorkersPoint* more = nullptr;
    for (const WorkersPoint* p : points_)
      if (!more && p->workers > chosen.workers) more = p;
    advice_.reason = more ? reason::kMoreDoNotLoadMore : reason::kMoreNotMeasured;
    advice_.because = fmt::format(
        "Use {}: they load {} samples/s{}. The limit is {}.", workers(chosen.workers),
        format_count(rate_of(chosen).value),
        more ? fmt::format(", and {} give {}", more->workers, gain_text(*more, chosen)) : "",
        advice_.limit);
    if (more == nullptr) add_unmeasured(chosen);
    add_doubt(chosen);
    advice_.notes.push_back(fmt::format(
        "No demand was given (--samples-per-second, --model or --from): {} feed any training that "
        "takes less than {} samples/s in all.",
        workers(chosen.workers), format_count(low_of(rate_of(chosen)))));
    const WorkersPoint* fewer = nullptr;
    for (const WorkersPoint* p : points_)
      if (p->workers < chosen.workers) fewer = p;
    if (fewer)
      advice_.notes.push_back(fmt::format("{} would do below {} samples/s.",
                                          workers(fewer->workers),
                                          format_count(low_of(rate_of(*fewer)))));
  }

  void add_unmeasured(const WorkersPoint& chosen) {
    advice_.certain = false;
    advice_.notes.push_back(
        fmt::format("Uncertain: more than {} were not measured.", workers(chosen.workers)));
  }

  // Notes the number that may be faster the most, within the error of its turns.
  void add_doubt(const WorkersPoint& chosen) {
    const WorkersPoint* rival = nullptr;
    double most = kNoticeable;
    for (const WorkersPoint* p : points_) {
      const double may = p == &chosen ? 0 : most_gain(*p, chosen);
      if (may > most) rival = p, most = may;
    }
    if (rival == nullptr) return;
    advice_.certain = false;
    advice_.notes.push_back(
        fmt::format("Uncertain: {} may load up to {}; measure longer with "
                    "--time-budget.",
                    workers(rival->workers), most_text(chosen, most)));
  }

  static std::string most_text(const WorkersPoint& chosen, double gain) {
    if (!std::isfinite(gain)) return "more samples/s";
    return format_count(rate_of(chosen).value * gain) + " samples/s by the 95 % interval";
  }

  double most_gain(const WorkersPoint& point, const WorkersPoint& chosen) const {
    const Estimate compared = gain(facts_.points, point, chosen);
    if (compared.interval) return compared.interval->high;
    return compared.value < kClearlySlower ? compared.value : INFINITY;
  }

  std::string gain_text(const WorkersPoint& more, const WorkersPoint& than) const {
    const double more_by = gain(facts_.points, more, than).value - 1;
    return more_by < 0 ? percent(-more_by) + " less" : percent(more_by) + " more";
  }

  void add_notes() {
    if (facts_.bad > 0)
      advice_.notes.push_back(fmt::format(
          "{:.0f} of {:.0f} files could not be read and were left out, the first is {}; howmany "
          "train refuses such a folder unless --on-bad-image skip.",
          facts_.bad, facts_.looked_at, facts_.first_bad));
    if (demanded()) {
      const double cores = all() * core_s(facts_.probes);
      advice_.notes.push_back(fmt::format(
          "One worker makes a sample in {}: {} samples/s keep {:.2g} cores busy (predicted).",
          format_seconds(facts_.probes.sample_s), format_count(all()), cores));
    }
    const double warm_rate = rate_of(*best_).value;
    if (facts_.cold_rate && warm_rate > kNoticeable * *facts_.cold_rate)
      advice_.notes.push_back(fmt::format(
          "First epoch: {} samples/s with files not in memory and {} ({} of the {}).",
          format_count(*facts_.cold_rate), workers(facts_.cold_workers),
          percent(*facts_.cold_rate / warm_rate), advice_.feeds ? "demand" : "warm rate"));
    advice_.notes.push_back(fmt::format(
        "Measured with {} and this program's decoder; --worker-type pytorch measures PyTorch's own "
        "DataLoader.",
        facts_.as));
  }

  void add(const std::vector<std::string>& notes) {
    advice_.notes.insert(advice_.notes.end(), notes.begin(), notes.end());
  }

  void add_failures() {
    for (const WorkersPoint& p : facts_.points)
      if (!p.error.empty())
        advice_.notes.push_back(
            fmt::format("Failed: {}: {}.", number(p.workers, "worker"), p.error));
  }

  void add_lines() {
    const int w = *advice_.recommended;
    advice_.pytorch =
        fmt::format("DataLoader(dataset, batch_size={}, num_workers={}", facts_.asked.batch, w);
    if (w > 0)
      advice_.pytorch +=
          fmt::format(", prefetch_factor={}, persistent_workers=True", facts_.asked.prefetch);
    advice_.pytorch += ", pin_memory=True)";
    advice_.slurm =
        fmt::format("#SBATCH --ntasks-per-node={} --cpus-per-task={}", facts_.asked.devices, w + 1);
  }

  const WorkersFacts& facts_;
  std::vector<const WorkersPoint*> points_;  // measured, by workers
  const WorkersPoint* best_ = nullptr;
  WorkersAdvice advice_;
};

}  // namespace

WorkersAdvice advise_workers(const WorkersFacts& facts) { return Advisor(facts).advise(); }

}  // namespace howmany::reports
