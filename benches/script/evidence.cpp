// SPDX-License-Identifier: Apache-2.0
#include "benches/script/evidence.h"

#include <algorithm>
#include <set>
#include <string>

#include "core/base/statistics.h"

namespace howmany::benches {
namespace {

using Json = nlohmann::ordered_json;
constexpr double kLeastQuantile = 0.1, kMostQuantile = 0.9;  // of the steps that count
constexpr double kNoticeableStart = 0.02;                    // of a step
constexpr const char* kSettle = "settle";                    // the mode of steps that do not count
constexpr size_t kMostSpans = 2000;                          // of a step

const RankStep& step_of(const RankRecord& rank, int64_t index) {
  return rank.steps[static_cast<size_t>(index)];
}

// The same for all ranks.
std::vector<int64_t> counted_steps(const std::vector<RankRecord>& ranks, int64_t first,
                                   int64_t last, bool all) {
  std::vector<double> seconds;
  for (int64_t i = first; i <= last; ++i) {
    double slowest = 0;
    for (const RankRecord& rank : ranks) slowest = std::max(slowest, step_of(rank, i).seconds);
    seconds.push_back(slowest);
  }
  const double least = quantile(seconds, kLeastQuantile), most = quantile(seconds, kMostQuantile);
  std::vector<int64_t> counted;
  for (int64_t i = first; i <= last; ++i) {
    const double one = seconds[static_cast<size_t>(i - first)];
    if (all || (one >= least && one <= most)) counted.push_back(i);
  }
  return counted;
}

Json times_json(const RankRecord& rank, const std::vector<int64_t>& steps) {
  RankPhases sum;
  double seconds = 0;
  for (const int64_t index : steps) {
    const RankStep& step = step_of(rank, index);
    seconds += step.seconds;
    sum.data += step.phases.data;
    sum.epochs += step.phases.epochs;
    sum.outside += step.phases.outside;
    sum.backward += step.phases.backward;
    sum.optimizer += step.phases.optimizer;
    sum.blocked += step.phases.blocked;
  }
  const auto count = static_cast<double>(steps.size());
  return {{"step_s", seconds / count},          {"data_s", sum.data / count},
          {"epochs_s", sum.epochs / count},     {"outside_s", sum.outside / count},
          {"backward_s", sum.backward / count}, {"optimizer_s", sum.optimizer / count},
          {"blocked_s", sum.blocked / count}};
}

Json detail_json(const RankRecord& rank, const RankDetail& detail) {
  const RankStep& step = step_of(rank, detail.step);
  const RankPhases& phases = step.phases;
  const double train = step.seconds - phases.data - phases.epochs - phases.outside - detail.own;
  Json json = {{"train_s", std::max(0.0, train)},
               {"backward_s", std::max(0.0, phases.backward - detail.own)},
               {"blocked_s", phases.blocked},
               {"began_s", detail.began}};
  if (detail.mode != "synced") return json;
  Json spans = Json::array(), buckets = Json::array();
  for (const RankSpan& span : detail.spans)
    if (spans.size() < kMostSpans) spans.push_back({span.phase, span.at, span.seconds});
  for (const RankBucket& bucket : detail.buckets)
    buckets.push_back({bucket.bytes, bucket.at, bucket.ended});
  json["spans"] = std::move(spans);
  json["buckets"] = std::move(buckets);
  return json;
}

bool starts_an_epoch(const std::vector<RankRecord>& ranks, int64_t index) {
  return std::ranges::any_of(ranks, [&](const RankRecord& rank) {
    const RankStep& step = step_of(rank, index);
    return step.phases.epochs > kNoticeableStart * step.seconds;
  });
}

// The steps that all ranks took in the same mode, without starts of epochs.
Json details_json(const std::vector<RankRecord>& ranks) {
  Json steps = Json::array();
  size_t count = ranks.front().details.size();
  for (const RankRecord& rank : ranks) count = std::min(count, rank.details.size());
  for (size_t i = 0; i < count; ++i) {
    const RankDetail& first = ranks.front().details[i];
    const bool same = std::ranges::all_of(ranks, [&](const RankRecord& rank) {
      return rank.details[i].mode == first.mode && rank.details[i].step == first.step;
    });
    if (!same || first.mode == kSettle || starts_an_epoch(ranks, first.step)) continue;
    Json step = {{"mode", first.mode}, {"ranks", Json::array()}};
    for (const RankRecord& rank : ranks)
      step["ranks"].push_back(detail_json(rank, rank.details[i]));
    steps.push_back(std::move(step));
  }
  return steps;
}

// Returns the steps from one long step to the next: the median; 0 if none recurs.
int64_t cycle_of(const RankRecord& rank) {
  std::vector<double> lengths;
  for (const RankCycle& cycle : rank.cycles)
    lengths.push_back(static_cast<double>(cycle.last - cycle.first + 1));
  return lengths.empty() ? 0 : static_cast<int64_t>(quantile(lengths, 0.5));
}

size_t hosts_of(const std::vector<RankRecord>& ranks) {
  std::set<std::string> hosts;
  for (const RankRecord& rank : ranks) hosts.insert(rank.host);
  return hosts.size();
}

double samples_of(const RankRecord& rank, const std::vector<int64_t>& steps) {
  double sum = 0;
  for (const int64_t index : steps) {
    const RankStep& step = step_of(rank, index);
    sum += static_cast<double>(step.samples > 0 ? step.samples : step.forwarded);
  }
  return sum / static_cast<double>(steps.size());
}

}  // namespace

Json evidence_json(const std::vector<RankRecord>& ranks, int64_t first, int64_t last, bool all) {
  const RankRecord& one = ranks.front();
  const std::vector<int64_t> steps = counted_steps(ranks, first, last, all);
  const RankDdp ddp = one.ddp.value_or(RankDdp{});
  Json times = Json::array();
  for (const RankRecord& rank : ranks) times.push_back(times_json(rank, steps));
  const double step = times.front()["step_s"].get<double>();
  return {{"gpu", one.device == "cuda"},
          {"ddp", one.parallel == "ddp"},
          {"hosts", hosts_of(ranks)},
          {"recording", step > 0 ? one.recording / step : 0.0},
          {"cores", one.cores},
          {"threads", one.threads},
          {"timed", last - first + 1},
          {"cycle", cycle_of(one)},
          {"samples", samples_of(one, steps)},
          {"gradient_bytes", one.gradient_bytes},
          {"workers", one.workers ? Json(*one.workers) : Json(nullptr)},
          {"persistent_workers", one.persistent_workers},
          {"loader_cpu_s", one.loader_cpu},
          {"bucket_view", ddp.bucket_view},
          {"bucket_cap", ddp.bucket_cap},
          {"own_hook", one.own_hook},
          {"ranks", std::move(times)},
          {"steps", details_json(ranks)}};
}

}  // namespace howmany::benches
