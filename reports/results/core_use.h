// CPU time of the cores that this process may use, and how much of it is ours.
#pragma once

namespace howmany::reports {

struct CoreUse {
  double busy_seconds = 0;   // of the cores this process may use, by anyone; stolen time too
  double total_seconds = 0;  // busy, idle and interrupts, which are nobody's
  double our_seconds = 0;    // of this process and its descendants that were waited for
};

// Zeros where /proc/stat cannot be read.
CoreUse read_core_use();
// The share of the cores that others used in between, 0 to 1; 0 when it is not known.
double busy_elsewhere(const CoreUse& before, const CoreUse& after);

}  // namespace howmany::reports
