// SPDX-License-Identifier: Apache-2.0
// labels: process
// timeout: 120
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <thread>

#include "core/base/private_folder.h"
#include "parallel/launch/launch.h"
#include "tests/support/files.h"
#include "tests/support/message_of.h"
#include "tests/support/rank_main.h"

namespace howmany {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing_support::text_of;
using namespace std::chrono_literals;

// Longer than a busy machine delays a message between ranks that do not hang.
constexpr std::chrono::milliseconds kHang = 5s;

// --- the ranks: this program, started again with the name of a role ---

std::filesystem::path folder() { return std::getenv("TEST_FOLDER"); }

// Writes the file atomically.
void write_down(const std::string& name, const std::string& text) {
  std::ofstream(folder() / (name + ".tmp")) << text;
  std::filesystem::rename(folder() / (name + ".tmp"), folder() / name);
}

[[noreturn]] void sleep_for_ever() {
  for (;;) pause();
}

int sum(const Place& place) {
  const auto comm = connect(place, "gloo");
  Tensor t = Tensor::full({100'003}, place.rank + 1);
  comm->all_reduce(t);
  const double expected = place.world * (place.world + 1) / 2;
  if (t.data<float>()[100'002] != expected) return 9;
  std::cout << "rank " << place.rank << " is here" << std::endl;
  return 0;
}

// Rank 1 stops after some rounds. The others write the failure that they get to a file.
int lose_one(const Place& place, std::chrono::milliseconds timeout,
             const std::function<void()>& stop) {
  const auto comm = connect(place, "gloo");
  Tensor t = Tensor::full({1 << 20}, 1);
  comm->all_reduce(t);
  comm->set_timeout(timeout);
  try {
    for (int round = 0;; ++round) {
      if (place.rank == 1 && round == 3) stop();
      comm->all_reduce(t);
    }
  } catch (const CommError& e) {
    write_down(fmt::format("error{}", place.rank), e.what());
    return 3;
  }
}

// Rank 1 is killed in the middle of a large message.
int lose_one_within(const Place& place) {
  const auto comm = connect(place, "gloo");
  comm->barrier();
  if (place.rank == 1) {
    const Work work = comm->all_reduce_async(Tensor::full({1 << 24}, 1));
    raise(SIGKILL);
  }
  try {
    for (;;) comm->all_reduce(Tensor::full({1 << 24}, 1));
  } catch (const CommError& e) {
    write_down(fmt::format("error{}", place.rank), e.what());
    return 3;
  }
}

int sleep(const Place& place) {
  if (fork() == 0) sleep_for_ever();  // a grandchild
  write_down(fmt::format("pid{}", place.rank), std::to_string(getpid()));
  sleep_for_ever();
}

int ignore_signals(const Place& place) {
  std::signal(SIGTERM, SIG_IGN);
  return sleep(place);
}

int run_role(const std::string& role) {
  if (role == "launch") {
    launch_processes({"/proc/self/exe", "sleep"}, 2);
    return 0;
  }
  const Place place = place_from_environment();
  if (role == "sum") return sum(place);
  if (role == "kill") return lose_one(place, 30s, [] { raise(SIGKILL); });
  if (role == "kill_within") return lose_one_within(place);
  if (role == "hang") return lose_one(place, kHang, [] { sleep_for_ever(); });
  if (role == "throw") return lose_one(place, 30s, [] { _exit(7); });
  if (role == "sleep") return sleep(place);
  if (role == "ignore_signals") return ignore_signals(place);
  return 99;
}

// --- the tests ---

class Processes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::ranges::count(comm_names(), "gloo") == 0) GTEST_SKIP() << "built without gloo";
    setenv("TEST_FOLDER", notes_.path().c_str(), 1);
    setenv("TMPDIR", temporary_.path().c_str(), 1);
  }
  void TearDown() override {
    unsetenv("TMPDIR");
    EXPECT_TRUE(std::filesystem::is_empty(temporary_.path())) << "a rendezvous was left behind";
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child was left behind";
  }

  static RankExit launch(const std::string& role, int world, ProcessOptions options = {}) {
    return launch_processes({"/proc/self/exe", role}, world, options);
  }
  std::string note(const std::string& name) const { return text_of(notes_.path() + "/" + name); }
  void await_note(const std::string& name) const {
    while (note(name).empty()) std::this_thread::yield();
  }
  // Blocks until the process and all of its group have ended.
  static void await_end_of_group(int pid) {
    while (any_alive(pid, true)) std::this_thread::yield();
  }
  static void await_end_of(int pid) {
    while (any_alive(pid, false)) std::this_thread::yield();
  }
  int pid_of_rank(int rank) const { return std::stoi(note(fmt::format("pid{}", rank))); }
  pid_t start_launcher() const {
    const pid_t pid = fork();
    if (pid == 0) {
      execl("/proc/self/exe", "test", "launch", nullptr);
      _exit(127);
    }
    await_note("pid0");
    await_note("pid1");
    return pid;
  }

 private:
  // Ignores zombies: init reaps orphans, which may be slow in a container.
  static bool any_alive(int pid, bool whole_group) {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      if (!std::isdigit(entry.path().filename().c_str()[0])) continue;
      const std::string text = text_of(entry.path() / "stat");
      const size_t end = text.rfind(')');
      char state = 0;
      int parent = 0, group = 0;
      if (end == std::string::npos ||
          std::sscanf(text.c_str() + end + 1, " %c %d %d", &state, &parent, &group) != 3)
        continue;
      const bool is_meant = whole_group ? group == pid : std::stoi(text) == pid;
      if (is_meant && state != 'Z' && state != 'X') return true;
    }
    return false;
  }

  PrivateFolder notes_, temporary_;
};

TEST_F(Processes, SumOverRanks) {
  ::testing::internal::CaptureStdout();
  const RankExit exit = launch("sum", 3);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "rank 0 is here\n");
  EXPECT_EQ(exit.code, 0);
}

