// SPDX-License-Identifier: Apache-2.0
// Measures the time of a training step on n devices, by model, mode and communication backend.
// Without flags of its own it measures the default grid of this machine.
#include <algorithm>
#include <iostream>
#include <map>
#include <mutex>
#include <set>

#include "benches/common/context.h"
#include "benches/common/device_choice.h"
#include "benches/common/filter.h"
#include "benches/common/program.h"
#include "benches/common/report.h"
#include "benches/common/trainer.h"
#include "benches/speedup/case.h"
#include "benches/speedup/flags.h"
#include "benches/speedup/graph_gain.h"
#include "benches/speedup/steps.h"
#include "core/base/error.h"
#include "core/base/schema/context.h"
#include "core/base/schema/marks.h"
#include "core/base/schema/metrics.h"
#include "core/gpu/fallbacks.h"
#include "core/gpu/gpu.h"

namespace howmany::benches {
namespace {

constexpr const char* kName = "speedup_bench";
using Flags = SpeedupFlags;

std::vector<std::string> strings(const std::vector<std::string_view>& names) {
  return {names.begin(), names.end()};
}

std::vector<int> counts_of(const Flags& flags, const Place& place, size_t given) {
  if (!flags.counts.empty()) return flags.counts;
  if (given > 0) return {static_cast<int>(given)};
  if (place.world > 1 && place.launcher != "howmany") return {place.world};
  std::vector<int> counts;
  for (int n = 1; n <= cpu_device_count(); ++n) counts.push_back(n);
  return counts;
}

std::vector<std::string> cpu_backends() {
  std::vector<std::string> names = strings(comm_names());
  std::erase_if(names, [](const std::string& name) { return comm_traits(name).gpus; });
  return names;
}

// Replaces `auto` by the selected backend.
std::vector<std::string> resolved(const Flags& flags, const std::string& mode, const Place& place,
                                  const std::vector<Device>& given) {
  std::vector<std::string> backends = flags.backends;
  Workload work = flags.work;
  work.mode = mode;
  if (!given.empty()) work.devices = given;
  if (work.count() < 2) work.devices.resize(2);
  for (std::string& name : backends)
    if (name == "auto") name = choose_backend(work, place).name;
  return backends;
}

void add_mode(std::vector<Case>& cases, const Flags& flags, const Place& place,
              const std::string& model, const std::string& mode) {
  const ModeTraits traits = mode_traits(mode);
  const std::vector<Device> given =
      flags.devices.empty() ? std::vector<Device>{} : devices_given(flags.devices, place);
  const std::vector<std::string> all =
      flags.backends.empty() ? cpu_backends() : resolved(flags, mode, place, given);
  for (const std::string& backend : traits.over_ranks ? all : std::vector<std::string>{"local"}) {
    std::set<int> done;
    for (int n : counts_of(flags, place, given.size())) {
      if (!traits.over_ranks && !traits.over_devices) n = 1;
      if (!done.insert(n).second) continue;
      HM_REQUIRE(given.empty() || n <= static_cast<int>(given.size()),
                 "--device-count {} of {} --devices", n, given.size());
      std::vector<Device> devices = given.empty() ? devices_from("", n) : given;
      if (given.empty() && flags.work.count() >= n) devices = flags.work.devices;
      devices.resize(static_cast<size_t>(n));
      cases.push_back(make_case(flags, model, mode, backend, std::move(devices)));
    }
  }
}

std::vector<Case> make_cases(const Flags& flags, const Place& place) {
  std::vector<Case> cases;
  for (const std::string& model : flags.models)
    for (const std::string& mode : flags.modes.empty() ? strings(mode_names()) : flags.modes)
      add_mode(cases, flags, place, model, mode);
  if (flags.modes.empty()) std::erase_if(cases, [](const Case& c) { return !can_divide(c.work); });
  for (const Case& c : cases) check(c.work);
  return cases;
}

// The mark of kernels that are slower than cuDNN's would be; empty if there are none.
std::string slower_kernels(const Workload& work) {
  const std::vector<gpu::Fallback> all = gpu::fallbacks();
  if (!work.uses_gpu() || all.empty()) return "";
  const std::string more = all.size() > 1 ? fmt::format(" and {} more", all.size() - 1) : "";
  return fmt::format("{}{} ({}){}", mark::kFallback, all[0].what, all[0].why, more);
}

void report_case(benchmark::State& state, const Case& c, const Flags& flags,
                 const StepTimes& result) {
  const double median = quantile(result.samples.seconds, 0.5);
  std::map<std::string, double> counters = {
      {metric::kSamplesPerS, static_cast<double>(c.work.global_batch) / median},
      {metric::kFlopPerS, result.flop / median},
      {metric::kDataWaitFraction, result.wait_fraction},
      {metric::kBubbleFraction, result.report.bubble},
      {metric::kTheoreticalBubbleFraction, result.report.theoretical_bubble},
      {metric::kExposedCommunicationS, result.report.exposed_communication_seconds},
      {metric::kFirstStepS, result.first_step_seconds},
      {metric::kPeakBytesPerDevice, result.peak_bytes},
      {metric::kRanks, c.work.ranks()},
      {"loss", result.loss}};
  counters.insert(result.profile.begin(), result.profile.end());
  if (c.work.ranks() > 1) {
    counters[metric::kStragglerRank] = result.straggler.rank;
    counters[metric::kStragglerExtraS] = result.straggler.extra_seconds;
  }
  report(state, result.samples, counters);
  std::vector<std::string> marks = marks_of(c.work);
  if (const std::string slower = slower_kernels(c.work); !slower.empty()) marks.push_back(slower);
  state.SetLabel(fmt::format("{}", fmt::join(marks, " ")));
  append_samples(flags.samples, sample_line(c, result.samples, marks));
}

// The data sets of all cases from image folders. They are opened before any measurement, once per
// model.
class Images {
 public:
  Images(const std::vector<Case>& cases, bool tell) {
    std::map<std::string, const Workload*> largest;
    for (const Case& c : cases) {
      const Workload*& most = largest[c.work.model];
      if (!most || c.work.global_batch > most->global_batch) most = &c.work;
    }
    for (const auto& [model, work] : largest)
      if (!work->synthetic()) opened_[model] = open_dataset(*work, tell);
  }
  const Dataset& of(const Workload& work) const { return *opened_.at(work.model); }

