// SPDX-License-Identifier: Apache-2.0
// Checks that our figures are those of the library. Collectives of a Comm, timed as in
// backend_bench, alternate with the same calls in a bare loop over the library, on the same ranks.
// The counter `ratio` is the median ratio of neighbours (1: equal). `in_a_row_s` and
// `bare_in_a_row_s` are seconds per call of chains without barriers between calls.
#include <algorithm>
#include <utility>

#include "benches/comm/bare.h"
#include "benches/comm/collective_timing.h"
#include "benches/comm/collectives.h"
#include "benches/comm/fidelity_flags.h"
#include "benches/common/context.h"
#include "benches/common/device_choice.h"
#include "benches/common/program.h"
#include "benches/common/report.h"
#include "benches/common/timing.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/schema/context.h"

namespace howmany::benches {
namespace {

constexpr const char* kName = "fidelity_bench";
constexpr int kChains = 21;
constexpr double kChainSeconds = 10e-3;

using Flags = FidelityFlags;

std::unique_ptr<Bare> bare_loop(const std::string& backend, [[maybe_unused]] Comm& comm) {
#define X(name) \
  if (backend == #name) return bare_##name(comm);
  HM_BARES(X)
#undef X
  throw std::invalid_argument(fmt::format("--backend {}: has no bare loop", backend));
}

// Runs `op` by the bare loop, in the same memory.
void run_bare(Bare& bare, const std::string& name, Collective& op) {
  auto* const mine = op.sending().mutable_data<float>();
  const auto count = static_cast<size_t>(op.sending().numel());
  if (name == "all_reduce") return bare.all_reduce(mine, count);
  if (name == "broadcast") return bare.broadcast(mine, count);
  bare.all_gather(mine, op.received().mutable_data<float>(), count);
}

double time_bare(Bare& bare, const std::string& name, Collective& op) {
  bare.barrier();
  busy_wait(kHostGap);
  const auto start = Clock::now();
  run_bare(bare, name, op);
  return seconds_since(start);
}

struct FidelityTimes {
  PairedSamples isolated;
  Turns chains;  // seconds per call
};

// Returns the seconds per call of a chain.
template <typename Barrier, typename Call>
double time_chain(int calls, const Barrier& barrier, const Call& call) {
  barrier();
  const auto start = Clock::now();
  for (int i = 0; i < calls; ++i) call();
  return seconds_since(start) / calls;
}

// `call_seconds` is equal on every rank.
Turns time_chains(double call_seconds, const std::string& name, Comm& comm, Bare& bare,
                  Collective& op) {
  const int calls = static_cast<int>(std::clamp(kChainSeconds / call_seconds, 1.0, 1e5));
  return in_turn(
      kChains,
      [&] {
        return time_chain(
            calls, [&] { comm.barrier(); }, [&] { op.run(); });
      },
      [&] {
        return time_chain(
            calls, [&] { bare.barrier(); }, [&] { run_bare(bare, name, op); });
      });
}

void report_times(benchmark::State& state, const FidelityTimes& times) {
  const PairedSamples& pairs = times.isolated;
  const Interval interval = median_bounds(pairs.ratios);
  report(state, pairs.ours,
         {{"ratio", quantile(pairs.ratios, 0.5)},
          {"ratio_low", interval.low},
          {"ratio_high", interval.high},
          {"bare_s", quantile(pairs.bare.seconds, 0.5)},
          {"in_a_row_s", quantile(times.chains.ours, 0.5)},
          {"bare_in_a_row_s", quantile(times.chains.theirs, 0.5)}});
}

struct FidelityCase {
  std::string op;
  int64_t bytes;
};

FidelityTimes run_case(const FidelityCase& c, Comm& comm, Bare& bare, int rounds) {
  Collective op(c.op, Dtype::f32, c.bytes, comm);
  op.fill(0);
  run_bare(bare, c.op, op);
  op.check(0);
  op.fill_for_timing(1);
  FidelityTimes times;
  times.isolated = time_in_turn(
      comm, rounds, [&] { op.run(); }, [&] { return time_bare(bare, c.op, op); }, kHostGap);
  const double call = quantile(times.isolated.ours.seconds, 0.5);
  times.chains = time_chains(call, c.op, comm, bare, op);
  op.check(1);
  return times;
}

void add_cases(const Flags& flags, Comm& comm, Bare& bare) {
  for (const std::string& op : flags.ops)
    for (const int64_t bytes : flags.bytes) {
      const FidelityCase c{op, bytes};
      const auto name = fmt::format("fidelity/{}/{}/bytes:{}", op, flags.backend, bytes);
      benchmark::RegisterBenchmark(name.c_str(),
                                   [=, &comm, &bare](benchmark::State& state) {
                                     try {
                                       report_times(state, run_case(c, comm, bare, flags.rounds));
                                     } catch (const std::exception& e) {
                                       report_failure(state, e);
                                     }
                                   })
          ->Iterations(1)
          ->UseManualTime()
          ->Unit(benchmark::kMicrosecond);
    }
}

Workload workload(const Flags& flags) {
  Workload work;
  work.mode = "ddp";
  work.backend = flags.backend;
  work.devices = devices_from(flags.devices, 2);
  work.global_batch = work.count();
  work.oversubscribe = flags.oversubscribe;
  check(work);
  return work;
}

int run(int argc, char** argv) {
  Flags flags;
  std::vector<std::string> google = parse_fidelity(argc, argv, flags);
  const Place place = place_from_environment();
  const Workload work = workload(flags);
  HM_REQUIRE(work.over_processes(), "--backend {}: has no bare loop", flags.backend);
  if (place.world == 1)
    return supervise(kName, argc, argv, work.ranks(), {flags.backend}, work.timeout_seconds);
  Ranks ranks(place, {flags.backend});
  add_context(
      {{context::kWorld, std::to_string(place.world)}, {context::kLauncher, place.launcher}});
  google.insert(google.begin(), argv[0]);
  int code = 0;
  ranks.run(work, [&](Comm& comm, Device) {
    const std::unique_ptr<Bare> bare = bare_loop(flags.backend, comm);
    add_cases(flags, comm, *bare);
    code = run_benchmarks(google, !ranks.chief());
    comm.barrier();  // before the destructor of the bare loop
  });
  return code;
}

}  // namespace
}  // namespace howmany::benches

int main(int argc, char** argv) {
  return howmany::benches::run_program("fidelity_bench",
                                       [&] { return howmany::benches::run(argc, argv); });
}
