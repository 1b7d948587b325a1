// SPDX-License-Identifier: Apache-2.0
#include "core/base/process_stat.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace howmany {

ProcessStat stat_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text, '\0');      // unlike an iterator, does not throw if the process ends
  const size_t end = text.rfind(')');  // the name before it may hold anything
  ProcessStat found;
  if (end != std::string::npos)
    std::sscanf(text.c_str() + end + 1, " %c %d %*d %d", &found.state, &found.parent,
                &found.session);
  return found;
}

}  // namespace howmany
