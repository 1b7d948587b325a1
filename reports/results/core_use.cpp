// SPDX-License-Identifier: Apache-2.0
#include "reports/results/core_use.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace howmany::reports {
namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

double used_by(int who) {
  rusage usage = {};
  return ::getrusage(who, &usage) == 0 ? seconds(usage.ru_utime) + seconds(usage.ru_stime) : 0;
}

// Parses "cpu3 user nice system idle iowait irq softirq steal ...", in clock ticks. Interrupts do
// not count as busy: their cause is unknown, and interrupts of the loopback device mostly come from
// our own ranks.
void add_line(const std::string& line, const cpu_set_t& allowed, double tick, CoreUse& use) {
  unsigned cpu = 0;
  std::array<unsigned long long, 8> t{};
  const int found = std::sscanf(line.c_str(), "cpu%u %llu %llu %llu %llu %llu %llu %llu %llu", &cpu,
                                &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]);
  if (found != 9 || cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &allowed)) return;
  const auto busy = static_cast<double>(t[0] + t[1] + t[2] + t[7]);
  use.busy_seconds += busy * tick;
  use.total_seconds += (busy + static_cast<double>(t[3] + t[4] + t[5] + t[6])) * tick;
}

}  // namespace

CoreUse read_core_use() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  CoreUse use;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return use;
  const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  const char* proc = std::getenv("HOWMANY_PROC");
  std::ifstream stat(std::string(proc ? proc : "/proc") + "/stat");
  for (std::string line; std::getline(stat, line);) add_line(line, allowed, tick, use);
  use.our_seconds = used_by(RUSAGE_SELF) + used_by(RUSAGE_CHILDREN);
  return use;
}

double busy_elsewhere(const CoreUse& before, const CoreUse& after) {
  const double total = after.total_seconds - before.total_seconds;
  if (total <= 0) return 0;
  const double others =
      (after.busy_seconds - before.busy_seconds) - (after.our_seconds - before.our_seconds);
  return std::clamp(others / total, 0.0, 1.0);
}

}  // namespace howmany::reports
