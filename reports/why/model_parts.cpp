// SPDX-License-Identifier: Apache-2.0
#include "reports/why/model_parts.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/base/schema/metrics.h"
#include "core/base/statistics.h"
#include "reports/why/estimate.h"

namespace howmany::reports {
namespace {

constexpr double kWaitsInBursts = 0.05;  // of a step; then the median step shows no wait
constexpr double kMaxRank = 1e6;

double counter_of(const BenchRun& run, const char* name) {
  const auto found = run.row.counters.find(name);
  return found == run.row.counters.end() ? 0 : std::max(0.0, found->second);
}

// One run of a row.
struct ModelRun {
  Measured step;
  double wait_share = 0;
  std::map<LossPart, double> parts;
  Measured useful() const { return (1 - wait_share) * step; }
};

ModelRun model_run(const BenchRun& run) {
  ModelRun one;
  one.wait_share = std::min(1.0, counter_of(run, metric::kDataWaitFraction));
  one.step = median_of(run.samples.seconds);
  if (one.wait_share > kWaitsInBursts) one.step.value = mean(run.samples.seconds);
  const double exposed = counter_of(run, metric::kExposedCommunicationS),
               extra = counter_of(run, metric::kStragglerExtraS);
  one.parts[LossPart::kData] = one.wait_share * one.step.value;
  one.parts[LossPart::kSlowest] = extra;
  one.parts[LossPart::kExchange] = std::max(0.0, exposed - extra);
  one.parts[LossPart::kMachinery] = counter_of(run, metric::kBubbleFraction) * one.step.value;
  return one;
}

using ModelRuns = std::map<int, ModelRun>;  // by round

ModelRuns runs_of(const Results& results, size_t configuration) {
  ModelRuns runs;
  for (const BenchRun& run : results.runs)
    if (run.configuration == configuration && !run.samples.seconds.empty())
      runs[run.round] = model_run(run);
  return runs;
}

// Returns the rounds in which both ran.
std::vector<int> common_rounds(const ModelRuns& a, const ModelRuns& b) {
  std::vector<int> rounds;
  for (const auto& [round, run] : a)
    if (b.contains(round)) rounds.push_back(round);
  return rounds;
}

// The rows that one row is compared with.
struct Compared {
  const ModelRuns& one;          // the one device
  const ModelRuns* one_of_mode;  // the mode on one device; nullptr: not measured
  double samples = 1;            // of a device, over those of the one device
};

// Returns the cost of the mode on one device in a round. Its error is that of the steps.
Measured cost_of_mode(const Compared& with, int round) {
  if (with.one_of_mode == nullptr || !with.one_of_mode->contains(round)) return {};
  const Measured cost = with.one_of_mode->at(round).useful() - with.one.at(round).useful();
  return cost.value > 0 ? with.samples * cost : Measured{};
}

void add_model_parts(const ModelRuns& runs, const Compared& with, CountParts& count) {
  const std::vector<int> rounds = common_rounds(runs, with.one);
  std::map<LossPart, std::vector<Measured>> values;
  for (const int round : rounds) {
    const ModelRun& run = runs.at(round);
    const Measured ideal = with.samples * with.one.at(round).useful();
    Measured remainder = run.step - ideal;
    for (const auto& [part, seconds] : run.parts) {
      Measured of_part{seconds, 0};
      if (part == LossPart::kMachinery) of_part = of_part + cost_of_mode(with, round);
      values[part].push_back(of_part);
      remainder.value -= of_part.value;
    }
    values[LossPart::kCompute].push_back(remainder);
    count.step += run.step.value / static_cast<double>(rounds.size());
    count.ideal += ideal.value / static_cast<double>(rounds.size());
  }
  std::vector<Lost> parts;
  for (const auto& [part, all] : values) {
    const Measured of_all = mean_over_rounds(all);
    parts.push_back({part, of_all.value, of_all.error});
  }
  set_parts(std::move(parts), count);
}

void add_model_slowest(const Results& results, size_t configuration, CountParts& count) {
  count.slowest.extra = count.of(LossPart::kSlowest).seconds;
  if (count.slowest.extra == 0) return;
  count.slowest.share = 1;  // the bench compares medians over steps
  for (const BenchRun& run : results.runs)
    if (run.configuration == configuration && run.row.counters.contains(metric::kStragglerRank))
      count.slowest.rank =
          static_cast<int>(std::min(kMaxRank, counter_of(run, metric::kStragglerRank)));
}

CountParts model_row(const Configuration& c) {
  CountParts count;
  count.devices = c.devices;
  count.model = c.model;
  count.mode = c.mode;
  count.backend = c.backend;
  count.remainder = c.devices > 1;
  return count;
}

}  // namespace

std::vector<CountParts> parts_of_models(const Plan& plan, const Results& results) {
  const std::vector<Configuration> all = configurations(plan.request);
  std::vector<CountParts> rows, of_model;
  ModelRuns one;
  std::map<std::pair<std::string, std::string>, ModelRuns> of_modes;  // on one device
  double batch = 1;
  const auto finish = [&] {
    if (!of_model.empty()) set_on_one(CountParts(of_model[0]), of_model);
    rows.insert(rows.end(), of_model.begin(), of_model.end());
    of_model.clear();
  };
  for (size_t i = 0; i < all.size(); ++i) {
    const Configuration& c = all[i];
    const ModelRuns runs = runs_of(results, i);
    const double own = static_cast<double>(global_batch(plan.request, c)) / c.devices;
    if (c.mode == "single") {
      finish();
      one = runs;
      of_modes.clear();
      batch = own;
    }
    if (common_rounds(runs, one).empty()) continue;
    const std::pair mode(c.mode, c.backend);
    if (c.devices == 1 && c.mode != "single") of_modes[mode] = runs;
    const auto found = of_modes.find(mode);
    CountParts count = model_row(c);
    add_model_parts(runs, {one, found == of_modes.end() ? nullptr : &found->second, own / batch},
                    count);
    add_model_slowest(results, i, count);
    of_model.push_back(std::move(count));
  }
  finish();
  return rows;
}

}  // namespace howmany::reports
