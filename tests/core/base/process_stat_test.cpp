// SPDX-License-Identifier: Apache-2.0
#include "core/base/process_stat.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace howmany {
namespace {

TEST(ProcessStat, ReportsParentSessionAndState) {
  const ProcessStat own = stat_of(getpid());
  EXPECT_EQ(own.parent, getppid());
  EXPECT_EQ(own.session, getsid(0));
  EXPECT_TRUE(own.is_alive());
}

TEST(ProcessStat, AZombieIsNotAlive) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  EXPECT_EQ(stat_of(child).state, 'Z');
  EXPECT_FALSE(stat_of(child).is_alive());
  waitpid(child, nullptr, 0);
  EXPECT_EQ(stat_of(child).state, 0);
}

// The kernel answers ESRCH if the process ends between open() and read().
TEST(ProcessStat, DoesNotThrowIfTheProcessEndsMeanwhile) {
  std::signal(SIGCHLD, SIG_IGN);  // the kernel reaps children at once
  for (int i = 0; i < 300; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    while (stat_of(child).state != 0) {
    }
  }
  std::signal(SIGCHLD, SIG_DFL);
}

}  // namespace
}  // namespace howmany
