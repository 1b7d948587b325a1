// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/script.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/base/schema/reasons.h"
#include "core/base/schema/samples.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "reports/results/disturbance.h"
#include "reports/workers/compare.h"
#include "reports/workers/json.h"
#include "reports/workers/notes.h"
#include "reports/workers/render.h"
#include "reports/workers/rows.h"
#include "reports/workers/search.h"

namespace howmany::reports {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kFewStalls = 0.01;  // of the time: more workers cannot help

const WorkersPoint* own_of(const ScriptFacts& facts) {
  const auto found = std::ranges::find(facts.points, true, &WorkersPoint::own);
  return found == facts.points.end() ? nullptr : &*found;
}

bool has_demand(const ScriptFacts& facts) { return facts.demand.samples_per_s > 0; }

// The share of waiting means something only if something else takes time.
bool shows_stall(const ScriptFacts& facts) { return !facts.only_loads || has_demand(facts); }

std::string interval_text(const Estimate& estimate) {
  if (!estimate.interval) return "";
  return fmt::format(" (95 % CI {:.2f} to {:.2f})", estimate.interval->low,
                     estimate.interval->high);
}

std::string named(int workers) { return fmt::format("num_workers={}", workers); }

class ScriptAdvisor {
 public:
  explicit ScriptAdvisor(const ScriptFacts& facts)
      : facts_(facts), best_(*best_of(facts.points)), chosen_(fewest_near(facts.points, best_)) {}

  WorkersAdvice advise() {
    advice_.recommended = chosen_.workers;
    advice_.feeds = stall_of(chosen_).value <= kFewStalls;
    advice_.limit = advice_.feeds ? "training itself" : "the loader";
    advice_.reason = reason::kMoreDoNotLoadMore;
    advice_.because = facts_.only_loads ? because_of_loading() : because();
    add_unmeasured();
    add_fewer();
    add_more();
    add_figures();
    const std::vector<std::string> bounds = bound_notes(facts_.bounds);
    advice_.notes.insert(advice_.notes.end(), bounds.begin(), bounds.end());
    add_lines();
    mark_disturbed(facts_.busy_elsewhere, advice_);
    return std::move(advice_);
  }

 private:
  std::string because() const {
    const WorkersPoint* own = own_of(facts_);
    const std::string waits =
        fmt::format("waits {} of the time for data", percent(stall_of(chosen_).value));
    if (own == nullptr)
      return fmt::format("Use {}: {} then {}.", named(chosen_.workers), facts_.script, waits);
    if (own == &chosen_)
      return fmt::format("Keep {}: {} {}, and no other number of workers trains faster.",
                         named(own->workers), facts_.script, waits);
    const Estimate faster = gain(facts_.points, chosen_, *own);
    return fmt::format("Use {}: {} trains {:.2f}x as fast as with its own {}{}. It then {}.",
                       named(chosen_.workers), facts_.script, faster.value, named(own->workers),
                       interval_text(faster), waits);
  }

  std::string because_of_loading() const {
    std::string text = fmt::format("Use {}: {} loads {} samples/s", named(chosen_.workers),
                                   facts_.script, format_count(rate_of(chosen_).value));
    const WorkersPoint* none = own_of(facts_);
    if (none == &chosen_) text += ", and no more with workers";
    if (none != nullptr && none != &chosen_) {
      const Estimate faster = gain(facts_.points, chosen_, *none);
      text += fmt::format(", {:.2f}x as many as without workers{}", faster.value,
                          interval_text(faster));
    }
    if (!has_demand(facts_)) return text + ".";
    return text + fmt::format(". Training at {} samples/s waits {} of the time for data.",
                              format_count(facts_.demand.samples_per_s * facts_.ranks),
                              percent(stall_of(chosen_).value));
  }

  void add_unmeasured() {
    if (&chosen_ != &facts_.points.back() || advice_.feeds) return;
    advice_.reason = reason::kMoreNotMeasured;
    doubt(fmt::format("more than {} were not measured; give them with --workers.",
                      number(chosen_.workers, "worker")));
  }

