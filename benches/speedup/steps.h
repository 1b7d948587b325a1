// SPDX-License-Identifier: Apache-2.0
// Times the training steps of a workload and, if requested, profiles some more. Collective. The
// results of rank 0 are the ones to report.
#pragma once

#include <map>
#include <string>

#include "benches/common/timing.h"
#include "benches/common/workload.h"
#include "benches/speedup/profile.h"
#include "parallel/sync/straggler.h"

namespace howmany::benches {

struct StepTimes {
  Samples samples;
  double loss = 0, flop = 0, wait_fraction = 0, peak_bytes = 0;
  double first_step_seconds = 0;  // as verify_first_step() returns it
  StepReport report;
  Straggler straggler;
  std::map<std::string, double> profile;  // counters of profile_steps(), or empty
};

// Checks the first step, then times steps, then profiles some more if `profile` has a file. Throws
// WrongData.
StepTimes measure_steps(const Workload& work, const TimingOptions& timing, const Dataset& data,
                        Comm& comm, Device device, const ProfileOptions& profile);

}  // namespace howmany::benches
