// SPDX-License-Identifier: Apache-2.0
#include "benches/speedup/rehearsal.h"

#include <iostream>
#include <map>
#include <utility>

#include "benches/common/context.h"
#include "benches/common/device_choice.h"
#include "benches/common/program.h"
#include "benches/common/report.h"
#include "benches/common/trainer.h"
#include "benches/speedup/case.h"
#include "benches/speedup/rehearse.h"
#include "core/base/error.h"
#include "core/base/schema/flags.h"
#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"

namespace howmany::benches {
namespace {

constexpr const char* kRehearsedBackend = "rehearsal";

// One rank of as many as the cost table has, on each of the devices.
Case rehearsed_case(const SpeedupFlags& flags, const CostTable& costs, const Place& place) {
  HM_REQUIRE(flags.models.size() == 1 && flags.modes.size() == 1 && place.world == 1,
             "{} needs one --model and one --mode, in one process", flag::kRehearse.name);
  const ModeTraits traits = mode_traits(flags.modes[0]);
  HM_REQUIRE(traits.over_ranks && !traits.over_devices,
             "{} needs a mode with one device in each rank, and {} is none", flag::kRehearse.name,
             flags.modes[0]);
  HM_REQUIRE(flags.trace.empty() && flags.counts.empty(), "{} cannot be combined with {} or {}",
             flag::kRehearse.name, flag::kTraceFile.name, flag::kDeviceCount.name);
  const std::vector<Device> here = devices_from(flags.devices, 1);
  HM_REQUIRE(static_cast<int>(here.size()) <= costs.world,
             "{}: it is for {} ranks, fewer than devices", flags.costs, costs.world);
  std::vector<Device> all;
  while (static_cast<int>(all.size()) < costs.world) all.push_back(here[all.size() % here.size()]);
  Case c = make_case(flags, flags.models[0], flags.modes[0], kRehearsedBackend, all);
  c.work.backend = "local";
  HM_REQUIRE(!c.work.uses_gpu(), "{} of our models is for CPU devices only", flag::kRehearse.name);
  c.work.ranks_per_host = static_cast<int>(here.size());
  c.name.replace(0, c.name.find('/'), "rehearsal");
  check(c.work);
  return c;
}

bool has_stages(const Case& c) { return stages_of(c.work.mode, c.work.count()) > 1; }

RehearsedSteps rehearsed(const Case& c, const CostTable& costs, const SpeedupFlags& flags) {
  Workload here = c.work;
  here.devices.resize(static_cast<size_t>(c.work.ranks_per_host));
  const DatasetPtr data = open_dataset(c.work);
  if (has_stages(c)) return rehearse_in_turns(c.work, costs, flags.timing, *data, here.devices);
  RehearsedSteps result;
  Ranks({}, {}).run(here, [&](Comm& comm, Device device) {
    RehearsedSteps mine = rehearse_steps(c.work, costs, flags.timing, *data, comm, device);
    if (comm.rank() == 0) result = std::move(mine);
  });
  return result;
}

std::map<std::string, double> counters_of(const RehearsedSteps& result, bool stages) {
  if (stages)
    return {{metric::kBubbleFraction, result.bubble},
            {metric::kTheoreticalBubbleFraction, result.theoretical_bubble}};
  return {{metric::kDataWaitFraction, result.wait_fraction},
          {metric::kExposedCommunicationS, result.exposed_communication_seconds},
          {metric::kPeakBytesPerDevice, result.peak_bytes}};
}

void rehearse(benchmark::State& state, const Case& c, const CostTable& costs,
              const SpeedupFlags& flags) try {
  const RehearsedSteps result = rehearsed(c, costs, flags);
  const double median = quantile(result.samples.seconds, 0.5);
  std::map<std::string, double> counters = counters_of(result, has_stages(c));
  counters[metric::kSamplesPerS] = static_cast<double>(c.work.global_batch) / median;
  counters[metric::kRanks] = costs.world;
  report(state, result.samples, counters);
  SampleLine line = sample_line(c, result.samples, marks_of(c.work));
  line.parameters[parameter::kBackend] = kRehearsedBackend;
  line.parameters[parameter::kEvidence] = "rehearsed";
  if (!has_stages(c)) line.steps = steps_json(result.logged);
  append_samples(flags.samples, line);
} catch (const std::exception& e) {
  report_failure(state, e);
}

}  // namespace

int run_rehearsal(const SpeedupFlags& flags, const Place& place, std::vector<std::string> google,
                  const char* program) {
  const CostTable costs = read_cost_table(flags.costs);
  const Case c = rehearsed_case(flags, costs, place);
  if (flags.list) {
    std::cout << c.name << "\n";
    return 0;
  }
  benchmark::RegisterBenchmark(c.name.c_str(),
                               [&](benchmark::State& state) { rehearse(state, c, costs, flags); })
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
  add_context();
  google.insert(google.begin(), program);
  return run_benchmarks(std::move(google));
}

}  // namespace howmany::benches
