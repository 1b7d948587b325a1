// SPDX-License-Identifier: Apache-2.0
// Measures the cost of communication: every collective over a backend, by size. Without flags of
// its own it measures the default sizes over every backend between two devices.
#include <iostream>

#include "benches/comm/cases.h"
#include "benches/comm/collective_timing.h"
#include "benches/comm/schedule.h"
#include "benches/common/context.h"
#include "benches/common/device_choice.h"
#include "benches/common/program.h"
#include "benches/common/report.h"
#include "benches/common/timing.h"
#include "benches/common/verify.h"
#include "core/base/error.h"
#include "core/base/schema/context.h"
#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"

namespace howmany::benches {
namespace {

constexpr const char* kName = "backend_bench";
struct Outcome {
  CollectiveTimes times;
  OverlapTimes overlap;
  RankPaces paces;
  std::string skipped;
};

// Rank 0 decides, because only its process has the schedule, and broadcasts the result. Zero calls:
// the case is skipped.
Deal agreed_deal(const BackendCase& c, Comm& comm, Schedule& schedule, Outcome& outcome) {
  Deal deal;
  if (comm.rank() == 0) {
    outcome.skipped = too_large(c);
    if (outcome.skipped.empty()) deal = schedule.take(c).value_or(Deal{});
    if (outcome.skipped.empty() && deal.calls == 0)
      outcome.skipped = fmt::format("no time left for about {:.2g} s", schedule.expected(c).of(1));
  }
  Tensor agreed = Tensor::from<double>({deal.seconds, static_cast<double>(deal.calls)}, {2});
  comm.broadcast(agreed, 0);
  return {agreed.data<double>()[0], static_cast<int>(agreed.data<double>()[1])};
}

// Returns the same device for every backend: the rank's GPU if it has one.
Device buffers_of(const Comm& comm, Device device) {
  return device.type == DeviceType::cuda ? device : comm.native_device();
}

Outcome measure(const BackendCase& c, Comm& comm, Device where, Schedule& schedule) {
  Outcome outcome;
  const Deal deal = agreed_deal(c, comm, schedule, outcome);
  if (deal.calls == 0) return outcome;
  if (c.op == "pace") outcome.paces = time_paces(comm, where);
  if (c.op == kOverlap) outcome.overlap = time_overlap(comm, c.bytes, where, deal.seconds);
  if (!c.is_collective()) return outcome;
  Collective op(c.op, c.dtype, c.bytes, comm, where);
  outcome.times = time_collective(comm, op, deal.seconds, deal.calls);
  if (comm.rank() == 0) schedule.took(c, outcome.times.cost);
  return outcome;
}

void keep_samples(const BackendCase& c, const BackendFlags& flags, const CollectiveTimes& times) {
  const auto append = [&](const Samples& samples, const char* timing) {
    if (samples.seconds.empty()) return;
    append_samples(flags.samples,
                   {.name = c.name,
                    .samples = samples,
                    .flags = marks_of(c.work),
                    .parameters = {{parameter::kOp, c.op},
                                   {parameter::kBackend, c.work.backend},
                                   {parameter::kDtype, std::string(name_of(c.dtype))},
                                   {parameter::kDevices, std::to_string(c.work.count())},
                                   {parameter::kBytes, std::to_string(c.bytes)},
                                   {parameter::kModel, c.model},
                                   {parameter::kTiming, timing}},
                    .world = c.work.count()});
  };
  append(times.isolated, "isolated");
  append(times.pipelined, "pipelined");
}

void report_collective(benchmark::State& state, const BackendCase& c,
                       const CollectiveTimes& times) {
  const auto bytes = static_cast<double>(c.bytes);
  const double median = quantile(times.isolated.seconds, 0.5);
  std::map<std::string, double> counters = {{"bytes", bytes},
                                            {metric::kAlgbwBytesPerS, bytes / median},
                                            {"p99_s", quantile(times.isolated.seconds, 0.99)}};
  const auto factor = bus_factor(c.op, c.work.count());
  if (factor) counters[metric::kBusbwBytesPerS] = *factor * bytes / median;
  if (!times.pipelined.seconds.empty()) {
    const double each = quantile(times.pipelined.seconds, 0.5);
    counters[metric::kPipelinedS] = each;
    if (factor) counters["pipelined_busbw_bytes_per_s"] = *factor * bytes / each;
  }
  report(state, times.isolated, counters);
  std::vector<std::string> words = marks_of(c.work);
  if (!factor) words.push_back("busbw is not defined for one rank");
  state.SetLabel(fmt::format("{}", fmt::join(words, "; ")));
}

void report_overlap(benchmark::State& state, const BackendCase& c, const OverlapTimes& times) {
  while (state.KeepRunning()) state.SetIterationTime(times.comm_beside);
  state.counters["bytes"] = static_cast<double>(c.bytes);
  state.counters[metric::kCommAloneS] = times.comm_alone;
  state.counters[metric::kCommBesideS] = times.comm_beside;
  state.counters[metric::kGemmAloneS] = times.gemm_alone;
  state.counters[metric::kGemmBesideS] = times.gemm_beside;
  state.counters[metric::kHiddenFraction] = times.hidden;
}

void report_paces(benchmark::State& state, const RankPaces& paces) {
  while (state.KeepRunning()) state.SetIterationTime(paces.seconds);
  state.counters[metric::kSlowestRank] = paces.slowest;
  state.counters["slowest_s"] = paces.seconds;
  state.counters[metric::kOfOthers] = paces.of_others;
}

struct Run {
  const BackendFlags& flags;
  Ranks& ranks;
  Schedule& schedule;
  bool settled = false, wrong_data = false;
};

void run_case(benchmark::State& state, const BackendCase& c, Run& run) {
  Outcome outcome;
  try {
    run.ranks.run(c.work, [&](Comm& comm, Device device) {
      if (!run.settled) settle(comm);
      Outcome mine = measure(c, comm, buffers_of(comm, device), run.schedule);
      if (comm.rank() == 0) outcome = std::move(mine);
    });
    run.settled = true;
    if (!run.ranks.chief()) return report_nothing(state, "");
    if (!outcome.skipped.empty()) return report_nothing(state, outcome.skipped);
    if (c.op == "pace") return report_paces(state, outcome.paces);
    if (c.op == kOverlap) return report_overlap(state, c, outcome.overlap);
    report_collective(state, c, outcome.times);
    keep_samples(c, run.flags, outcome.times);
  } catch (const std::exception& e) {
    run.wrong_data = run.wrong_data || dynamic_cast<const WrongData*>(&e) != nullptr;
    report_failure(state, e);
  }
}

int run_cases(const std::vector<BackendCase>& cases, const BackendFlags& flags, Place place,
              std::vector<std::string> google, const char* program) {
  for (const BackendCase& c : cases)
    if (place.gpu < 0) place.gpu = gpu_of(c.work, place);
  Ranks ranks(place, process_backends(cases), flags.work.timeout_seconds);
  Schedule schedule(cases, Budget(flags.budget_seconds));
  Run run{flags, ranks, schedule};
  for (const BackendCase& c : cases)
    benchmark::RegisterBenchmark(c.name.c_str(),
                                 [&](benchmark::State& state) { run_case(state, c, run); })
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  add_context(
      {{context::kWorld, std::to_string(place.world)}, {context::kLauncher, place.launcher}});
  google.insert(google.begin(), program);
  const int code = run_benchmarks(std::move(google), !ranks.chief());
  // Only rank 0 returns a failure. After another rank's exit code a launcher may kill rank 0 before
  // it reports.
  if (!ranks.chief()) return 0;
  return run.wrong_data ? 1 : code;
}

int run(int argc, char** argv) {
  BackendFlags flags;
  const std::vector<std::string> google = parse_backend(argc, argv, flags);
  configure_cpu_devices({.cores_per_device = flags.work.cores_per_device});
  const Place place = place_from_environment();
  const std::vector<BackendCase> cases = backend_cases(flags, place);
  if (flags.list) {
    for (const BackendCase& c : cases) std::cout << c.name << "\n";
    return 0;
  }
  const int processes = processes_needed(cases);
  if (processes > 1 && place.world == 1)
    return supervise(kName, argc, argv, processes, process_backends(cases),
                     flags.work.timeout_seconds);
  return run_cases(cases, flags, place, google, argv[0]);
}

}  // namespace
}  // namespace howmany::benches

int main(int argc, char** argv) {
  return howmany::benches::run_program("backend_bench",
                                       [&] { return howmany::benches::run(argc, argv); });
}
