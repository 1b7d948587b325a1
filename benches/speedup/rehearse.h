// SPDX-License-Identifier: Apache-2.0
// Times the training steps of a few ranks of a group, of which the others do not exist
// (parallel/comm/rehearsal.h).
#pragma once

#include <vector>

#include "benches/common/step_log.h"
#include "benches/common/timing.h"
#include "benches/common/workload.h"

namespace howmany::benches {

struct RehearsedSteps {
  Samples samples;
  double wait_fraction = 0, exposed_communication_seconds = 0, peak_bytes = 0;
  double bubble = 0, theoretical_bubble = 0;  // of ranks in turns
  std::vector<LoggedStep> logged;             // the last timed steps of this rank
};

// `work` is that of all ranks of the cost table. The ranks of `here` are the first of them; each
// is on its device and steps at the same time as the others. Values are not checked, because the
// gradients of the missing ranks are missing. Collective over `here`.
RehearsedSteps rehearse_steps(const Workload& work, const CostTable& costs,
                              const TimingOptions& timing, const Dataset& data, Comm& here,
                              Device device);

// The same for a mode that divides layers over ranks. The stages of one replica take turns on
// `here`. Returns the samples and the bubbles.
RehearsedSteps rehearse_in_turns(const Workload& work, const CostTable& costs,
                                 const TimingOptions& timing, const Dataset& data,
                                 const std::vector<Device>& here);

}  // namespace howmany::benches
