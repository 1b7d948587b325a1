// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/advise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/base/schema/reasons.h"
#include "core/base/text/format.h"
#include "reports/results/disturbance.h"

namespace howmany::reports {
namespace {

std::string percent(double share) { return format_percent(share, share < 0.0995 ? 1 : 0); }
std::string named(int workers) { return fmt::format("num_workers={}", workers); }
std::string per_s(double rate) { return format_count(rate) + " samples/s"; }

std::string interval_text(const Estimate& estimate) {
  if (!estimate.interval) return "";
  return fmt::format(" (95 % CI {:.2f} to {:.2f})", estimate.interval->low,
                     estimate.interval->high);
}

void add_failures(const WorkersPoints& points, WorkersAdvice& advice) {
  for (const WorkersPoint& point : points)
    if (!point.error.empty())
      advice.notes.push_back(
          fmt::format("Failed: {}: {}.", number(point.workers, "worker"), point.error));
}

class Advisor {
 public:
  Advisor(const WorkersFacts& facts, const WorkersPoint& chosen)
      : facts_(facts), points_(facts.points), chosen_(chosen), stall_(stall_of(chosen)) {}

  WorkersAdvice advise() {
    advice_.recommended = chosen_.workers;
    advice_.feeds = facts_.shows_stall() && stall_.value <= facts_.max_stall;
    if (facts_.trains())
      for_script();
    else if (!facts_.has_demand())
      for_rate();
    else
      advice_.feeds ? for_demand() : cannot_feed();
    if (facts_.undecided) doubt("the time budget was spent before the answer was decided");
    if (!facts_.stopped.empty()) doubt(facts_.stopped);
    add_turns_missing();
    add_unexplained();
    if (!advice_.feeds || facts_.trains()) add_rivals();
    add_figures();
    mark_disturbed(facts_.busy_elsewhere, advice_);
    if (!advice_.certain && !advice_.disturbed) advice_.because = "Uncertain. " + advice_.because;
    add_lines();
    return std::move(advice_);
  }

 private:
  double all() const { return facts_.asked.demand * facts_.asked.devices; }
  std::string devices() const { return number(facts_.asked.devices, "device"); }
  std::string workers(int n) const {
    return facts_.asked.devices > 1 ? number(n, "worker") + " a device" : number(n, "worker");
  }
  void note(std::string text) { advice_.notes.push_back(std::move(text)); }

  void doubt(const std::string& why) {
    advice_.certain = false;
    const double enough = 10 * std::ceil(facts_.enough_seconds / 10);
    note(fmt::format("Uncertain: {}; measure longer with --time-budget{}.", why,
                     enough > 0 ? fmt::format(", about {:.0f}", enough) : ""));
  }

  void for_script() {
    advice_.reason = reason::kMoreDoNotLoadMore;
    const std::string waits = fmt::format("waits {} of the time for data", percent(stall_.value));
    const auto own = std::ranges::find_if(points_, [](auto& p) { return p.own && p.counts(); });
    if (own == points_.end())
      advice_.because =
          fmt::format("Use {}: {} then {}.", named(chosen_.workers), facts_.script, waits);
    else if (&*own == &chosen_)
      advice_.because = fmt::format("Keep {}: {} {}, and no other number of workers trains faster.",
                                    named(own->workers), facts_.script, waits);
    else
      advice_.because = fmt::format("Use {}: {} trains {}. It then {}.", named(chosen_.workers),
                                    facts_.script, compared_with(*own), waits);
  }

  // "1.80x as fast as with its own num_workers=0 (95 % CI ...)"
  std::string compared_with(const WorkersPoint& own) const {
    const Estimate faster = gain(points_, chosen_, own);
    const bool same = faster.interval && faster.interval->low <= 1 && faster.interval->high >= 1;
    const std::string ratio =
        fmt::format("{}{:.2f}x as fast as", faster.interval ? "" : "maybe ", faster.value);
    return fmt::format("{} with its own {}{}", same ? "no slower than" : ratio, named(own.workers),
                       interval_text(faster));
  }