  void add_fewer() {
    for (const WorkersPoint& point : facts_.points) {
      if (point.workers >= chosen_.workers) break;
      const Estimate compared = gain(facts_.points, point, best_);
      if (compared.interval && compared.interval->high < 1) continue;
      doubt(fmt::format("{} may be as fast; measure longer with --time-budget.",
                        number(point.workers, "worker")));
    }
  }

  void add_more() {
    for (const WorkersPoint& point : facts_.points) {
      if (point.workers <= chosen_.workers) continue;
      const Estimate compared = gain(facts_.points, point, chosen_);
      if (compared.interval && compared.interval->high <= kNoticeable) continue;
      doubt(fmt::format("{} may train faster; measure longer with --time-budget.",
                        number(point.workers, "worker")));
      return;
    }
  }

  void doubt(const std::string& why) {
    advice_.certain = false;
    advice_.notes.push_back("Uncertain: " + why);
  }

  void add_figures() {
    if (facts_.only_loads && !has_demand(facts_))
      advice_.notes.push_back(
          fmt::format("This feeds any training that takes less than {} samples/s; with "
                      "--samples-per-second, --model or --from, the answer is for that demand.",
                      format_count(rate_of(chosen_).value)));
    else if (chosen_.alone > rate_of(chosen_).value)
      advice_.notes.push_back(
          fmt::format("Without training, the loader gives {} samples/s with {}; training takes {}.",
                      format_count(chosen_.alone), number(chosen_.workers, "worker"),
                      format_count(rate_of(chosen_).value)));
    if (chosen_.workers > 0 && std::isfinite(chosen_.first_batch_s))
      advice_.notes.push_back(fmt::format(
          "The first batch comes {} after {} start: with persistent_workers=True once, else in "
          "every epoch. This time is not in the samples/s.",
          format_seconds(chosen_.first_batch_s), number(chosen_.workers, "worker")));
    if (facts_.ranks > 1)
      advice_.notes.push_back(fmt::format("Workers are those of each of {} ranks.", facts_.ranks));
  }

  void add_lines() {
    const int w = chosen_.workers;
    advice_.pytorch = fmt::format("DataLoader(..., {}", named(w));
    if (w > 0)
      advice_.pytorch +=
          fmt::format(", prefetch_factor={}, persistent_workers=True", facts_.prefetch);
    advice_.pytorch += facts_.gpu ? ", pin_memory=True)" : ")";
    advice_.slurm =
        fmt::format("#SBATCH --ntasks-per-node={} --cpus-per-task={}", facts_.ranks, w + 1);
  }

  const ScriptFacts& facts_;
  const WorkersPoint& best_;
  const WorkersPoint& chosen_;
  WorkersAdvice advice_;
};

std::string text_of(const SampleLine& line, const char* parameter) {
  const JsonNode root(line.json, "script_bench");
  return root.at(sample_line::kParameters).at(parameter).string();
}

int number_of(const SampleLine& line, const char* parameter) {
  const std::string text = text_of(line, parameter);
  const int value = text.empty() || text.size() > 9 ? -1 : std::atoi(text.c_str());
  if (value < 0) throw InputError(fmt::format("script_bench: {} is no number", parameter));
  return value;
}

void take_turn(WorkersPoint& point, const BenchRow& row, int round) {
  const double rate = counter(row, metric::kSamplesPerS);
  if (!(rate > 0)) throw InputError("script_bench: a turn without samples/s");
  point.rates[round] = rate;
  point.stalls.push_back(counter(row, metric::kStallFraction));
  const auto keep = [&](double& figure, const char* name) { figure = counter(row, name, figure); };
  keep(point.alone, metric::kAloneSamplesPerS);
  keep(point.first_batch_s, metric::kFirstBatchS);
  keep(point.bytes_per_worker, metric::kBytesPerWorker);
}

Json row_json(const ScriptFacts& facts, const WorkersPoint& point) {
  const Metric rate = rate_of(point);
  Metric stall;
  stall.value = kNaN;
  if (shows_stall(facts)) stall = stall_of(point);
  return {{"workers", point.workers},
          {"own", point.own && !facts.only_loads},
          {"runs", point.rates.size()},
          {metric::kSamplesPerS, finite(rate.value)},
          {"samples_per_s_low", optional(rate.low)},
          {"samples_per_s_high", optional(rate.high)},
          {metric::kStallFraction, finite(stall.value)},
          {"stall_fraction_low", optional(stall.low)},
          {"stall_fraction_high", optional(stall.high)},
          {metric::kAloneSamplesPerS, finite(point.alone)},
          {metric::kFirstBatchS, finite(point.first_batch_s)},
          {metric::kBytesPerWorker, finite(point.bytes_per_worker)},
          {"failed", ""}};
}

}  // namespace

