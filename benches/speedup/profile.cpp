// SPDX-License-Identifier: Apache-2.0
#include "benches/speedup/profile.h"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <limits>
#include <utility>

#include "benches/common/timing.h"
#include "benches/speedup/trace_parts.h"
#include "core/base/error.h"
#include "core/base/schema/metrics.h"
#include "core/profile/gpu_activity.h"
#include "core/profile/step_use.h"
#include "core/profile/trace.h"

namespace howmany::benches {
namespace {

constexpr const char* kStep = "iteration";
constexpr double kSeconds = 0.5;                 // of steps with the recorder off, on and off again
constexpr size_t kMaxTrace = size_t{256} << 20;  // bytes, all ranks together

TimingOptions exactly(int steps, int warmups) {
  return {.budget_seconds = 1e9,
          .target_half_width = 0,
          .min_iterations = steps,
          .max_iterations = steps,
          .warmup_iterations = warmups};
}

struct Seen {
  Recording ranges;
  GpuActivity gpus;
};

// Records ranges and GPU activity. The destructor stops a recording that still runs.
class Watch {
 public:
  Watch(bool records, bool gpus) : records_(records) {
    if (!records_) return;
    start_recording();
    const std::string why_not = gpus ? start_gpu_activity() : "";
    if (!why_not.empty()) std::cerr << "GPUs are not profiled: " << why_not << "\n";
  }
  ~Watch() {
    try {
      stop();
    } catch (const std::exception&) {  // another exception is in flight
    }
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  Seen stop() {
    if (!std::exchange(records_, false)) return {};
    Seen seen{stop_recording(), {}};
    seen.gpus = stop_gpu_activity();
    join_ranges(seen.gpus, seen.ranges);
    return seen;
  }

 private:
  bool records_;
};

void append(const std::string& file, const std::string& bytes) {
  std::ofstream out(file, std::ios::app | std::ios::binary);
  out << bytes << std::flush;
  HM_ENSURE(out.good(), "[profile] cannot write {}", file);
}

// Writes the trace of all processes. Returns the number of spans that did not fit.
int64_t write_trace(Comm& comm, Seen& seen, bool records, const ClockOffset& clock,
                    const ProfileOptions& options) {
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  const int64_t first = least_of(comm, records ? seen.ranges.start - clock.ahead : kNever);
  const TracePart part{
      .group = options.group,
      .id = static_cast<uint64_t>(first),
      .part = comm.rank(),
      .origin = first + clock.ahead,
      .note = clock.within > 0 ? fmt::format(" (clock matched to {} us)", clock.within / 1000 + 1)
                               : ""};
  const auto spans = [&] {
    return static_cast<int64_t>(seen.ranges.spans.size() + seen.gpus.spans.size());
  };
  const int64_t recorded = spans() + seen.ranges.dropped;
  const size_t share = kMaxTrace / static_cast<size_t>(comm.size());
  const std::string bytes =
      records ? perfetto_trace_within(share, seen.ranges, part, seen.gpus) : "";
  bring_to_rank_0(comm, bytes, [&](const std::string& one) { append(options.file, one); });
  return sum_of(comm, recorded - spans());
}

template <typename Use>
double median_seconds(const std::vector<Use>& steps, int64_t Use::*part) {
  std::vector<double> seconds;
  for (const Use& step : steps) seconds.push_back(static_cast<double>(step.*part) * 1e-9);
  return quantile(seconds, 0.5);
}

std::map<std::string, double> parts_of(const std::vector<StepUse>& steps) {
  constexpr std::pair<const char*, int64_t StepUse::*> kParts[] = {
      {"profile_step_s", &StepUse::total},
      {"profile_compute_s", &StepUse::compute},
      {"profile_optimizer_s", &StepUse::optimizer},
      {"profile_comm_s", &StepUse::comm},
      {"profile_hidden_comm_s", &StepUse::hidden_comm},
      {"profile_copy_s", &StepUse::copy},
      {"profile_data_s", &StepUse::data},
      {"profile_host_s", &StepUse::host}};
  std::map<std::string, double> counters;
  for (const auto& [name, part] : kParts) counters[name] = median_seconds(steps, part);
  counters["profile_steps"] = static_cast<double>(steps.size());
  return counters;
}

void add_gpus(std::map<std::string, double>& counters, const GpuActivity& gpus,
              const std::vector<StepUse>& steps) {
  if (gpus.spans.empty() && gpus.lost + gpus.refused == 0) return;
  constexpr std::pair<const char*, int64_t GpuUse::*> kParts[] = {
      {"profile_gpu_compute_s", &GpuUse::compute},
      {"profile_gpu_comm_s", &GpuUse::comm},
      {"profile_gpu_hidden_comm_s", &GpuUse::hidden_comm},
      {"profile_gpu_copy_s", &GpuUse::copy},
      {"profile_gpu_idle_s", &GpuUse::idle}};
  const std::vector<GpuUse> uses = gpu_uses(gpus, steps, current_track());
  for (const auto& [name, part] : kParts) counters[name] = median_seconds(uses, part);
  counters[metric::kProfileGpuLostRecords] = static_cast<double>(gpus.lost);
  counters[metric::kProfileGpuRefusedRecords] = static_cast<double>(gpus.refused);
}

// Returns the parts of this rank's steps without the warm-up step, or none if there are no other
// steps.
std::map<std::string, double> parts_of(const Seen& seen) {
  std::vector<StepUse> uses = step_uses(seen.ranges, kStep, current_track());
  if (uses.size() < 2) return {};
  uses.erase(uses.begin());
  std::map<std::string, double> counters = parts_of(uses);
  add_gpus(counters, seen.gpus, uses);
  return counters;
}

double median(const Samples& samples) { return quantile(samples.seconds, 0.5); }

}  // namespace

std::map<std::string, double> profile_steps(Comm& comm, double step_seconds,
                                            const std::function<void()>& step,
                                            const ProfileOptions& options) {
  const int steps = std::clamp(static_cast<int>(kSeconds / step_seconds), 3, 50);
  const auto ranged = [&] {
    const Range whole(Category::step, kStep);
    step();
  };
  const bool records = leads_process(comm);
  const Samples before = time_iterations(comm, exactly(steps, 0), ranged);
  Watch watch(records, options.gpus);
  const ClockOffset clock = clock_offset(comm);  // after it all ranks record from the same step on
  const Samples during = time_iterations(comm, exactly(steps, 1), ranged);
  Seen seen = watch.stop();
  const Samples after = time_iterations(comm, exactly(steps, 0), ranged);
  std::map<std::string, double> counters = parts_of(seen);
  const int64_t missing =
      write_trace(comm, seen, records, clock, options);  // removes the spans that do not fit
  if (comm.rank() != 0) return {};
  HM_ENSURE(!counters.empty(), "[profile] none of {} steps was recorded", steps);
  counters[metric::kProfileCostFraction] =
      2 * median(during) / (median(before) + median(after)) - 1;
  counters["profile_after_fraction"] = median(after) / median(before) - 1;
  counters[metric::kProfileDroppedSpans] = static_cast<double>(missing);
  return counters;
}

}  // namespace howmany::benches
