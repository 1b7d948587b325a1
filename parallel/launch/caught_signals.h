// SPDX-License-Identifier: Apache-2.0
// Catches SIGINT, SIGTERM and SIGHUP during its lifetime, SIGHUP not if it was ignored (nohup).
// Unblocks them. fd() is readable once one has arrived. Resets SIGCHLD to its default, because the
// exit codes of ignored children are lost. Ignores SIGPIPE, so that a closed stdout is an error of
// write().
#pragma once

#include <atomic>
#include <csignal>
#include <utility>
#include <vector>

namespace howmany {

class CaughtSignals {
 public:
  CaughtSignals();
  ~CaughtSignals();  // restores the handlers
  CaughtSignals(const CaughtSignals&) = delete;
  CaughtSignals& operator=(const CaughtSignals&) = delete;

  int fd() const { return fd_; }
  int take();  // returns the last signal that arrived and forgets it; 0: none

 private:
  static void on_signal(int signal);
  void set(int signal, void (*handler)(int));

  static inline std::atomic<int> caught_ = 0, wake_ = -1;
  int fd_;
  std::vector<std::pair<int, struct sigaction>> old_;
};

}  // namespace howmany
