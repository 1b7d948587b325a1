// SPDX-License-Identifier: Apache-2.0
#include "reports/why/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "core/base/statistics.h"
#include "reports/why/estimate.h"

namespace howmany::reports {
namespace {

constexpr double kMinGain = 0.02;  // of a step
constexpr double kMebibyte = 1 << 20;
constexpr double kSameBytes = 1.5;   // ratio of the largest bucket to the smallest
constexpr double kMostOfWait = 0.9;  // that more workers save
constexpr int kMaxWorkers = 32;

// A bucket of a recorded step. `seconds` is its own exchange, without the wait for the one before.
struct OwnBucket {
  double bytes = 0, at = 0, seconds = 0;
};

std::vector<OwnBucket> own_buckets(const DetailStep& step) {
  std::vector<OwnBucket> all;
  double ended = 0;
  for (const Bucket& bucket : step.buckets) {
    const double began = std::max(bucket.at, ended);
    all.push_back({bucket.bytes, bucket.at, std::max(0.0, bucket.ended - began)});
    ended = std::max(ended, bucket.ended);
  }
  return all;
}

double end_of(const std::vector<OwnBucket>& buckets) {
  double end = 0;
  for (const OwnBucket& bucket : buckets) end = std::max(bucket.at, end) + bucket.seconds;
  return end;
}

// The rest of the step follows the end of the last bucket.
double replayed(const DetailStep& step, const std::vector<OwnBucket>& changed) {
  return step.train + end_of(changed) - end_of(own_buckets(step));
}

double seconds_of(const BucketLine& line, double bytes) {
  return line.per_call + line.per_byte * bytes;
}

// Returns how much slower the buckets of this step are than the line.
double over_line(const BucketLine& line, const std::vector<OwnBucket>& buckets) {
  double own = 0, expected = 0;
  for (const OwnBucket& bucket : buckets) {
    own += bucket.seconds;
    expected += seconds_of(line, bucket.bytes);
  }
  return expected > 0 ? own / expected : 1;
}

// Joins buckets until each has `cap` bytes.
std::vector<OwnBucket> joined(const std::vector<OwnBucket>& buckets, double cap) {
  std::vector<OwnBucket> all = {buckets[0]};
  for (size_t i = 1; i < buckets.size(); ++i) {
    if (all.size() == 1 || all.back().bytes >= cap) {
      all.push_back(buckets[i]);
      continue;
    }
    all.back().bytes += buckets[i].bytes;
    all.back().at = std::max(all.back().at, buckets[i].at);
  }
  return all;
}

// Cuts buckets into equal ones of about `cap` bytes. Their gradients are ready one after the other.
std::vector<OwnBucket> cut(const std::vector<OwnBucket>& buckets, double cap) {
  std::vector<OwnBucket> all = {buckets[0]};
  for (size_t i = 1; i < buckets.size(); ++i) {
    const double pieces = std::clamp(std::round(buckets[i].bytes / cap), 1.0, 1000.0);
    const double before = std::min(buckets[i - 1].at, buckets[i].at);
    for (double piece = 1; piece <= pieces; ++piece)
      all.push_back(
          {buckets[i].bytes / pieces, std::lerp(before, buckets[i].at, piece / pieces), 0});
  }
  return all;
}

using SavedSeconds = std::optional<Measured>;

// Returns the gain over the recorded steps on their slowest ranks, mean over rounds.
template <typename Replay>
SavedSeconds saved_by(const RowEvidence& row, const Replay& replay) {
  std::vector<Measured> rounds;
  for (const StepEvidence& e : row.rounds) {
    const BucketLine line = bucket_line(e);
    std::vector<double> gains;
    for (const DetailSteps* step : steps_of(e, Mode::kSynced)) {
      const DetailStep& rank = step->ranks[least_blocked(*step)];
      if (!rank.buckets.empty()) gains.push_back(rank.train - replay(rank, line));
    }
    if (!gains.empty()) rounds.push_back(median_of(gains));
  }
  if (rounds.empty()) return std::nullopt;
  return mean_over_rounds(rounds);
}

// Returns the mean over rounds of a value that every round has.
template <typename Value>
SavedSeconds saved_in(const RowEvidence& row, const Value& value) {
  std::vector<Measured> rounds;
  for (const StepEvidence& e : row.rounds) {
    const SavedSeconds one = value(e);
    if (!one) return std::nullopt;
    rounds.push_back(*one);
  }
  return mean_over_rounds(rounds);
}

Measured part_of(const CountParts& parts, LossPart part) {
  const Lost& lost = parts.of(part);
  return {lost.seconds, lost.error};
}

class Helps {
 public:
  Helps(const CountParts& parts, const RowEvidence& row)
      : parts_(parts), row_(row), e_(row.rounds[0]) {}

