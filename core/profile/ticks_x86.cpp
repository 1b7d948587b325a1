#include <x86intrin.h>

#include <fstream>
#include <string>

#include "core/profile/recorder.h"
#include "core/profile/ticks.h"

namespace howmany {
namespace {

// Where cores' counters differ or stand still at times, the kernel's own clock is another.
bool kernel_trusts_it() {
  std::ifstream in("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string name;
  return in >> name && name == "tsc";
}

const bool trusted = kernel_trusts_it();

}  // namespace

int64_t ticks() { return trusted ? static_cast<int64_t>(__rdtsc()) : profile_clock_ns(); }

}  // namespace howmany
