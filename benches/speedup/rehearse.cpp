// SPDX-License-Identifier: Apache-2.0
#include "benches/speedup/rehearse.h"

#include <algorithm>

#include "benches/common/peak_memory.h"
#include "benches/common/trainer.h"
#include "benches/speedup/step_tally.h"
#include "core/base/clock.h"

namespace howmany::benches {
namespace {

constexpr size_t kLoggedSteps = 10;

LoggedCollective logged(const RehearsedCall& call, Clock::time_point step) {
  const double at = std::chrono::duration<double>(call.at - step).count();
  LoggedCollective one{call.kind, call.bytes, call.group, at, call.seconds};
  if (call.waited) one.waited = std::chrono::duration<double>(*call.waited - step).count();
  return one;
}

LoggedStep logged(const std::vector<RehearsedCall>& calls, Clock::time_point start) {
  LoggedStep step{.seconds = seconds_since(start)};
  for (const RehearsedCall& call : calls) step.collectives.push_back(logged(call, start));
  return step;
}

}  // namespace

RehearsedSteps rehearse_steps(const Workload& work, const CostTable& costs,
                              const TimingOptions& timing, const Dataset& data, Comm& here,
                              Device device) {
  Rehearsal rehearsal(costs);
  const std::unique_ptr<Comm> group = rehearsal.join(here.rank());
  group->set_timeout(here.timeout());
  Trainer trainer(work, data, *group, device);
  const std::vector<Device> together = work.devices_together();
  reset_peak_memory(together);
  RehearsedSteps result;
  StepTally tally;
  result.samples = time_iterations(here, timing, [&] {
    rehearsal.take_log();
    const Clock::time_point start = Clock::now();
    const Batch batch = trainer.next();
    const double waited = seconds_since(start);
    trainer.train(batch).value();
    result.logged.push_back(logged(rehearsal.take_log(), start));
    tally.add(seconds_since(start), waited, trainer.mode().report());
  });
  tally.forget_first(timing.warmup_iterations);
  const size_t kept = std::min(kLoggedSteps, result.samples.seconds.size());
  result.logged.erase(result.logged.begin(), result.logged.end() - static_cast<ptrdiff_t>(kept));
  result.wait_fraction = tally.wait_fraction();
  result.exposed_communication_seconds = tally.typical(&StepReport::exposed_communication_seconds);
  result.peak_bytes = peak_bytes_of_one(together, data.held_bytes());
  return result;
}

}  // namespace howmany::benches