  void for_demand() {
    advice_.reason = reason::kFeedsDemand;
    advice_.because = fmt::format(
        "Use {}: {} {} at {} ({}). Training waits {} of the time; {} is allowed.",
        workers(chosen_.workers), chosen_.workers == 1 ? "it feeds" : "they feed", devices(),
        per_s(all()), facts_.demand_from, percent(stall_.value), percent(facts_.max_stall));
    const double high = stall_.high.value_or(stall_.value);
    if (high > facts_.max_stall)
      doubt(fmt::format("the 95 % interval of the stall reaches {}", percent(high)));
    std::string fewer;  // the next smaller number
    for (const WorkersPoint& point : points_)
      if (point.counts() && point.workers < chosen_.workers)
        fewer = fmt::format("With {} training waits {} of the time.", workers(point.workers),
                            percent(stall_of(point).value));
    if (!fewer.empty()) note(fewer);
  }

  void cannot_feed() {
    advice_.reason = reason::kDemandNotMet;
    const double rate = rate_of(chosen_).value;
    advice_.because = fmt::format(
        "No number of workers that was measured feeds {} at {} ({}). {} {} nearest with {} and {} "
        "stall.",
        devices(), per_s(all()), facts_.demand_from, workers(chosen_.workers),
        chosen_.workers == 1 ? "comes" : "come", per_s(rate), percent(stall_.value));
    note(fmt::format("This rate is enough for {:.2g} of {} such {}.", rate / facts_.asked.demand,
                     facts_.asked.devices, facts_.asked.devices == 1 ? "device" : "devices"));
  }

  void for_rate() {
    advice_.reason = reason::kMoreDoNotLoadMore;
    const Metric rate = rate_of(chosen_);
    advice_.because =
        fmt::format("Use {}: {} {}", workers(chosen_.workers),
                    chosen_.workers == 1 ? "it loads" : "they load", per_s(rate.value));
    const WorkersPoint* none = find_point(points_, 0);
    if (none != nullptr && none != &chosen_ && none->counts()) {
      const Estimate faster = gain(points_, chosen_, *none);
      advice_.because += fmt::format(", {:.2f}x as many as without workers{}", faster.value,
                                     interval_text(faster));
    }
    advice_.because += ".";
    note(fmt::format(
        "No demand was given (--samples-per-second, --model or --from): {} feed any training that "
        "takes less than {} in all.",
        workers(chosen_.workers), per_s(rate.low.value_or(rate.value))));
  }

  void add_turns_missing() {
    for (const auto& [missing, turns] : turns_missing(facts_))
      if (const int had = find_point(points_, missing)->turns(); had < kMinTurns)
        doubt(fmt::format("{} had only {}", workers(missing), number(had, "turn")));
  }

  void add_unexplained() {
    const WorkersPoint* than = unexplained_by_stall(points_, chosen_);
    if (than == nullptr) return;
    doubt(
        fmt::format("{} train {:.2f}x as fast as {}, which waited only {} of the time, so the gain "
                    "has another cause",
                    workers(chosen_.workers), gain(points_, chosen_, *than).value,
                    workers(than->workers), percent(stall_of(*than).value)));
  }

  // Numbers that may be as good, within the error of their turns.
  void add_rivals() {
    std::vector<int> fewer;
    const WorkersPoint* rival = nullptr;
    double most = kNoticeable;
    for (const WorkersPoint& point : points_) {
      if (!point.counts() || &point == &chosen_ || point.turns() < kMinTurns) continue;
      const Estimate compared = gain(points_, point, chosen_);
      const double may = compared.interval ? compared.interval->high : compared.value;
      if (point.workers < chosen_.workers && may_win(points_, point))
        fewer.push_back(point.workers);
      else if (point.workers > chosen_.workers && may > most)
        rival = &point, most = may;
    }
    if (!fewer.empty())
      doubt(fmt::format("{} {} may be as fast", fmt::join(fewer, ", "),
                        fewer == std::vector{1} ? "worker" : "workers"));
    if (rival != nullptr)
      doubt(fmt::format("{} may be up to {:.2f}x as fast by the 95 % interval",
                        workers(rival->workers), most));
    if (&chosen_ != &points_.back() || advice_.feeds) return;
    if (advice_.reason != reason::kDemandNotMet) advice_.reason = reason::kMoreNotMeasured;
    doubt(fmt::format("more than {} were not measured", workers(chosen_.workers)));
  }

