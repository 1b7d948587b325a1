// SPDX-License-Identifier: Apache-2.0
// Chooses the fewest loader workers that feed the devices, from probes, bounds and measured points.
// If none can, the answer states what limits the rate. Only measured points win. Predictions select
// the next measurement and are reported as predictions. Values only; not tied to any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/workers/levers.h"
#include "reports/workers/points.h"

namespace howmany::reports {

struct WorkersAdvice {
  std::optional<int> recommended;
  bool feeds = false;      // the demand is met within the stall; false without a demand
  bool certain = true;     // the interval excludes other answers
  bool disturbed = false;  // by other programs, see disturbance.h
  std::string reason;      // a code of core/base/schema/reasons.h
  std::string because;     // one sentence
  std::string limit;       // "decoding on 2 cores"
  std::vector<std::string> notes;
  std::vector<WorkersLever> levers;  // best first
  std::string pytorch, slurm;        // lines to paste; empty if there is no answer
};
WorkersAdvice advise_workers(const WorkersFacts& facts);

}  // namespace howmany::reports
