// SPDX-License-Identifier: Apache-2.0
// labels: process
#include "core/base/temporary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "core/base/private_folder.h"
#include "core/base/startup.h"
#include "tests/support/message_of.h"

namespace howmany {
namespace {

namespace fs = std::filesystem;

class Temporary : public ::testing::Test {
 protected:
  Temporary() : root_((fs::path(::testing::TempDir()) / "hm-XXXXXX").string()) {
    if (mkdtemp(root_.data()) == nullptr) throw std::runtime_error("mkdtemp");
  }
  ~Temporary() override { fs::remove_all(root_); }

  std::string made(const std::string& name) const {
    const fs::path folder = fs::path(root_) / name;
    fs::create_directories(folder / "inside");
    std::ofstream(folder / "inside" / "file") << "text";
    return folder.string();
  }
  // Returns true once the folder is gone, or false after a minute.
  static bool disappears(const std::string& folder) {
    for (int i = 0; i < 6000 && fs::exists(folder); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return !fs::exists(folder);
  }

  std::string root_;
};

TEST_F(Temporary, DirectoryIsTmpdir) {
  setenv("TMPDIR", root_.c_str(), 1);
  EXPECT_EQ(temporary_directory(), fs::path(root_));
  unsetenv("TMPDIR");
  EXPECT_EQ(temporary_directory(), fs::path("/tmp"));
}

TEST_F(Temporary, DirectoryThrowsIfTmpdirIsMissing) {
  setenv("TMPDIR", (root_ + "/absent").c_str(), 1);
  EXPECT_THAT(
      message_of<std::invalid_argument>([&] { temporary_directory(); }),
      ::testing::AllOf(::testing::HasSubstr("TMPDIR"), ::testing::HasSubstr(root_ + "/absent")));
  unsetenv("TMPDIR");
}

TEST_F(Temporary, GuardRemovesFoldersIfProcessIsKilled) {
  const std::string one = made("one"), two = made("it's two");
  const pid_t child = fork();
  if (child == 0) {
    const FolderGuard guard({one, two});
    raise(SIGKILL);
    _exit(1);
  }
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(disappears(one));
  EXPECT_TRUE(disappears(two));
}

TEST_F(Temporary, GuardLeavesFoldersToTheirOwner) {
  const std::string folder = made("kept");
  { const FolderGuard guard({folder}); }
  EXPECT_TRUE(fs::exists(folder));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child was left behind";
}

TEST_F(Temporary, AnInterruptAtAnyTimeLeavesNoGuardedFolder) {
  setenv("TMPDIR", root_.c_str(), 1);
  for (int microseconds = 0; microseconds < 3000; microseconds += 100) {
    const pid_t child = fork();
    if (child == 0) {
      prepare_process();
      const GuardedFolder folder;
      raise(SIGSTOP);
      _exit(1);
    }
    usleep(static_cast<useconds_t>(microseconds));
    kill(child, SIGTERM);
    kill(child, SIGCONT);
    waitpid(child, nullptr, 0);
  }
  unsetenv("TMPDIR");
  for (int i = 0; i < 6000 && !fs::is_empty(root_); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(fs::is_empty(root_));
}

}  // namespace
}  // namespace howmany