  void add_figures() {
    add_failures(points_, advice_);
    facts_.script.empty() ? add_files() : add_script_figures();
    for (std::string& text : bound_notes(facts_.bounds)) note(std::move(text));
  }

  void add_script_figures() {
    const double rate = rate_of(chosen_).value;
    if (facts_.shows_stall() && chosen_.alone > rate)
      note(fmt::format("Without training, the loader gives {} with {}; training takes {}.",
                       per_s(chosen_.alone), number(chosen_.workers, "worker"),
                       format_count(rate)));
    if (chosen_.workers > 0 && std::isfinite(chosen_.first_batch_s))
      note(fmt::format(
          "The first batch comes {} after {} start: with persistent_workers=True once, else in "
          "every epoch. This time is not in the samples/s.",
          format_seconds(chosen_.first_batch_s), number(chosen_.workers, "worker")));
    if (facts_.asked.devices > 1)
      note(fmt::format("Workers are those of each of {} ranks.", facts_.asked.devices));
  }

  void add_files() {
    if (facts_.bad > 0)
      note(fmt::format(
          "{:.0f} of {:.0f} files could not be read and were left out, the first is {}; howmany "
          "train refuses such data unless --on-bad-image skip.",
          facts_.bad, facts_.looked_at, facts_.first_bad));
    if (!facts_.data_notes.empty()) note("The data: " + facts_.data_notes + ".");
    const double warm = rate_of(chosen_).value;
    if (facts_.cold_rate && warm > kNoticeable * *facts_.cold_rate)
      note(fmt::format("First epoch: {} with files not in memory and {} ({} of the {}).",
                       per_s(*facts_.cold_rate), workers(facts_.cold_workers),
                       percent(*facts_.cold_rate / warm), advice_.feeds ? "demand" : "warm rate"));
    note(fmt::format(
        "Measured with {} and this program's decoder; --worker-type pytorch measures PyTorch's own "
        "DataLoader.",
        facts_.as));
  }

  void add_lines() {
    const int w = chosen_.workers;
    const std::string mark = advice_.certain ? "" : "  # uncertain";
    std::string first = facts_.trains() ? std::string("...")
                                        : fmt::format("dataset, batch_size={}", facts_.asked.batch);
    if (w > 0)
      first += fmt::format(", {}, prefetch_factor={}, persistent_workers=True", named(w),
                           facts_.asked.prefetch);
    else
      first += ", " + named(w);
    const bool pins = facts_.script.empty() || facts_.gpu;
    advice_.pytorch =
        fmt::format("DataLoader({}{}){}", first, pins ? ", pin_memory=True" : "", mark);
    advice_.slurm = fmt::format("#SBATCH --ntasks-per-node={} --cpus-per-task={}{}",
                                facts_.asked.devices, w + 1, mark);
  }

  const WorkersFacts& facts_;
  const WorkersPoints& points_;
  const WorkersPoint& chosen_;
  const Metric stall_;
  WorkersAdvice advice_;
};

}  // namespace

WorkersAdvice advise_workers(const WorkersFacts& facts) {
  if (const WorkersPoint* chosen = chosen_of(facts)) return Advisor(facts, *chosen).advise();
  WorkersAdvice none;
  none.certain = false;
  none.reason = reason::kNothingMeasured;
  none.because =
      fmt::format("No answer: {}.",
                  facts.stopped.empty() ? "no number of workers could be measured" : facts.stopped);
  add_failures(facts.points, none);
  return none;
}

}  // namespace howmany::reports