TEST_F(Processes, SurviveAKilledRankAndNameIt) {
  const RankExit exit = launch("kill", 3);
  EXPECT_EQ(exit.rank, 1);
  EXPECT_EQ(exit.signal, SIGKILL);
  EXPECT_EQ(exit.code, 128 + SIGKILL);
  for (const int survivor : {0, 2})
    EXPECT_THAT(note(fmt::format("error{}", survivor)),
                AllOf(HasSubstr(fmt::format("[all_reduce] rank {} of 3 (gloo): peer 1", survivor)),
                      HasSubstr("after ")));
}

TEST_F(Processes, SurviveARankKilledWithinACollective) {
  const RankExit exit = launch("kill_within", 2, {.grace = 60s});
  EXPECT_EQ(exit.rank, 1);
  EXPECT_EQ(exit.signal, SIGKILL);
  EXPECT_THAT(note("error0"), HasSubstr("peer 1"));
}

TEST_F(Processes, TimeOutOnARankThatHangs) {
  const RankExit exit = launch("hang", 3, {.grace = 10s});
  EXPECT_NE(exit.rank, 1) << "the survivors end first";
  EXPECT_EQ(exit.code, 3);
  for (const int survivor : {0, 2})
    EXPECT_THAT(note(fmt::format("error{}", survivor)), HasSubstr("peer 1"));
}

TEST_F(Processes, ReportTheFirstBadExit) {
  const RankExit exit = launch("throw", 2);
  EXPECT_EQ(exit.rank, 1);
  EXPECT_EQ(exit.code, 7);
  EXPECT_EQ(exit.signal, 0);
}

TEST_F(Processes, EndAtTheTimeLimit) {
  const RankExit exit = launch("sleep", 2, {.grace = 10s, .time_limit = 300ms});
  EXPECT_TRUE(exit.timed_out);
  EXPECT_EQ(exit.signal, SIGTERM);
}

TEST_F(Processes, EndThoughTheyIgnoreSignals) {
  // They must have started by the limit: before, the signal ends them.
  const RankExit exit = launch("ignore_signals", 2, {.grace = 300ms, .time_limit = 5s});
  EXPECT_TRUE(exit.timed_out);
  EXPECT_EQ(exit.signal, SIGKILL);
}

// Open MPI's mpirun sometimes hangs in its clean-up after a rank was killed.
TEST_F(Processes, EndThoughMpirunHangsAfterARankDied) {
  const std::filesystem::path mpirun = folder() / "mpirun";
  std::ofstream(mpirun) << "#!/bin/sh\ntrap '' TERM\necho 137 >\"$HOWMANY_EXITS/exit.1\"\n"
                        << "echo >\"$HOWMANY_EXITS/events\"\n"
                        << "while :; do sleep 1; done\n";
  std::filesystem::permissions(mpirun, std::filesystem::perms::owner_all);
  const std::string path = std::getenv("PATH");
  setenv("PATH", (folder().string() + ":" + path).c_str(), 1);
  const RankExit end = launch_processes({"true"}, 2, {.grace = 200ms, .mpirun = true});
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(end.rank, 1);
  EXPECT_EQ(end.code, 137);
  EXPECT_EQ(end.signal, SIGKILL);
}

TEST_F(Processes, EndWithASignalToTheLauncher) {
  for (const int signal : {SIGINT, SIGTERM}) {
    for (const char* name : {"pid0", "pid1"}) std::filesystem::remove(folder() / name);
    const pid_t launcher = start_launcher();
    kill(launcher, signal);
    int status = 0;
    waitpid(launcher, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
    for (const int rank : {0, 1}) await_end_of_group(pid_of_rank(rank));
  }
}

TEST_F(Processes, DieWithTheLauncher) {
  const pid_t launcher = start_launcher();
  kill(launcher, SIGKILL);
  waitpid(launcher, nullptr, 0);
  for (const int rank : {0, 1}) {
    await_end_of(pid_of_rank(rank));
    kill(-pid_of_rank(rank), SIGKILL);  // ends the orphaned children of the rank
  }
  for (const auto& left : std::filesystem::directory_iterator(std::getenv("TMPDIR")))
    std::filesystem::remove_all(left);
}

TEST_F(Processes, RefuseWhatCannotBeStarted) {
  EXPECT_THAT(message_of<Error>([&] { launch_processes({"no-such-program"}, 2); }),
              HasSubstr("cannot start 'no-such-program': No such file"));
  EXPECT_THROW(launch_processes({}, 2), std::invalid_argument);
  EXPECT_THROW(launch("sum", 0), std::invalid_argument);
  EXPECT_THROW(launch("sum", 1, {.environment = {"novalue"}}), std::invalid_argument);
}

}  // namespace

int main_of_rank(char** arguments) { return run_role(arguments[0]); }

}  // namespace howmany

int main(int argc, char** argv) {
  return howmany::testing_support::rank_main(argc, argv, howmany::main_of_rank);
}