  std::vector<Help> all() {
    add_loader();
    add_ranks();
    if (e_.ddp && e_.ranks.size() > 1) add_exchange();
    if (e_.ddp) add_ddp();
    std::ranges::stable_sort(helps_, std::ranges::greater(), &Help::gain);
    return helps_;
  }

 private:
  void add(const char* what, const SavedSeconds& saved, std::string paste, bool measured = false) {
    if (!saved || saved->value < kMinGain * parts_.step ||
        saved->value < kNoiseErrors * saved->error)
      return;
    helps_.push_back({what, std::move(paste), saved->value, saved->error, measured});
  }

  // Seconds that a loader with `workers` would save.
  double saved_with(int workers, double batch, double wait) const {
    const double left = std::max(0.0, batch / workers - (parts_.step - wait));
    return wait - left - (e_.cores > 1 ? 0 : e_.loader_cpu);
  }

  // Workers do not slow the training if they have other cores, or sleep, or read.
  int most_workers(double batch) const {
    const bool sleeps = *e_.workers == 0 && e_.loader_cpu < batch / 2;
    if (sleeps) return kMaxWorkers;
    return e_.cores > 1 ? std::min(kMaxWorkers, e_.cores) : 0;
  }

  void add_workers() {
    const Measured wait = part_of(parts_, LossPart::kData);
    const double batch = *e_.workers > 0 ? *e_.workers * parts_.step : wait.value;
    const int most = most_workers(batch);
    if (most <= *e_.workers || wait.value <= 0) return;
    int workers = *e_.workers + 1;
    const double best = saved_with(most, batch, wait.value);
    while (workers < most && saved_with(workers, batch, wait.value) < kMostOfWait * best) ++workers;
    add("more_workers", Measured{saved_with(workers, batch, wait.value), wait.error},
        fmt::format("DataLoader(..., num_workers={})", workers));
  }

  void add_loader() {
    if (!e_.workers) return;
    add_workers();
    if (*e_.workers > 0 && !e_.persistent_workers)
      add("persistent_workers", part_of(parts_, LossPart::kEpochs),
          "DataLoader(..., persistent_workers=True)");
  }

  void add_ranks() {
    add("less_outside", 0.5 * part_of(parts_, LossPart::kOutside),
        "Validate, log and save half as often");
    add("equal_ranks", part_of(parts_, LossPart::kSlowest),
        parts_.slowest.always() && parts_.slowest.rank >= 0
            ? fmt::format("Give rank {} as much work as the others", parts_.slowest.rank)
            : "Give all ranks batches of the same work");
    add("fewer_threads", saved_threads(),
        fmt::format("torch.set_num_threads({})", std::max(1, e_.cores)), true);
  }

  // Threads on one core delay now one rank, now the other: waits in turn are theirs too.
  SavedSeconds saved_threads() const {
    if (!(parts_.threads.value > 0)) return std::nullopt;
    if (parts_.slowest.always()) return parts_.threads;
    return parts_.threads + part_of(parts_, LossPart::kSlowest);
  }

  void add_bf16() {
    const SavedSeconds tried = saved_in(row_, [](const StepEvidence& e) -> SavedSeconds {
      const auto synced = in_mode(e, Mode::kSynced, train), bf16 = in_mode(e, Mode::kBf16, train);
      if (!synced || !bf16) return std::nullopt;
      return *synced - *bf16;
    });
    add("bf16_gradients", tried ? tried : replayed_as({.bytes = 0.5}),
        "from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import "
        "bf16_compress_hook; model.register_comm_hook(None, bf16_compress_hook)",
        tried.has_value());
  }

  void add_exchange() {
    add("larger_batch",
        0.5 * (part_of(parts_, LossPart::kExchange) + part_of(parts_, LossPart::kMachinery)),
        "with model.no_sync(): loss.backward()  # in every other batch, without optimizer.step()");
    if (e_.own_hook) return;
    add_bf16();
    if (e_.gpu || e_.hosts > 1)
      add("faster_link", replayed_as({.per_byte = 0.1}), "A link with ten times the bandwidth");
    add_caps();
  }

