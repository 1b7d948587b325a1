// SPDX-License-Identifier: Apache-2.0
#include "benches/script/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "benches/script/evidence.h"
#include "benches/script/pace.h"
#include "benches/script/record.h"
#include "core/base/error.h"
#include "core/base/schema/marks.h"
#include "core/base/schema/metrics.h"
#include "core/base/statistics.h"

namespace howmany::benches {
namespace {

constexpr double kMostUneven = 1.1;   // samples of the ranks
constexpr double kNoticeable = 0.05;  // share of the time
constexpr const char* kNoSamples =
    "[script] the batches do not show how many samples they have; give --samples-per-step";

void refuse_failed(const std::vector<RankRecord>& records, const ScriptEnd& ended) {
  for (const RankRecord& record : records)
    HM_ENSURE(record.failed.empty(), "[script] the hook failed in rank {}{}", record.rank,
              ended.quote ? ": " + record.failed : "");
}

constexpr int64_t kMinStepsAtEnd = 5;

std::string no_step(const ScriptEnd& ended, const std::string& folder) {
  const std::string said =
      ended.last_line.empty() ? "" : fmt::format(" Its last line: {}", ended.last_line);
  const char* const why =
      read_process(folder).python.empty()
          ? "Needed: torch 2.5 or later without TORCH_DEVICE_BACKEND_AUTOLOAD=0, or python -m "
            "howmany_hook SCRIPT"
          : "It imported torch, and no optimizer stepped and no backward pass ran";
  return fmt::format(
      "[script] the command ended with code 0 before a training step of PyTorch was seen.{} {}",
      said, why);
}

// Completes the records of a script that ended by itself with code 0 with the steps that rank 0
// timed until then.
void take_steps_until_the_end(std::vector<RankRecord>& records, const ScriptEnd& ended) {
  if (!ended.ok || records.empty() || !records[0].ended || records[0].complete) return;
  const int64_t first = records[0].first;
  int64_t last = records[0].last;
  for (const RankRecord& record : records)
    last = std::min(last, static_cast<int64_t>(record.steps.size()) - 1);
  if (last - first + 1 < kMinStepsAtEnd) return;
  for (RankRecord& record : records) {
    if (!record.ended || record.complete) return;
    record.first = first;
    record.last = last;
    std::erase_if(record.cycles, [&](const RankCycle& cycle) { return cycle.last > last; });
  }
  for (RankRecord& record : records) record.complete = true;
}

void refuse_before_first_step(const std::vector<RankRecord>& records, const ScriptEnd& ended,
                              const std::string& folder) {
  HM_ENSURE(!records.empty() || ended.ok, "[script] before its first step the command {}",
            ended.how);
  HM_ENSURE(!records.empty(), "{}", no_step(ended, folder));
}

void refuse_incomplete(const std::vector<RankRecord>& records, const ScriptEnd& ended,
                       const std::string& folder) {
  refuse_before_first_step(records, ended, folder);
  for (const RankRecord& record : records) {
    HM_ENSURE(record.ended,
              "[script] rank {} took its first step, but no measurement was "
              "completed; the command {}",
              record.rank, ended.how);
    HM_ENSURE(record.complete || ended.ok,
              "[script] after {} steps, before enough were timed, the "
              "command {}",
              record.steps.size(), ended.how);
    HM_ENSURE(
        record.complete,
        "[script] the script ended by itself after {} steps, before enough were timed. Give it "
        "more data or epochs{}",
        record.steps.size(),
        record.world > 1 ? fmt::format(": each of {0} ranks sees 1/{0} of the data", record.world)
                         : "");
  }
}

// Ranks are in order. Every rank of the group must have recorded the same steps, once.
void refuse_other_world(const std::vector<RankRecord>& records, Expected expected) {
  const RankRecord& first = records.front();
  const auto count = static_cast<int64_t>(records.size());
  HM_ENSURE(first.world == expected.world,
            "[script] the script formed a group of {} rank{}, not of {}; {}", first.world,
            first.world == 1 ? "" : "s", expected.world,
            first.world == 1 ? "does it call init_process_group?"
                             : "is the number written in the script?");
  HM_ENSURE(count == expected.processes, "[script] {} of {} ranks recorded their steps", count,
            expected.processes);
  int64_t rank = 0;
  for (const RankRecord& record : records)
    HM_ENSURE(record.rank == rank++ && record.first == first.first && record.last == first.last,
              "[script] the ranks recorded different steps");
}

struct Window {
  int64_t first = 0, last = 0;
};

// The whole cycles, or all timed steps.
Window timed_window(const RankRecord& record) {
  if (record.cycles.empty()) return {record.first, record.last};
  return {record.cycles.front().first, record.cycles.back().last};
}

// Mean over the steps of a rank.
double mean_of(const RankRecord& record, Window window, double RankStep::*member) {
  double sum = 0;
  for (int64_t i = window.first; i <= window.last; ++i)
    sum += record.steps[static_cast<size_t>(i)].*member;
  return sum / static_cast<double>(window.last - window.first + 1);
}

// Mean over ranks of the share of a step.
double share_of(const std::vector<RankRecord>& records, Window window, double RankStep::*member) {
  double sum = 0;
  for (const RankRecord& record : records)
    sum += mean_of(record, window, member) / mean_of(record, window, &RankStep::seconds);
  return sum / static_cast<double>(records.size());
}

// True if ranks fetch different numbers of samples and all know the inputs of the model. Rank 0 may
// read the batches of all ranks, as with accelerate's dispatch_batches.
bool counts_inputs(const std::vector<RankRecord>& records, Window window) {
  int64_t most = 0, fewest = std::numeric_limits<int64_t>::max();
  for (const RankRecord& record : records) {
    int64_t fetched = 0, forwarded = 0;
    for (int64_t i = window.first; i <= window.last; ++i) {
      fetched += record.steps[static_cast<size_t>(i)].samples;
      forwarded += record.steps[static_cast<size_t>(i)].forwarded;
    }
    if (forwarded == 0) return false;
    most = std::max(most, fetched);
    fewest = std::min(fewest, fetched);
  }
  return static_cast<double>(most) > kMostUneven * static_cast<double>(fewest);
}

// `cycles` stays empty.
TimedSteps over_ranks(const std::vector<RankRecord>& records, Window window) {
  TimedSteps steps;
  const bool inputs = counts_inputs(records, window);
  for (int64_t i = window.first; i <= window.last; ++i) {
    double slowest = 0, busy = 0;
    int64_t samples = 0;
    for (const RankRecord& record : records) {
      const RankStep& step = record.steps[static_cast<size_t>(i)];
      slowest = std::max(slowest, step.seconds);
      busy = std::max(busy, step.seconds - step.wait);
      samples += inputs ? step.forwarded : step.samples;
    }
    steps.seconds.push_back(slowest);
    steps.busy.push_back(busy);
    steps.samples.push_back(static_cast<double>(samples));
  }
  return steps;
}

// True if every rank called no collective that can have exchanged gradients or averaged parameters,
// and its gradients and parameters are others than those of rank 0.
bool exchanges_nothing(const std::vector<RankRecord>& records) {
  const RankRecord& first = records.front();
  if (!first.exchange || records.size() < 2) return false;
  for (const RankRecord& record : records) {
    if (!record.exchange || record.parameters != first.parameters) return false;
    const RankExchange& exchange = *record.exchange;
    if (exchange.within > 0 || 2 * exchange.elsewhere >= exchange.steps) return false;
  }
  for (const auto& [step, sums] : first.exchange->sums)
    for (size_t i = 1; i < records.size(); ++i) {
      const auto other = records[i].exchange->sums.find(step);
      if (other == records[i].exchange->sums.end()) return false;
      if (other->second.first == sums.first || other->second.second == sums.second) return false;
    }
  return !first.exchange->sums.empty();
}

// The first step begins when torch is imported: it is part of the start.
double trained_seconds(const RankRecord& record) {
  double sum = 0;
  for (size_t i = 1; i < record.steps.size(); ++i) sum += record.steps[i].seconds;
  return sum;
}

std::map<std::string, double> counters_of(const std::vector<RankRecord>& records, Window timed) {
  const RankRecord& first = records.front();
  std::map<std::string, double> counters = {
      {metric::kGradientBytes, first.gradient_bytes},
      {metric::kWarmupSteps, static_cast<double>(first.first)},
      {metric::kRanks, static_cast<double>(records.size())}};
  if (first.device == "cpu") {  // on a GPU, the host's times are not those of the work
    counters[metric::kBackwardFraction] = share_of(records, timed, &RankStep::backward);
    if (!first.optimizer_in_backward)
      counters[metric::kOptimizerFraction] = share_of(records, timed, &RankStep::optimizer);
  }
  if (first.loader) counters[metric::kDataWaitFraction] = share_of(records, timed, &RankStep::wait);
  double peak = 0;
  for (const RankRecord& record : records) peak = std::max(peak, record.peak_bytes);
  counters[metric::kPeakBytesPerDevice] = peak;
  counters[metric::kCycles] = static_cast<double>(first.cycles.size());
  if (first.wrapped) counters[metric::kWrappedFraction] = *first.wrapped;
  for (const auto& [key, value] : first.memory) counters[key] = value;
  return counters;
}

std::vector<std::string> flags_of(const std::vector<RankRecord>& records, const TimedSteps& steps) {
  const RankRecord& first = records.front();
  std::vector<std::string> flags;
  if (first.by_backward) flags.emplace_back(mark::kByBackward);
  if (!first.loader) flags.emplace_back(mark::kNoDataWait);
  if (exchanges_nothing(records)) flags.emplace_back(mark::kNoExchange);
  if (still_changed(steps.samples)) flags.emplace_back(mark::kNotSettled);
  if (first.alone > kNoticeable) flags.emplace_back(mark::kNoWholeCycle);
  if (first.optimizer_in_backward) flags.emplace_back(mark::kOptimizerInBackward);
  return flags;
}

std::vector<LoggedStep> logged_of(const RankRecord& record) {
  std::map<int64_t, LoggedStep> steps;
  for (const RankCollective& one : record.collectives) {
    LoggedStep& step = steps[one.step];
    step.seconds = record.steps[static_cast<size_t>(one.step)].seconds;
    step.collectives.push_back(one.call);
  }
  std::vector<LoggedStep> all;
  for (auto& [index, step] : steps) all.push_back(std::move(step));
  return all;
}

// Throws Error unless every rank has the same turns.
LoaderTurn turn_over_ranks(const std::vector<RankRecord>& records, size_t index) {
  LoaderTurn all;
  all.turn = records.front().turns[index];
  const Window window{all.turn.first, all.turn.last};
  all.turn.alone_samples_per_s.reset();
  for (const RankRecord& record : records) {
    HM_ENSURE(index < record.turns.size() && record.turns[index].first == window.first &&
                  record.turns[index].last == window.last,
              "[script] the ranks recorded different turns");
    const RankTurn& one = record.turns[index];
    all.turn.first_batch_s = std::max(all.turn.first_batch_s, one.first_batch_s);
    all.turn.bytes_per_worker = std::max(all.turn.bytes_per_worker, one.bytes_per_worker);
    if (one.alone_samples_per_s)
      all.turn.alone_samples_per_s =
          all.turn.alone_samples_per_s.value_or(0) + *one.alone_samples_per_s;
  }
  const TimedSteps steps = over_ranks(records, window);
  all.seconds = steps.seconds;
  all.samples = std::accumulate(steps.samples.begin(), steps.samples.end(), 0.0);
  all.stall_fraction = share_of(records, window, &RankStep::wait);
  return all;
}

}  // namespace

ScriptSteps read_ranks(const std::string& folder, Expected expected, const ScriptEnd& ended) {
  std::vector<RankRecord> records = read_records(folder);
  const bool complete = std::ranges::all_of(records, &RankRecord::complete);
  take_steps_until_the_end(records, ended);
  refuse_failed(records, ended);
  refuse_incomplete(records, ended, folder);
  const auto processes = static_cast<int>(records.size());
  if (expected.any()) {
    const auto world = static_cast<int>(records.front().world);
    expected = {world, world};
    if (world == 1) records.resize(1);  // without a group, each process trains alone
  }
  refuse_other_world(records, expected);
  const RankRecord& first = records.front();
  ScriptSteps steps;
  steps.ranks = expected.world;
  steps.processes = processes;
  steps.parallel = first.parallel;
  steps.backend = first.backend;
  steps.threads = first.threads;
  steps.device = first.device;
  steps.torch = first.torch;
  TimedSteps all = over_ranks(records, {first.first, first.last});
  for (const RankCycle& cycle : first.cycles)
    all.cycles.push_back({static_cast<size_t>(cycle.first - first.first),
                          static_cast<size_t>(cycle.last - first.first)});
  steps.logged = logged_of(first);
  if (steps.logged.empty()) {
    const Window timed = timed_window(first);
    steps.why = evidence_json(records, timed.first, timed.last, !first.cycles.empty());
  }
  const double shares = static_cast<double>(expected.world) / expected.processes;
  steps.global_batch = static_cast<int64_t>(std::llround(quantile(all.samples, 0.5) * shares));
  HM_ENSURE(steps.global_batch > 0, kNoSamples);
  steps.seconds = step_times(all, quantile(all.samples, 0.5));
  steps.counters = counters_of(records, timed_window(first));
  steps.counters[metric::kWallS] = ended.seconds;
  steps.counters[metric::kStartS] = std::max(0.0, ended.seconds - trained_seconds(first));
  if (const auto share = between_steps_fraction(all))
    steps.counters[metric::kBetweenStepsFraction] = *share;
  steps.flags = flags_of(records, all);
  if (!complete) steps.flags.emplace_back(mark::kEndedByItself);
  return steps;
}

ScriptSteps read_counted(const std::string& folder, const ScriptEnd& ended) {
  const std::vector<RankRecord> records = read_records(folder);
  refuse_failed(records, ended);
  refuse_before_first_step(records, ended, folder);
  const auto found = std::ranges::find_if(
      records, [](const RankRecord& record) { return !record.counted.is_null(); });
  HM_ENSURE(found != records.end(),
            "[script] it took its first step, but its operations were not counted; the command {}",
            ended.how);
  ScriptSteps steps;
  steps.seconds = {ended.seconds};
  steps.ranks = static_cast<int>(found->world);
  steps.parallel = found->parallel;
  steps.backend = found->backend;
  steps.device = found->device;
  steps.torch = found->torch;
  steps.counters[metric::kWallS] = ended.seconds;
  steps.counted = found->counted;
  return steps;
}

LoaderTurns read_turns(const std::string& folder, const ScriptEnd& ended) {
  const std::vector<RankRecord> records = read_records(folder);
  refuse_failed(records, ended);
  refuse_incomplete(records, ended, folder);
  const RankRecord& first = records.front();
  const int world = static_cast<int>(first.world);
  refuse_other_world(records, {world, world});
  HM_ENSURE(!first.turns.empty(),
            "[script] no batch came from a torch.utils.data.DataLoader, so there are no workers to "
            "change");
  LoaderTurns turns{static_cast<int>(records.size()), 0, first.device, {}};
  std::vector<double> batches;
  for (size_t i = 0; i < first.turns.size(); ++i) {
    turns.turns.push_back(turn_over_ranks(records, i));
    batches.push_back(turns.turns.back().samples /
                      static_cast<double>(turns.turns.back().seconds.size()));
  }
  turns.global_batch = static_cast<int64_t>(std::llround(quantile(batches, 0.5)));
  HM_ENSURE(turns.global_batch > 0, kNoSamples);
  return turns;
}

}  // namespace howmany::benches
