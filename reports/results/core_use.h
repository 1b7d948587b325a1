// How busy the cores were with work that is not ours. A machine that is not idle slows two devices
// more than one, which looks like bad scaling.
#pragma once

#include <string>

namespace howmany::reports {

struct CoreUse {
  double busy_seconds = 0;   // of the cores this process may use, by anyone; stolen time too
  double total_seconds = 0;  // busy, idle and interrupts, which are nobody's
  double our_seconds = 0;    // of this process and its children that ended
};

// Zeros where /proc/stat cannot be read.
CoreUse read_core_use();
// The share of the cores that others used in between, 0 to 1; 0 when it is not known.
double busy_elsewhere(const CoreUse& before, const CoreUse& after);
// What an answer says of the largest of such shares; empty where it is small or not known (NaN).
std::string busy_note(double most);

}  // namespace howmany::reports
