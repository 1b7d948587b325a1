#include "benches/profile.h"

#include <algorithm>
#include <fstream>

#include "benches/support.h"
#include "core/error.h"
#include "core/profile/step_use.h"
#include "core/profile/trace.h"

namespace howmany::benches {
namespace {

constexpr const char* kStep = "iteration";
constexpr double kSeconds = 0.5;  // of steps in each third

TimingOptions exactly(int steps, int warmups) {
  return {.budget_seconds = 1e9,
          .target_half_width = 0,
          .min_iterations = steps,
          .max_iterations = steps,
          .warmup_iterations = warmups};
}

// On rank 0 only, and over at the latest when this goes.
class RecordingScope {
 public:
  explicit RecordingScope(bool records) : records_(records) {
    if (records_) start_recording();
  }
  ~RecordingScope() { stop(); }
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;
  Recording stop() { return std::exchange(records_, false) ? stop_recording() : Recording{}; }

 private:
  bool records_;
};

void append(const std::string& file, const std::string& bytes) {
  std::ofstream out(file, std::ios::app | std::ios::binary);
  out << bytes << std::flush;
  HM_ENSURE(out.good(), "[profile] cannot write {}", file);
}

double median_seconds(const std::vector<StepUse>& steps, int64_t StepUse::*part) {
  std::vector<double> seconds;
  for (const StepUse& step : steps) seconds.push_back(static_cast<double>(step.*part) * 1e-9);
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

double median(const Samples& samples) { return quantile(samples.seconds, 0.5); }

}  // namespace

std::map<std::string, double> profile_steps(Comm& comm, double step_seconds,
                                            const std::function<void()>& step,
                                            const std::string& file, const std::string& group) {
  const int steps = std::clamp(static_cast<int>(kSeconds / step_seconds), 3, 50);
  const auto ranged = [&] {
    const Range whole(Category::step, kStep);
    step();
  };
  const Samples before = time_iterations(comm, exactly(steps, 0), ranged);
  RecordingScope scope(comm.rank() == 0);
  comm.barrier();  // ranks that are threads of rank 0's process are recorded from the same step on
  const Samples during = time_iterations(comm, exactly(steps, 1), ranged);
  const Recording seen = scope.stop();
  const Samples after = time_iterations(comm, exactly(steps, 0), ranged);
  if (comm.rank() != 0) return {};
  std::vector<StepUse> uses = step_uses(seen, kStep, current_track());
  HM_ENSURE(uses.size() > 1, "[profile] of {} steps, {} were recorded", steps, uses.size());
  uses.erase(uses.begin());  // the one to warm up
  append(file, perfetto_trace(seen, group));
  std::map<std::string, double> counters = parts_of(uses);
  counters["profile_cost_fraction"] = 2 * median(during) / (median(before) + median(after)) - 1;
  counters["profile_after_fraction"] = median(after) / median(before) - 1;
  counters["profile_dropped_spans"] = static_cast<double>(seen.dropped);
  return counters;
}

}  // namespace howmany::benches
