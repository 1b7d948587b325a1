// SPDX-License-Identifier: Apache-2.0
// labels: process
#include "core/base/startup.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>

namespace howmany {
namespace {

// Returns the exit status of a child that runs `body`.
int status_of(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(PrepareProcess, KeepsNewFilesOffClosedStreams) {
  EXPECT_EQ(status_of([] {
              for (const int fd : {0, 1, 2}) close(fd);
              prepare_process();
              return open("/dev/null", O_RDONLY) > 2 ? 0 : 1;
            }),
            0);
}

TEST(PrepareProcess, WritesToClosedStdoutStillFail) {
  EXPECT_EQ(status_of([] {
              close(1);
              prepare_process();
              return write(1, "x", 1) == -1 ? 0 : 1;
            }),
            0);
}

TEST(PrepareProcess, WritesToClosedStderrSucceed) {
  EXPECT_EQ(status_of([] {
              close(2);
              prepare_process();
              return write(2, "x", 1) == 1 ? 0 : 1;
            }),
            0);
}

TEST(PrepareProcess, AnInterruptEndsWith130) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const int status = status_of([&] {
      prepare_process();
      raise(signal);
      return 0;
    });
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 130) << signal;
  }
}

TEST(PrepareProcess, KeepsNohup) {
  EXPECT_EQ(status_of([] {
              std::signal(SIGHUP, SIG_IGN);
              prepare_process();
              raise(SIGHUP);
              return 0;
            }),
            0);
}

TEST(PrepareProcess, FileSizeLimitIsAnError) {
  EXPECT_EQ(status_of([] {
              prepare_process();
              const rlimit none{0, 0};
              setrlimit(RLIMIT_FSIZE, &none);
              char name[] = "/tmp/hm-limit-XXXXXX";
              const int fd = mkstemp(name);
              unlink(name);
              return write(fd, "x", 1) == -1 && errno == EFBIG ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace howmany
