// SPDX-License-Identifier: Apache-2.0
#include "benches/script/rated.h"

#include <chrono>

#include "benches/script/rate.h"
#include "core/base/error.h"
#include "core/base/schema/flags.h"
#include "core/base/schema/marks.h"
#include "core/base/schema/metrics.h"

namespace howmany::benches {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Leaves out the matched text if it must not be quoted.
std::vector<double> seconds_of(const RateLog& log, bool quote) {
  try {
    return log.seconds();
  } catch (const Error&) {
    if (quote) throw;
    throw Error("[script] --rate matched too few lines, or text that is no number above 0");
  }
}

}  // namespace

void check_rate(const ScriptCommand& command) {
  if (command.rate.empty()) return;
  const bool per_step = RateLog(command.rate, command.seconds).per_step();
  const bool given = command.samples_per_step > 0;
  HM_REQUIRE(!command.try_ddp && !command.turns.given(), "{} excludes {} and {}", flag::kRate.name,
             flag::kTryDdp.name, flag::kWorkers.name);
  HM_REQUIRE(!per_step || given, "{} with step_s needs {}", flag::kRate.name,
             flag::kSamplesPerStep.name);
  HM_REQUIRE(per_step || !given, "{} with samples_per_s excludes {}", flag::kRate.name,
             flag::kSamplesPerStep.name);
}

ScriptSteps run_rated(const ScriptCommand& command, double timeout_seconds) {
  RateLog log(command.rate, command.seconds);
  const auto take = [&](RateLog::Stream stream) {
    return [&log, stream](std::string_view text) { log.take(stream, text, now()); };
  };
  const Printed printed{take(RateLog::Stream::kOut), take(RateLog::Stream::kErr),
                        [&] { return log.is_done(now()); }};
  const ScriptEnd ended = run_printing(command, printed, timeout_seconds);
  HM_ENSURE(ended.ok, "[script] {}{}", ended.how,
            log.matched_any() ? "" : "; --rate matched none of the printed lines");
  ScriptSteps steps;
  steps.seconds = seconds_of(log, command.quote);
  steps.ranks = command.ranks;
  steps.parallel = "script";
  steps.backend = "local";
  if (log.per_step()) steps.global_batch = command.samples_per_step * command.ranks;
  steps.counters = {{metric::kWarmupLines, log.warmup_lines()}};
  steps.flags = {mark::kOwnRate, mark::kNoDataWait};
  return steps;
}

}  // namespace howmany::benches
