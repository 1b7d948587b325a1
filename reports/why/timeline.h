// SPDX-License-Identifier: Apache-2.0
// The steps that were recorded after the timed ones, as a trace for ui.perfetto.dev with all ranks
// on one clock.
//
// Tracks. One for each rank with the phases of its steps, and one below it with its buckets. A
//   bucket starts when its gradients are ready and the one before has ended.
// Clock. That of rank 0's host. If a rank's buckets end before or after those of rank 0 by more
//   than 1 ms and five times the median absolute deviation (the median), its times are shifted by
//   that. The name of its track then has the deviation.
// Thread safety. Pure functions.
#pragma once

#include <string>

#include "reports/gpus/results.h"
#include "reports/why/evidence.h"

namespace howmany::reports {

// Returns the trace of the last round of every configuration of the largest number of devices that
// has such steps. Empty if none has. Throws InputError as evidence_from() does.
std::string timeline(const Plan& plan, const Results& results);

// Returns a group of tracks. `id` must be unique in the file.
std::string timeline_group(const StepEvidence& evidence, const std::string& name, uint64_t id);

// The clock of a rank against that of rank 0.
struct ClockShift {
  double seconds = 0;    // to subtract; 0 if the clocks agree
  double deviation = 0;  // median absolute
};
ClockShift clock_shift(const StepEvidence& evidence, size_t rank);

}  // namespace howmany::reports
