// SPDX-License-Identifier: Apache-2.0
#include "reports/why/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

#include "core/base/statistics.h"
#include "core/base/text/format.h"
#include "reports/why/estimate.h"

namespace howmany::reports {
namespace {

// Cycles of a row that show work between steps, as in cycles.py.
constexpr int kCyclesToSee = 3;
constexpr double kMaxRest = 0.05, kMinPart = 0.01, kMinCause = 0.05;  // of a step

constexpr const char* kNames[kParts] = {"data",      "exchange", "compute", "slowest",
                                        "machinery", "outside",  "epochs",  "rest"};
constexpr const char* kWords[kParts] = {"waiting for data",
                                        "gradient exchange that backward does not hide",
                                        "slower compute",
                                        "waiting for the slowest rank",
                                        "machinery of the parallel mode",
                                        "work outside of steps",
                                        "starts of epochs",
                                        "rest"};

size_t index_of(LossPart part) { return static_cast<size_t>(part); }

double mean_of_ranks(const StepEvidence& e, double RankTimes::*member) {
  double sum = 0;
  for (const RankTimes& rank : e.ranks) sum += rank.*member;
  return sum / static_cast<double>(e.ranks.size());
}

double train_of(const RankTimes& rank) {
  return rank.step - rank.data - rank.epochs - rank.outside;
}
double mean_train(const StepEvidence& e) {
  double sum = 0;
  for (const RankTimes& rank : e.ranks) sum += train_of(rank);
  return sum / static_cast<double>(e.ranks.size());
}

double in_spans(const DetailStep& step, const std::string& what) {
  double sum = 0;
  for (const Span& span : step.spans)
    if (span.what == what) sum += span.seconds;
  return sum;
}

// Backward without the wait for gradients at its end.
double pure_backward(const DetailStep& step) {
  return step.backward - (step.blocked - blocked_outside(step));
}

// Returns the seconds of backward of a rank without the wait at its end; nullopt if unknown.
std::optional<double> pure_backward(const StepEvidence& e, size_t rank) {
  std::vector<const DetailSteps*> steps = steps_of(e, Mode::kSynced);
  if (steps.empty()) steps = steps_of(e, Mode::kAlone);
  std::vector<double> seconds;
  for (const DetailSteps* step : steps) seconds.push_back(pure_backward(step->ranks[rank]));
  if (seconds.empty()) return std::nullopt;
  return median(seconds);
}

// Returns how long each rank was blocked in a timed step.
std::vector<double> blocked_of_timed(const StepEvidence& e) {
  std::vector<double> seconds;
  for (size_t rank = 0; rank < e.ranks.size(); ++rank) {
    const RankTimes& times = e.ranks[rank];
    const std::optional<double> pure = e.ddp ? pure_backward(e, rank) : std::nullopt;
    const double tail = pure ? std::max(0.0, times.backward - *pure) : 0;
    seconds.push_back(times.blocked + tail);
  }
  return seconds;
}

bool saw_buckets(const StepEvidence& e) {
  return std::ranges::any_of(steps_of(e, Mode::kSynced), [](const DetailSteps* step) {
    return std::ranges::any_of(step->ranks, [](const DetailStep& r) { return !r.buckets.empty(); });
  });
}

// Of DTensor, collectives run in C++. So do those of DistributedDataParallel, without buckets.
bool saw_exchange(const StepEvidence& e, const std::string& mode) {
  if (e.ddp) return in_mode(e, Mode::kAlone, useful) || saw_buckets(e);
  const auto waited = [](const RankTimes& rank) { return rank.blocked > 0; };
  return mode != "dtensor" && (!e.gpu || std::ranges::any_of(e.ranks, waited));
}

// The ranks take part in the same collectives, so their buckets are the same.
bool agree_on_buckets(const StepEvidence& e) {
  for (const DetailSteps* step : steps_of(e, Mode::kSynced))
    for (const DetailStep& rank : step->ranks)
      if (!std::ranges::equal(rank.buckets, step->ranks[0].buckets, {}, &Bucket::bytes,
                              &Bucket::bytes))
        return false;
  return true;
}

// The rank that waited least in a step, and its own times over the mean of the others.
struct LastRank {
  size_t rank = 0;
  double data = 0, outside = 0, epochs = 0, compute = 0;
  double extra() const { return data + outside + epochs + compute; }
};

double over_others(const std::vector<double>& values, size_t rank) {
  if (values.size() < 2) return 0;
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return values[rank] - (sum - values[rank]) / static_cast<double>(values.size() - 1);
}

LastRank last_of(const DetailSteps& step) {
  LastRank last{least_blocked(step)};
  const auto spans_over = [&](const char* what) {
    std::vector<double> seconds;
    for (const DetailStep& rank : step.ranks) seconds.push_back(in_spans(rank, what));
    return over_others(seconds, last.rank);
  };
  last.data = spans_over("data");
  last.outside = spans_over("outside");
  last.epochs = spans_over("epochs");
  last.compute = over_others(of_ranks(step, useful), last.rank);
  return last;
}

// Takes the timed steps, if none was recorded.
LastRank last_of_timed(const StepEvidence& e, const std::vector<double>& waits) {
  LastRank last{static_cast<size_t>(std::ranges::min_element(waits) - waits.begin())};
  const auto over = [&](const std::function<double(size_t)>& value) {
    std::vector<double> seconds;
    for (size_t rank = 0; rank < waits.size(); ++rank) seconds.push_back(value(rank));
    return over_others(seconds, last.rank);
  };
  last.data = over([&](size_t r) { return e.ranks[r].data; });
  last.outside = over([&](size_t r) { return e.ranks[r].outside; });
  last.epochs = over([&](size_t r) { return e.ranks[r].epochs; });
  last.compute = over([&](size_t r) { return train_of(e.ranks[r]) - waits[r]; });
  return last;
}

std::vector<LastRank> last_ranks(const StepEvidence& e, const std::vector<double>& waits) {
  std::vector<LastRank> all;
  for (const DetailSteps* step : steps_of(e, Mode::kSynced)) all.push_back(last_of(*step));
  if (all.empty()) all.push_back(last_of_timed(e, waits));
  return all;
}

// The parts of one round of a row, before noise is joined.
struct RoundParts {
  double step = 0;
  Measured ideal;
  std::array<Measured, kParts> parts;
  Measured threads;
  std::vector<LastRank> last;
  Measured& of(LossPart part) { return parts[index_of(part)]; }
};

bool has_too_many_threads(const StepEvidence& e) { return e.cores > 0 && e.threads > e.cores; }

// Returns the cost of DistributedDataParallel on one rank.
Measured machinery_alone(const StepEvidence& e) {
  const auto synced = in_mode(e, Mode::kSynced, train), alone = in_mode(e, Mode::kAlone, useful);
  if (!e.ddp || !synced || !alone || synced->value <= alone->value) return {};
  return *synced - *alone;
}

// Returns what a rank by itself loses with more threads than cores: w with them less w without.
Measured lost_by_threads(const StepEvidence& e) {
  const auto wide = in_mode(e, e.ddp ? Mode::kAlone : Mode::kSynced, useful),
             narrow = in_mode(e, Mode::kNarrow, useful);
  if (!has_too_many_threads(e) || !narrow) return {};
  const Measured lost = wide.value_or(Measured{mean_train(e), 0}) - *narrow;
  return lost.value > 0 ? lost : Measured{};
}

// Returns the useful step of the one device: the timed one, which has the most steps, less these.
Measured ideal_of(const StepEvidence& e) {
  Measured ideal = Measured{mean_train(e), 0} - machinery_alone(e) - lost_by_threads(e);
  ideal.value = std::max(0.0, ideal.value);
  return ideal;
}

void add_one_rank(const StepEvidence& e, RoundParts& round) {
  round.of(LossPart::kMachinery) = machinery_alone(e);
  round.of(LossPart::kCompute) = Measured{mean_train(e), 0} - machinery_alone(e) - round.ideal;
  round.threads = lost_by_threads(e);
}

// Compute and machinery of several ranks. `one_rank`: machinery of a row of one rank.
void add_compute(const StepEvidence& e, double own_seconds, Measured one_rank, RoundParts& round) {
  const auto synced = in_mode(e, Mode::kSynced, useful), noop = in_mode(e, Mode::kNoop, useful),
             alone = in_mode(e, Mode::kAlone, useful);
  round.threads = lost_by_threads(e);
  if (!alone) {
    round.of(LossPart::kMachinery) = one_rank;
    round.of(LossPart::kCompute) = Measured{own_seconds, 0} - round.ideal - one_rank;
    return;
  }
  round.of(LossPart::kCompute) = *alone - round.ideal;
  if (noop) round.of(LossPart::kMachinery) = round.of(LossPart::kMachinery) + (*noop - *alone);
  if (synced) {
    const Measured beside = *synced - noop.value_or(*alone);
    round.of(LossPart::kCompute) = round.of(LossPart::kCompute) + beside;
  }
}

// Returns the least wait of the ranks of a step, and the error of the mean wait over it.
std::pair<Measured, double> exchange_of(const StepEvidence& e, const std::vector<double>& waits) {
  std::vector<double> least, over;
  for (const DetailSteps* step : steps_of(e, Mode::kSynced)) {
    const std::vector<double> ranks = of_ranks(*step, blocked);
    least.push_back(*std::ranges::min_element(ranks));
    over.push_back(mean(ranks) - least.back());
  }
  if (least.empty()) return {{*std::ranges::min_element(waits), 0}, 0};
  Measured exchange = median_of(least);
  exchange.value = std::min(exchange.value, mean(waits));
  return {exchange, median_of(over).error};
}

// The end of backward is not exchange if it takes time without it.
void move_end_of_noop(const StepEvidence& e, RoundParts& round) {
  double& exchange = round.of(LossPart::kExchange).value;
  const double moved = std::min(exchange, end_of_noop(e));
  exchange -= moved;
  round.of(LossPart::kMachinery).value += moved;
}

// The other ranks wait for a rank with more of `part`. That wait is of the same cause.
void move_wait(const StepEvidence& e, LossPart part, double RankTimes::*member, RoundParts& round) {
  std::vector<double> seconds;
  for (const RankTimes& rank : e.ranks) seconds.push_back(rank.*member);
  const auto most = static_cast<size_t>(std::ranges::max_element(seconds) - seconds.begin());
  const auto n = static_cast<double>(seconds.size());
  double& waiting = round.of(LossPart::kSlowest).value;
  const double moved = std::clamp((n - 1) / n * over_others(seconds, most), 0.0, waiting);
  round.of(part).value += moved;
  waiting -= moved;
}

// The share of the slow rank in the mean compute is also lost by it.
void move_slow_compute(size_t ranks, RoundParts& round) {
  double extra = 0;
  for (const LastRank& last : round.last) extra += std::max(0.0, last.compute);
  extra /= static_cast<double>(round.last.size());
  const auto n = static_cast<double>(ranks);
  double &compute = round.of(LossPart::kCompute).value,
         &waiting = round.of(LossPart::kSlowest).value;
  const double moved =
      std::min({std::max(0.0, compute), extra / n, std::max(0.0, waiting) / (n - 1)});
  compute -= moved;
  waiting += moved;
}

void add_ranks(const StepEvidence& e, Measured one_rank, RoundParts& round) {
  const std::vector<double> waits = blocked_of_timed(e);
  const double wait = mean(waits);
  const auto [exchange, error] = exchange_of(e, waits);
  round.of(LossPart::kExchange) = exchange;
  round.of(LossPart::kSlowest) = {wait - exchange.value, error};
  round.last = last_ranks(e, waits);
  move_end_of_noop(e, round);
  move_wait(e, LossPart::kEpochs, &RankTimes::epochs, round);
  move_wait(e, LossPart::kOutside, &RankTimes::outside, round);
  move_wait(e, LossPart::kData, &RankTimes::data, round);
  add_compute(e, mean_train(e) - wait, one_rank, round);
  move_slow_compute(e.ranks.size(), round);
}

RoundParts round_parts(const StepEvidence& e, Measured ideal, Measured one_rank) {
  RoundParts round;
  round.step = mean_of_ranks(e, &RankTimes::step);
  round.ideal = ideal;
  round.of(LossPart::kData).value = mean_of_ranks(e, &RankTimes::data);
  round.of(LossPart::kEpochs).value = mean_of_ranks(e, &RankTimes::epochs);
  round.of(LossPart::kOutside).value = mean_of_ranks(e, &RankTimes::outside);
  if (e.ranks.size() > 1)
    add_ranks(e, one_rank, round);
  else
    add_one_rank(e, round);
  return round;
}

// Returns the steps in which work between steps recurs on one device; 0 if it takes little time.
int lost_by_cycles(const RowEvidence& baseline) {
  const StepEvidence& e = std::ranges::max(baseline.rounds, {}, &StepEvidence::cycle);
  const double between =
      mean_of_ranks(e, &RankTimes::outside) + mean_of_ranks(e, &RankTimes::epochs);
  return between > kMaxRest * mean_of_ranks(e, &RankTimes::step) ? e.cycle : 0;
}

std::string refusal_of(const RowEvidence& row, const RowEvidence* baseline) {
  if (row.rounds.empty()) return "its runs recorded no steps";
  if (baseline == nullptr || baseline->rounds.empty())
    return "the evidence of one device is missing";
  const int cycle = lost_by_cycles(*baseline);
  for (const StepEvidence& e : row.rounds) {
    if (e.timed > 0 && e.cycle == 0 && e.timed < kCyclesToSee * cycle)
      return fmt::format(
          "{} timed steps are too few to see what recurs every {} steps; give a larger "
          "--time-budget",
          e.timed, cycle);
    if (!agree_on_buckets(e)) return "the ranks disagree on the order of their gradient buckets";
    if (e.ranks.size() > 1 && !saw_exchange(e, row.mode)) return "the exchange was not seen";
  }
  return "";
}

Measured least(Measured a, Measured b) { return b.value < a.value ? b : a; }

double samples_ratio(const StepEvidence& e, const StepEvidence& one) {
  return e.samples > 0 && one.samples > 0 ? e.samples / one.samples : 1;
}

// Returns the useful step of each round of a row of one device, at the samples of `row`. Rounds are
// paired, so that drift cancels.
std::vector<Measured> useful_of(const RowEvidence& one, const RowEvidence& row) {
  std::vector<Measured> all, ones;
  for (const StepEvidence& e : one.rounds) ones.push_back(ideal_of(e));
  const bool paired = row.rounds.size() == one.rounds.size();
  for (size_t i = 0; i < row.rounds.size(); ++i) {
    const double ratio = samples_ratio(row.rounds[i], one.rounds[paired ? i : 0]);
    all.push_back(ratio * (paired ? ones[i] : mean_over_rounds(ones)));
  }
  return all;
}

// Returns the ideal step of each round of `row`: the least of the useful steps that were seen.
std::vector<Measured> ideals_of(const std::vector<RowEvidence>& rows, const RowEvidence& row,
                                const RowEvidence& baseline) {
  std::vector<Measured> all = useful_of(baseline, row);
  for (const RowEvidence& one : rows) {
    if (one.devices != 1 || one.model != row.model || one.rounds.empty()) continue;
    const std::vector<Measured> others = useful_of(one, row);
    for (size_t i = 0; i < all.size(); ++i) all[i] = least(all[i], others[i]);
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const StepEvidence& e = row.rounds[i];
    const auto alone = in_mode(e, Mode::kAlone, useful);
    if (alone && samples_ratio(e, baseline.rounds[0]) == 1)
      all[i] = least(all[i], *alone - lost_by_threads(e));
  }
  return all;
}

// Returns what the mode costs on one rank: its useful step less the ideal one.
Measured machinery_on_one_rank(const std::vector<RowEvidence>& rows, const RowEvidence& row,
                               Measured ideal) {
  for (const RowEvidence& one : rows) {
    if (one.devices != 1 || one.mode != row.mode || one.baseline || one.rounds.empty()) continue;
    std::vector<Measured> seconds;
    for (const StepEvidence& e : one.rounds) seconds.push_back({mean_train(e), 0});
    const Measured cost = mean_over_rounds(seconds) - ideal;
    if (cost.value > 0) return cost;
  }
  return {};
}

Slowest slowest_of(const std::vector<RoundParts>& rounds) {
  std::map<size_t, int> times;
  LastRank sum;
  std::vector<double> extra;
  for (const RoundParts& round : rounds)
    for (const LastRank& last : round.last) {
      ++times[last.rank];
      extra.push_back(last.extra());
      sum.data += last.data;
      sum.outside += last.outside;
      sum.epochs += last.epochs;
      sum.compute += last.compute;
    }
  if (extra.empty()) return {};
  const auto most = std::ranges::max_element(times, {}, [](const auto& one) { return one.second; });
  const std::pair<double, LossPart> causes[] = {{sum.data, LossPart::kData},
                                                {sum.outside, LossPart::kOutside},
                                                {sum.epochs, LossPart::kEpochs},
                                                {sum.compute, LossPart::kCompute}};
  Slowest slowest;
  slowest.rank = static_cast<int>(most->first);
  slowest.extra = std::max(0.0, median(extra));
  slowest.share = static_cast<double>(most->second) / static_cast<double>(extra.size());
  slowest.because = std::ranges::max_element(causes)->second;
  return slowest;
}

// The exchange of the step with the most buckets.
void add_buckets(const RowEvidence& row, CountParts& parts) {
  for (const StepEvidence& e : row.rounds) {
    for (const DetailSteps* step : steps_of(e, Mode::kSynced)) {
      const std::vector<Bucket>& buckets = step->ranks[0].buckets;
      if (static_cast<int>(buckets.size()) <= parts.buckets) continue;
      parts.buckets = static_cast<int>(buckets.size());
      parts.last_bucket_bytes = buckets.back().bytes;
      parts.bytes = 0;
      for (const Bucket& bucket : buckets) parts.bytes += bucket.bytes;
    }
    if (parts.bytes == 0 && e.ddp && e.ranks.size() > 1) parts.bytes = e.gradient_bytes;
  }
}

double mean_over(const std::vector<RoundParts>& rounds,
                 const std::function<double(const RoundParts&)>& value) {
  double sum = 0;
  for (const RoundParts& round : rounds) sum += value(round);
  return sum / static_cast<double>(rounds.size());
}

std::vector<Lost> mean_parts(const std::vector<RoundParts>& rounds) {
  std::vector<Lost> parts;
  for (size_t i = 0; i + 1 < kParts; ++i) {
    std::vector<Measured> values;
    for (const RoundParts& round : rounds) values.push_back(round.parts[i]);
    const Measured all = mean_over_rounds(values);
    parts.push_back({static_cast<LossPart>(i), all.value, all.error});
  }
  return parts;
}

CountParts described(const RowEvidence& row) {
  CountParts parts;
  parts.devices = row.devices;
  parts.model = row.model;
  parts.mode = row.mode;
  parts.backend = row.backend;
  return parts;
}

CountParts count_parts(const std::vector<RowEvidence>& rows, const RowEvidence& row,
                       const RowEvidence* baseline) {
  CountParts parts = described(row);
  parts.refused = refusal_of(row, baseline);
  if (row.rounds.empty() || baseline == nullptr || baseline->rounds.empty()) return parts;
  const std::vector<Measured> ideals = ideals_of(rows, row, *baseline);
  std::vector<RoundParts> rounds;
  for (size_t i = 0; i < row.rounds.size(); ++i)
    rounds.push_back(
        round_parts(row.rounds[i], ideals[i], machinery_on_one_rank(rows, row, ideals[i])));
  parts.step = mean_over(rounds, [](const RoundParts& r) { return r.step; });
  parts.ideal = mean_over(rounds, [](const RoundParts& r) { return r.ideal.value; });
  std::vector<Measured> threads;
  for (const RoundParts& round : rounds) threads.push_back(round.threads);
  parts.threads = mean_over_rounds(threads);
  parts.remainder = row.rounds[0].ranks.size() > 1 && !in_mode(row.rounds[0], Mode::kAlone, useful);
  parts.slowest = slowest_of(rounds);
  add_buckets(row, parts);
  if (parts.slowest.extra < kMinPart * parts.step) parts.slowest = {};
  set_parts(mean_parts(rounds), parts);
  return parts;
}

}  // namespace

const char* name_of(LossPart part) { return kNames[index_of(part)]; }
const char* word_of(LossPart part) { return kWords[index_of(part)]; }

const Lost& CountParts::of(LossPart part) const {
  static constexpr Lost kNone;
  const auto found = std::ranges::find(parts, part, &Lost::part);
  return found == parts.end() ? kNone : *found;
}

void set_parts(std::vector<Lost> parts, CountParts& count) {
  Lost rest{LossPart::kRest, count.lost()};
  for (Lost& part : parts) rest.seconds -= part.seconds = std::max(0.0, part.seconds);
  if (count.refused.empty() && std::abs(rest.seconds) > kMaxRest * count.step)
    count.refused = fmt::format("the parts are {} {} than the lost time of a step of {}",
                                format_seconds(std::abs(rest.seconds)),
                                rest.seconds > 0 ? "less" : "more", format_seconds(count.step));
  double squares = 0;
  std::erase_if(parts, [&](const Lost& part) {
    if (part.seconds >= std::max(kNoiseErrors * part.error, kMinPart * count.step)) return false;
    rest.seconds += part.seconds;
    squares += part.error * part.error;
    return true;
  });
  rest.error = std::sqrt(squares);
  std::ranges::stable_sort(parts, std::ranges::greater(), &Lost::seconds);
  parts.push_back(rest);
  count.parts = std::move(parts);
}

void set_on_one(const CountParts& one, std::vector<CountParts>& rows) {
  for (CountParts& parts : rows) {
    const bool same = parts.devices == one.devices && parts.mode == one.mode;
    for (Lost& lost : parts.parts)
      lost.on_one = same ? lost.seconds
                         : std::clamp(one.of(lost.part).seconds, 0.0, std::max(0.0, lost.seconds));
  }
}

std::vector<CountParts> parts_of(const std::vector<RowEvidence>& rows) {
  const auto baseline = std::ranges::find(rows, true, &RowEvidence::baseline);
  const RowEvidence* const one = baseline == rows.end() ? nullptr : &*baseline;
  std::vector<CountParts> all;
  for (const RowEvidence& row : rows) all.push_back(count_parts(rows, row, one));
  if (one != nullptr)
    set_on_one(CountParts(all[static_cast<size_t>(baseline - rows.begin())]), all);
  return all;
}

const Lost* cause_of(const CountParts& parts) {
  if (!parts.refused.empty() || parts.parts.empty()) return nullptr;
  const Lost& first = parts.parts.front();
  const double least = std::max(kNoiseErrors * first.error, kMinCause * parts.step);
  return first.part != LossPart::kRest && first.seconds >= least ? &first : nullptr;
}

}  // namespace howmany::reports
