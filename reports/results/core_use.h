// SPDX-License-Identifier: Apache-2.0
// CPU time of the cores in this process's affinity mask, and this process's part of it.
#pragma once

namespace howmany::reports {

struct CoreUse {
  double busy_seconds = 0;   // used by any process; includes stolen time
  double total_seconds = 0;  // busy, idle and interrupts, which count for no process
  double our_seconds = 0;    // of this process and its reaped descendants
};

// Reads /proc/stat, or $HOWMANY_PROC/stat if that is set: tests set it, so that other programs do
// not matter. Returns zeros if the file cannot be read.
CoreUse read_core_use();
// Returns the share of the cores that other programs used in between, 0 to 1. Returns 0 if it is
// unknown.
double busy_elsewhere(const CoreUse& before, const CoreUse& after);

}  // namespace howmany::reports
