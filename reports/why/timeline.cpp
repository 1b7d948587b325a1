// SPDX-License-Identifier: Apache-2.0
#include "reports/why/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "core/base/perfetto.h"
#include "core/base/schema/samples.h"
#include "core/base/statistics.h"
#include "core/base/text/format.h"

namespace howmany::reports {
namespace {

constexpr double kSameClock = 1e-3, kDeviations = 5, kMaxTime = 1e9;

const char* title_of(Mode mode) {
  switch (mode) {
    case Mode::kSynced:
      return "step";
    case Mode::kNoop:
      return "step without exchange";
    case Mode::kAlone:
      return "step of the rank alone";
    case Mode::kNarrow:
      return "step with fewer threads";
    case Mode::kBf16:
      return "step with bf16 gradients";
  }
  return "step";
}

int64_t nanoseconds(double seconds) {
  return std::llround(1e9 * std::clamp(seconds, 0.0, kMaxTime));
}

double length_of(const DetailStep& step) {
  double end = step.train;
  for (const Span& span : step.spans) end = std::max(end, span.at + span.seconds);
  return end;
}

// The steps of one rank, and its clock.
class RankTrack {
 public:
  RankTrack(const StepEvidence& evidence, size_t rank, double origin)
      : evidence_(evidence), rank_(rank), shift_(clock_shift(evidence, rank)), origin_(origin) {}

  std::string name() const {
    const std::string name = fmt::format("rank {}", rank_);
    return shift_.seconds == 0
               ? name
               : fmt::format("{} (clock to {})", name, format_seconds(shift_.deviation));
  }
  double first() const {
    double first = std::numeric_limits<double>::infinity();
    each([&](const DetailStep& step, Mode /*mode*/) {
      first = std::min(first, step.began - shift_.seconds);
    });
    return first;
  }
  void add_phases(PerfettoTrack& track) const {
    each([&](const DetailStep& step, Mode mode) {
      track.add({time(step, 0), time(step, length_of(step)), "step", title_of(mode)});
      for (const Span& span : step.spans)
        track.add({time(step, span.at), time(step, span.at + span.seconds), "phase", span.what});
    });
  }
  void add_buckets(PerfettoTrack& track) const {
    each([&](const DetailStep& step, Mode /*mode*/) {
      double before = 0;
      for (const Bucket& bucket : step.buckets) {
        const double start = std::max(bucket.at, before);
        before = std::max(start, bucket.ended);
        track.add({time(step, start), time(step, before), "communication",
                   "all-reduce " + format_gigabytes(bucket.bytes), "bytes",
                   static_cast<uint64_t>(std::clamp(bucket.bytes, 0.0, 1e18))});
      }
    });
  }
  bool has_buckets() const {
    bool has = false;
    each([&](const DetailStep& step, Mode /*mode*/) { has = has || !step.buckets.empty(); });
    return has;
  }

 private:
  template <typename Visit>
  void each(Visit visit) const {
    for (const DetailSteps& steps : evidence_.steps)
      if (rank_ < steps.ranks.size()) visit(steps.ranks[rank_], steps.mode);
  }
  int64_t time(const DetailStep& step, double at) const {
    return nanoseconds(step.began - shift_.seconds - origin_ + at);
  }

  const StepEvidence& evidence_;
  const size_t rank_;
  const ClockShift shift_;
  const double origin_;
};

size_t rank_count(const StepEvidence& evidence) {
  size_t ranks = 0;
  for (const DetailSteps& steps : evidence.steps) ranks = std::max(ranks, steps.ranks.size());
  return ranks;
}

// The host of a GPU begins a step while the GPU works on the one before.
void follow_each_other(StepEvidence& evidence) {
  std::vector<double> ends(rank_count(evidence), -std::numeric_limits<double>::infinity());
  for (DetailSteps& steps : evidence.steps)
    for (size_t rank = 0; rank < steps.ranks.size(); ++rank) {
      DetailStep& step = steps.ranks[rank];
      step.began = std::max(step.began, ends[rank]);
      ends[rank] = step.began + length_of(step);
    }
}

// In the order of their times, an outer span before its inner ones.
StepEvidence in_order(StepEvidence evidence) {
  for (DetailSteps& steps : evidence.steps)
    for (DetailStep& step : steps.ranks) {
      std::ranges::stable_sort(step.spans, [](const Span& a, const Span& b) {
        return a.at != b.at ? a.at < b.at : a.seconds > b.seconds;
      });
      std::ranges::stable_sort(step.buckets, {}, &Bucket::ended);
    }
  std::ranges::stable_sort(evidence.steps, {}, [](const DetailSteps& steps) {
    return steps.ranks.empty() ? 0 : steps.ranks.front().began;
  });
  follow_each_other(evidence);
  return evidence;
}

}  // namespace

ClockShift clock_shift(const StepEvidence& evidence, size_t rank) {
  std::vector<double> differences;
  for (const DetailSteps& steps : evidence.steps) {
    if (rank >= steps.ranks.size()) continue;
    const DetailStep &mine = steps.ranks[rank], &first = steps.ranks.front();
    for (size_t i = 0; i < std::min(mine.buckets.size(), first.buckets.size()); ++i)
      differences.push_back(mine.began - first.began +
                            (mine.buckets[i].ended - first.buckets[i].ended));
  }
  if (differences.empty()) return {};
  const double shift = median(differences);
  for (double& difference : differences) difference = std::abs(difference - shift);
  const double deviation = median(differences);
  if (std::abs(shift) <= std::max(kSameClock, kDeviations * deviation)) return {};
  return {shift, deviation};
}

std::string timeline_group(const StepEvidence& unordered, const std::string& name, uint64_t id) {
  const StepEvidence evidence = in_order(unordered);
  const size_t ranks = rank_count(evidence);
  double origin = std::numeric_limits<double>::infinity();
  for (size_t rank = 0; rank < ranks; ++rank)
    origin = std::min(origin, RankTrack(evidence, rank, 0).first());
  std::string trace;
  PerfettoGroup group(trace, id);
  group.describe(name);
  uint64_t tracks = 0;
  for (size_t rank = 0; rank < ranks; ++rank) {
    const RankTrack steps(evidence, rank, origin);
    PerfettoTrack phases = group.next(steps.name());
    const uint64_t above = ++tracks;
    steps.add_phases(phases);
    phases.close();
    if (!steps.has_buckets()) continue;
    PerfettoTrack buckets = group.next(fmt::format("buckets of rank {}", rank), above);
    ++tracks;
    steps.add_buckets(buckets);
    buckets.close();
  }
  return trace;
}

std::string timeline(const Plan& plan, const Results& results) {
  const std::vector<Configuration> all = configurations(plan.request);
  int most = 0;
  std::map<size_t, std::pair<int, StepEvidence>>
      last;  // by configuration: the round, and its evidence
  for (const BenchRun& run : results.runs) {
    if (!run.samples.json.is_object() || !run.samples.json.contains(sample_line::kWhy)) continue;
    StepEvidence evidence = evidence_from(run.samples.json[sample_line::kWhy], run.samples.name);
    const int devices = all[run.configuration].devices;
    if (evidence.steps.empty() || devices < most) continue;
    if (devices > most) last.clear();
    most = devices;
    auto& [round, kept] = last[run.configuration];
    if (run.round >= round) round = run.round, kept = std::move(evidence);
  }
  std::string trace;
  for (const auto& [configuration, kept] : last)
    trace += timeline_group(kept.second, describe(all[configuration]), configuration + 1);
  return trace;
}

}  // namespace howmany::reports
