// SPDX-License-Identifier: Apache-2.0
#include "parallel/launch/caught_signals.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.h"

namespace howmany {

CaughtSignals::CaughtSignals() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  HM_ENSURE(fd_ >= 0, "[launch] eventfd: {}", std::strerror(errno));
  wake_ = fd_;
  caught_ = 0;
  sigset_t caught;
  sigemptyset(&caught);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    set(signal, &CaughtSignals::on_signal);
    sigaddset(&caught, signal);
  }
  set(SIGCHLD, SIG_DFL);
  set(SIGPIPE, SIG_IGN);
  pthread_sigmask(SIG_UNBLOCK, &caught, nullptr);
}

CaughtSignals::~CaughtSignals() {
  for (const auto& [signal, action] : old_) sigaction(signal, &action, nullptr);
  close(fd_);
}

int CaughtSignals::take() {
  uint64_t count = 0;
  (void)!read(fd_, &count, sizeof count);
  return caught_.exchange(0);
}

void CaughtSignals::on_signal(int signal) {
  const int error = errno;
  caught_ = signal;
  const uint64_t one = 1;
  (void)!write(wake_, &one, sizeof one);
  errno = error;
}

void CaughtSignals::set(int signal, void (*handler)(int)) {
  struct sigaction old {
  }, action{};
  sigaction(signal, nullptr, &old);
  if (signal == SIGHUP && old.sa_handler == SIG_IGN) return;
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
  old_.emplace_back(signal, old);
}

}  // namespace howmany