 private:
  std::map<std::string, DatasetPtr> opened_;
};

// Google Benchmark needs an iteration time also from a rank that measures nothing.
void idle(benchmark::State& state) {
  while (state.KeepRunning()) state.SetIterationTime(1);
}

void run_case(benchmark::State& state, const Case& c, const Images& images, const Flags& flags,
              Ranks& ranks) {
  StepTimes result;
  try {
    DatasetPtr synthetic;  // one for all ranks of this process
    std::once_flag opened;
    ranks.run(c.work, [&](Comm& comm, Device device) {
      std::call_once(opened, [&] {
        if (c.work.synthetic()) synthetic = open_dataset(c.work);
      });
      const Dataset& data = synthetic ? *synthetic : images.of(c.work);
      StepTimes mine =
          measure_steps(c.work, flags.timing, data, comm, device,
                        {.file = flags.trace, .group = c.name, .gpus = c.work.uses_gpu()});
      if (comm.rank() == 0) result = std::move(mine);
    });
    if (!ranks.chief()) return idle(state);
    report_case(state, c, flags, result);
  } catch (const std::exception& e) {
    report_failure(state, e);
  }
}

int processes_needed(const std::vector<Case>& cases, const std::vector<std::string>& google) {
  int most = 1;
  for (const Case& c : cases)
    if (c.work.over_processes() && selected(c.name, google)) most = std::max(most, c.work.ranks());
  return most;
}

std::set<std::string> process_backends(const std::vector<Case>& cases,
                                       const std::vector<std::string>& google) {
  std::set<std::string> backends;
  for (const Case& c : cases)
    if (c.work.over_processes() && selected(c.name, google)) backends.insert(c.work.backend);
  return backends;
}

void refuse_interleaving(const std::vector<std::string>& google) {
  for (const std::string& argument : google)
    HM_REQUIRE(!argument.starts_with("--benchmark_enable_random_interleaving") ||
                   argument.ends_with("=false"),
               "{}: ranks would not run the same case at the same time", argument);
}

// Ranks connect once for all cases, so this returns the GPU that fits most cases: one GPU per rank.
int gpu_of(const std::vector<Case>& cases, const Place& place) {
  int gpu = -1;
  for (const bool one_each : {true, false})
    for (const Case& c : cases)
      if (gpu < 0 && (c.work.count() == c.work.ranks()) == one_each) gpu = gpu_of(c.work, place);
  return gpu;
}

int run_cases(const std::vector<Case>& cases, const Images& images, const Flags& flags, Place place,
              std::vector<std::string> google, const char* program) {
  place.gpu = gpu_of(cases, place);
  Ranks ranks(place, process_backends(cases, google), flags.work.timeout_seconds);
  for (const Case& c : cases)
    benchmark::RegisterBenchmark(
        c.name.c_str(), [&](benchmark::State& state) { run_case(state, c, images, flags, ranks); })
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  add_context(
      {{context::kWorld, std::to_string(place.world)}, {context::kLauncher, place.launcher}});
  google.insert(google.begin(), program);
  return run_benchmarks(std::move(google), !ranks.chief());
}

int run_graph_gain(const Flags& flags, std::vector<std::string> google, const char* program) {
  if (gpu::count() == 0) {
    std::cerr << fmt::format("{}: --graph-gain is skipped: {}\n", kName, gpu::unavailable());
    return 0;
  }
  const Device first =
      flags.devices.empty() ? Device{DeviceType::cuda, 0} : parse_devices(flags.devices).at(0);
  std::vector<Workload> works;
  for (const std::string& model : flags.models)
    works.push_back(make_case(flags, model, "single:graph=on", "local", {first}).work);
  for (const Workload& work : works) check(work);
  for (const Workload& work : works) register_graph_gain(work);
  add_context();
  google.insert(google.begin(), program);
  return run_benchmarks(std::move(google));
}

int run(int argc, char** argv) {
  Flags flags;
  const std::vector<std::string> google = parse_speedup(argc, argv, flags);
  configure_cpu_devices({.cores_per_device = flags.work.cores_per_device});
  const Place place = place_from_environment();
  if (flags.graph_gain) return run_graph_gain(flags, google, argv[0]);
  const bool gpus = place.launcher != "howmany" && means_gpus(flags.work);
  if (place.world > 1) place_devices(flags.work, flags.devices, place, gpus);
  const std::vector<Case> cases = make_cases(flags, place);
  const int processes = processes_needed(cases, google);
  const bool supervised = processes > 1 && place.world == 1;
  const Images images(cases, place.rank == 0 && place.launcher != "howmany");
  if (flags.list) {
    for (const Case& c : cases) std::cout << c.name << "\n";
    return 0;
  }
  if (processes > 1 || place.world > 1) refuse_interleaving(google);
  if (supervised)
    return supervise(kName, argc, argv, processes, process_backends(cases, google),
                     flags.work.timeout_seconds);
  return run_cases(cases, images, flags, place, google, argv[0]);
}

}  // namespace
}  // namespace howmany::benches

int main(int argc, char** argv) {
  return howmany::benches::run_program("speedup_bench",
                                       [&] { return howmany::benches::run(argc, argv); });
}
