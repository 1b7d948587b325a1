// How busy the cores were with work that is not ours. A machine that is not idle slows two devices
// more than one, which looks like bad scaling.
#pragma once

namespace howmany {

struct CoreUse {
  double busy_seconds = 0;   // of the cores this process may use, by anyone, stolen time included
  double total_seconds = 0;  // busy and idle
  double our_seconds = 0;    // of this process and its children that ended
};

// Zeros where /proc/stat cannot be read.
CoreUse read_core_use();
// The share of the cores that others used in between, 0 to 1; 0 when it is not known.
double busy_elsewhere(const CoreUse& before, const CoreUse& after);

}  // namespace howmany