  // Adds the best cap, in powers of two of the one of the script.
  void add_caps() {
    if (!(e_.bucket_cap > 0) || bucket_line(e_).per_call == 0) return;
    SavedSeconds best;
    double best_cap = 0;
    for (double factor = 1.0 / 16; factor <= 16; factor *= 2) {
      const double cap = factor * e_.bucket_cap;
      if (factor == 1 || cap < kMebibyte) continue;
      const SavedSeconds saved =
          saved_by(row_, [&](const DetailStep& step, const BucketLine& line) {
            return replayed_with_cap(step, line, cap);
          });
      if (!saved || (best && saved->value <= best->value)) continue;
      best = saved;
      best_cap = cap;
    }
    add(best_cap > e_.bucket_cap ? "fewer_buckets" : "more_buckets", best,
        fmt::format("DistributedDataParallel(..., bucket_cap_mb={:.0f})", best_cap / kMebibyte));
  }

  SavedSeconds replayed_as(const ExchangeChange& change) const {
    return saved_by(row_, [&](const DetailStep& step, const BucketLine& line) {
      return replayed_step(step, line, change);
    });
  }

  void add_ddp() {
    if (!e_.bucket_view)
      add("bucket_view", saved_copies(),
          "DistributedDataParallel(..., gradient_as_bucket_view=True)");
  }

  // Copies from buckets at the end of backward. Those into them stay if zero_grad() sets gradients
  // to None, its default.
  SavedSeconds saved_copies() const {
    const double most = parts_.of(LossPart::kMachinery).seconds;
    return saved_in(row_, [&](const StepEvidence& e) -> SavedSeconds {
      if (steps_of(e, Mode::kNoop).empty()) return std::nullopt;
      return Measured{std::min(end_of_noop(e), most), 0};
    });
  }

  const CountParts& parts_;
  const RowEvidence& row_;
  const StepEvidence& e_;
  std::vector<Help> helps_;
};

// Least squares. Neither factor is negative.
BucketLine fitted(const std::map<double, double>& seconds_of_bytes) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [bytes, seconds] : seconds_of_bytes) {
    ++n;
    x += bytes;
    y += seconds;
    xx += bytes * bytes;
    xy += bytes * seconds;
  }
  const double slope = (n * xy - x * y) / (n * xx - x * x);
  if (!(slope > 0)) return {y / n, 0};
  const double start = (y - slope * x) / n;
  return start > 0 ? BucketLine{start, slope} : BucketLine{0, xy / xx};
}

}  // namespace

BucketLine bucket_line(const StepEvidence& evidence) {
  std::map<double, std::vector<double>> all;
  for (const DetailSteps* step : steps_of(evidence, Mode::kSynced))
    for (const OwnBucket& bucket : own_buckets(step->ranks[least_blocked(*step)]))
      if (bucket.bytes > 0) all[bucket.bytes].push_back(bucket.seconds);
  if (all.empty()) return {};
  std::map<double, double> medians;
  for (const auto& [bytes, seconds] : all) medians[bytes] = median(seconds);
  if (medians.rbegin()->first >= kSameBytes * medians.begin()->first) return fitted(medians);
  double bytes = 0, seconds = 0;
  for (const auto& [of, median] : medians) {
    bytes += of;
    seconds += median;
  }
  return {0, seconds / bytes};
}

double replayed_step(const DetailStep& step, const BucketLine& line, const ExchangeChange& change) {
  std::vector<OwnBucket> buckets = own_buckets(step);
  const BucketLine other{line.per_call, line.per_byte * change.per_byte};
  for (OwnBucket& bucket : buckets)
    if (const double before = seconds_of(line, bucket.bytes); before > 0)
      bucket.seconds *= seconds_of(other, bucket.bytes * change.bytes) / before;
  return replayed(step, buckets);
}

double replayed_with_cap(const DetailStep& step, const BucketLine& line, double cap) {
  std::vector<OwnBucket> before = own_buckets(step);
  if (before.empty()) return step.train;
  std::vector<OwnBucket> after = cut(joined(before, cap), cap);
  const double slower = over_line(line, before);
  for (std::vector<OwnBucket>* buckets : {&before, &after})
    for (OwnBucket& bucket : *buckets) bucket.seconds = slower * seconds_of(line, bucket.bytes);
  return step.train + end_of(after) - end_of(before);
}

std::vector<Help> help_for(const CountParts& parts, const RowEvidence& row) {
  if (!parts.refused.empty() || row.rounds.empty()) return {};
  return Helps(parts, row).all();
}

}  // namespace howmany::reports
