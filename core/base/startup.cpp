// SPDX-License-Identifier: Apache-2.0
#include "core/base/startup.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <initializer_list>

#include "core/base/schema/exit_codes.h"

namespace howmany {
namespace {

void end_now(int) { _exit(exit_code::kInterrupted); }

}  // namespace

void prepare_process() {
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    if (std::signal(signal, end_now) == SIG_IGN) std::signal(signal, SIG_IGN);  // nohup
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // open() returns the lowest free number, which is fd. A read-only stdout makes writes fail.
    if (::open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY) != fd) return;
  }
}

}  // namespace howmany
