// SPDX-License-Identifier: Apache-2.0
// A program of the bundle. It starts `howmany-programs` next to it, which has the code of all of them, under its own name.
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstring>

int main(int, char** argv) {
  static char own[PATH_MAX], programs[PATH_MAX + 32];
  if (readlink("/proc/self/exe", own, sizeof own - 1) < 0) return std::perror("/proc/self/exe"), 127;
  std::strcpy(programs, own);
  std::strcpy(std::strrchr(programs, '/') + 1, "howmany-programs");
  argv[0] = own;
  execv(programs, argv);
  return std::perror(programs), 127;
}
