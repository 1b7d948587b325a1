// SPDX-License-Identifier: Apache-2.0
// Chooses the fewest loader workers that feed training, from numbers that took turns. With a
// demand, the share of waiting decides; else the ratios of samples/s within rounds. Only measured
// numbers win. Values only; not tied to any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/workers/points.h"

namespace howmany::reports {

struct WorkersAdvice {
  std::optional<int> recommended;
  bool feeds = false;      // training waits at most facts.max_stall of the time
  bool certain = true;     // the intervals exclude other answers
  bool disturbed = false;  // by other programs, see disturbance.h
  std::string reason;      // a code of core/base/schema/reasons.h
  std::string because;     // one or two sentences; begins with "Uncertain" unless certain
  std::vector<std::string> notes;
  std::string pytorch, slurm;  // lines to paste, marked unless certain; empty without an answer
};
WorkersAdvice advise_workers(const WorkersFacts& facts);

}  // namespace howmany::reports
