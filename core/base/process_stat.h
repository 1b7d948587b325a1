// SPDX-License-Identifier: Apache-2.0
// The fields that the kernel reports of a process in /proc/<pid>/stat.
#pragma once

#include <sys/types.h>

namespace howmany {

struct ProcessStat {
  char state = 0;  // 'R', 'S', ...; 0: there is no such process
  pid_t parent = 0, session = 0;

  bool is_alive() const { return state != 0 && state != 'Z' && state != 'X'; }
  bool is_stopped() const { return state == 'T' || state == 't'; }
};

ProcessStat stat_of(pid_t pid);

}  // namespace howmany