void add_turns(ScriptFacts& facts, const std::vector<BenchRow>& rows,
               const std::vector<SampleLine>& samples) {
  if (rows.size() != samples.size() || rows.empty())
    throw InputError("script_bench: its rows and samples do not fit together");
  const int begin = next_round(facts.points);
  std::map<int, int> rounds;  // by workers: a number repeats once per round
  for (size_t i = 0; i < rows.size(); ++i) {
    const int workers = number_of(samples[i], parameter::kWorkers);
    WorkersPoint& point = point_at(facts.points, workers);
    point.own |= text_of(samples[i], parameter::kOwn) == "1";
    take_turn(point, rows[i], begin + rounds[workers]++);
  }
  const SampleLine& first = samples.front();
  facts.ranks = std::max(
      1, static_cast<int>(JsonNode(first.json, "script_bench").at(sample_line::kWorld).integer()));
  facts.batch = number_of(first, parameter::kGlobalBatch) / facts.ranks;
  facts.sample_bytes =
      number_of(first, parameter::kBytes) / static_cast<double>(std::max<int64_t>(1, facts.batch));
  facts.prefetch = number_of(first, parameter::kPrefetch);
  facts.gpu = text_of(first, parameter::kDevice) == "cuda";
}

std::vector<int> numbers_to_refine(const ScriptFacts& facts) {
  const WorkersPoint* best = best_of(facts.points);
  if (best == nullptr) return {};
  return numbers_to_refine(facts.points, fewest_near(facts.points, *best));
}

WorkersAdvice advise_script(const ScriptFacts& facts) {
  if (!facts.points.empty()) return ScriptAdvisor(facts).advise();
  WorkersAdvice none;
  none.certain = false;
  none.reason = reason::kNothingMeasured;
  none.because = "No answer: no number of workers could be measured.";
  return none;
}

Json to_json(const ScriptFacts& facts, const WorkersAdvice& advice) {
  Json table = Json::array();
  for (const WorkersPoint& point : facts.points) table.push_back(row_json(facts, point));
  Json demand;
  if (has_demand(facts))
    demand = {{"samples_per_s_per_device", facts.demand.samples_per_s},
              {"from", facts.demand.from}};
  return {{"recommended", advice.recommended ? Json(*advice.recommended) : Json()},
          {"reason", advice.reason},
          {"because", advice.because},
          {"certain", advice.certain},
          {"disturbed", advice.disturbed},
          {"feeds", shows_stall(facts) ? Json(advice.feeds) : Json()},
          {"demand", demand},
          {"most_stall_fraction", kFewStalls},
          {"script", facts.script},
          {"devices", facts.ranks},
          {"batch", facts.batch},
          {"prefetch", facts.prefetch},
          {"as", facts.only_loads ? "pytorch" : "script"},
          {"limit", advice.limit},
          {"notes", advice.notes},
          {"bounds", bounds_json(facts.bounds)},
          {"stages", Json()},
          {"cold_samples_per_s", Json()},
          {"levers", Json::array()},
          {"pytorch", advice.pytorch},
          {"slurm", advice.slurm},
          {"table", table}};
}

}  // namespace howmany::reports
