// SPDX-License-Identifier: Apache-2.0
#include "reports/results/run_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include "core/base/error.h"
#include "tests/reports/folder.h"
#include "tests/support/message_of.h"

namespace howmany::reports {
namespace {

namespace fs = std::filesystem;

// Runs in a folder of its own, because the default folder is relative.
class RunFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    before_ = fs::current_path();
    fs::current_path(folder_.path());
  }
  void TearDown() override { fs::current_path(before_); }

  static std::string refusal(const std::string& out) {
    return message_of<InputError>([&] { RunFolder::create(out); });
  }

 private:
  TemporaryFolder folder_;
  fs::path before_;
};

TEST_F(RunFolderTest, NamesOfRunsInOneSecondDiffer) {
  std::set<std::string> names;
  std::vector<RunFolder> held;
  for (int i = 0; i < 20; ++i) names.insert(held.emplace_back(RunFolder::create("")).path());
  EXPECT_EQ(names.size(), 20U);
}

TEST_F(RunFolderTest, AppendsALabelToTheDefaultName) {
  EXPECT_NE(RunFolder::create("", "-node7").path().find("-node7"), std::string::npos);
}

TEST_F(RunFolderTest, AcceptsANewAndAnEmptyFolder) {
  EXPECT_EQ(RunFolder::create("a/b").path(), "a/b");
  fs::create_directory("empty");
  EXPECT_EQ(RunFolder::create("empty").path(), "empty");
}

TEST_F(RunFolderTest, RemovesAnEmptyFolderOfItsOwnOnly) {
  { const RunFolder folder = RunFolder::create("new"); }
  EXPECT_FALSE(fs::exists("new"));
  fs::create_directory("mine");
  { const RunFolder folder = RunFolder::create("mine"); }
  EXPECT_TRUE(fs::exists("mine"));
  {
    const RunFolder folder = RunFolder::create("used");
    std::ofstream("used/summary.json") << "{}";
  }
  EXPECT_TRUE(fs::exists("used/summary.json"));
}

TEST_F(RunFolderTest, OtherUsersCannotWriteToANewFolder) {
  const mode_t before = umask(0);
  const RunFolder folder = RunFolder::create("new");
  umask(before);
  EXPECT_EQ(fs::status("new").permissions() & (fs::perms::group_write | fs::perms::others_write),
            fs::perms::none);
}

TEST_F(RunFolderTest, ReopensNothingThatOtherUsersCanWriteTo) {
  fs::create_directory("run");
  std::ofstream("run/plan.json") << "{}";
  { const RunFolder folder = RunFolder::reopen("run"); }
  for (const char* path : {"run", "run/plan.json"})
    for (const fs::perms other : {fs::perms::group_write, fs::perms::others_write}) {
      fs::permissions(path, other, fs::perm_options::add);
      EXPECT_NE(message_of<InputError>([] { RunFolder::reopen("run"); }).find(path),
                std::string::npos);
      fs::permissions(path, other, fs::perm_options::remove);
    }
  if (geteuid() != 0) return;
  ASSERT_EQ(chown("run/plan.json", 1, 1), 0);
  EXPECT_NE(message_of<InputError>([] { RunFolder::reopen("run"); }).find("another user"),
            std::string::npos);
}

TEST_F(RunFolderTest, RefusesAFolderWithFilesAndLeavesItAsItWas) {
  fs::create_directory("mine");
  std::ofstream("mine/thesis.txt") << "text";
  EXPECT_NE(refusal("mine").find("not empty"), std::string::npos);
  EXPECT_FALSE(fs::exists("mine/.lock"));
}

TEST_F(RunFolderTest, RefusesAnEarlierRun) {
  fs::create_directory("old");
  std::ofstream("old/summary.json") << "{}";
  EXPECT_NE(refusal("old").find("holds a run"), std::string::npos);
}

TEST_F(RunFolderTest, RefusesAFolderInUseAndNamesTheProcess) {
  const RunFolder held = RunFolder::create("shared");
  const std::string why = refusal("shared");
  EXPECT_NE(why.find("in use by process " + std::to_string(::getpid())), std::string::npos) << why;
}

TEST_F(RunFolderTest, IsFreeAgainIfTheProcessDied) {
  const pid_t child = ::fork();
  if (child == 0) {
    const RunFolder held = RunFolder::create("crashed");
    ::_exit(0);  // leaves the lock file, as SIGKILL does
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ASSERT_TRUE(fs::exists("crashed/.lock"));
  EXPECT_NO_THROW(RunFolder::create("crashed"));
}

TEST_F(RunFolderTest, LeavesNoLockFile) {
  fs::create_directory("done");
  { const RunFolder held = RunFolder::create("done"); }
  EXPECT_TRUE(fs::is_empty("done"));
}

}  // namespace
}  // namespace howmany::reports
