// SPDX-License-Identifier: Apache-2.0
// labels: mpi process
// timeout: 300
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <thread>

#include "core/base/private_folder.h"
#include "parallel/launch/launch.h"
#include "tests/support/comm_claims.h"
#include "tests/support/files.h"
#include "tests/support/rank_main.h"

namespace howmany {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

// --- the ranks: this program, started again with the names of a backend and a role ---

std::string file_of(int rank) {
  return std::filesystem::path(std::getenv("TEST_FOLDER")) / fmt::format("error{}", rank);
}

void write_down(int rank, const std::string& text) { std::ofstream(file_of(rank)) << text; }

// Rank 1 ends by `end` after some rounds. The others write the failure that they get to a file. In
// a call that cannot be left, they exit with the same text on stderr.
int lose_one(Comm& comm, const std::function<void()>& end) {
  if (std::freopen(file_of(comm.rank()).c_str(), "w", stderr) == nullptr) return 97;
  Tensor t = Tensor::full({1 << 20}, 1);
  try {
    for (int round = 0;; ++round) {
      if (comm.rank() == 1 && round == 3) {
        end();
        return 4;
      }
      comm.all_reduce(t);
    }
  } catch (const CommError& e) {
    write_down(comm.rank(), e.what());
    return 3;
  }
}

// Reports that it runs, and communicates until a failure.
int stay(Comm& comm) {
  Tensor t = Tensor::full({1 << 20}, 1);
  for (int round = 0;; ++round) {
    comm.all_reduce(t);
    if (round == 3) write_down(comm.rank(), std::to_string(getpid()));
  }
}

int run_role(const std::string& backend, const std::string& role) {
  const auto comm = connect(place_from_environment(), backend);
  if (role == "everything") return check_everything(*comm), 0;
  if (role == "details") {
    if (comm->rank() == 0)
      for (const auto& [what, value] : comm->details()) std::cout << what << ": " << value << "\n";
    return 0;
  }
  if (role == "stay") return stay(*comm);
  if (role == "kill") return lose_one(*comm, [] { raise(SIGKILL); });
  if (role == "exit") return lose_one(*comm, [] { _exit(7); });
  if (role == "leave") return lose_one(*comm, [] {});
  if (role == "abort") return lose_one(*comm, [&] { comm->abort("rank 1 is out of luck"); });
  comm->set_timeout(500ms);
  if (role == "hang") return lose_one(*comm, [] { std::this_thread::sleep_for(60s); });
  return 99;
}

// --- the tests ---

using testing_support::names_in;
using testing_support::text_of;

void await(const std::function<bool()>& condition, const char* what) {
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (!condition()) {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << what;
    std::this_thread::sleep_for(10ms);
  }
}

class Mpi : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::ranges::count(comm_names(), "mpi") == 0) GTEST_SKIP() << "built without MPI";
    setenv("TEST_FOLDER", notes_.path().c_str(), 1);
    setenv("TMPDIR", temporary_.path().c_str(), 1);
  }
  void TearDown() override {
    unsetenv("TMPDIR");
    EXPECT_TRUE(std::filesystem::is_empty(temporary_.path())) << "files were left behind";
  }

  static RankExit launch(const std::string& role, int world, ProcessOptions options = {}) {
    options.mpirun = true;
    return launch_processes({std::filesystem::read_symlink("/proc/self/exe"), "mpi", role}, world,
                            options);
  }
  const std::string& temporary() const { return temporary_.path(); }
  std::string error_of(int rank) const {
    return text_of(fmt::format("{}/error{}", notes_.path(), rank));
  }
  // Expects that the survivors of three ranks report rank 1 and the operation.
  void expect_rank_1_named(const std::string& why) const {
    for (const int survivor : {0, 2})
      EXPECT_THAT(error_of(survivor),
                  AllOf(HasSubstr(fmt::format("[all_reduce] rank {} of 3 (mpi): peer 1", survivor)),
                        HasSubstr(why), HasSubstr("after ")));
  }

 private:
  PrivateFolder notes_, temporary_;
};

TEST_F(Mpi, DoesWhatEveryCommMustDo) {
  for (const int world : {1, 2, 3, 4}) EXPECT_EQ(launch("everything", world).code, 0) << world;
}

TEST_F(Mpi, TellsItsVersionAndThreadLevel) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(launch("details", 2).code, 0);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(),
              AllOf(HasSubstr("version: "), HasSubstr("thread_level: multiple asked for, "),
                    HasSubstr("cuda_aware: "), HasSubstr("progress: ")));
}

TEST_F(Mpi, SurvivesAKilledRankAndNamesIt) {
  const RankExit exit = launch("kill", 3, {.grace = 20s});
  EXPECT_EQ(exit.rank, 1);
  EXPECT_EQ(exit.signal, SIGKILL);
  EXPECT_EQ(exit.code, 128 + SIGKILL);
  expect_rank_1_named("ended");
}

TEST_F(Mpi, SurvivesARankThatExits) {
  const RankExit exit = launch("exit", 3, {.grace = 20s});
  EXPECT_EQ(exit.rank, 1);
  EXPECT_EQ(exit.code, 7);
  expect_rank_1_named("");
}

TEST_F(Mpi, TimesOutOnARankThatHangs) {
  const RankExit exit = launch("hang", 3, {.grace = 3s});
  EXPECT_EQ(exit.code, 3);
  expect_rank_1_named("failed: nothing came");
}

TEST_F(Mpi, LearnsThatARankLeft) {
  launch("leave", 3, {.grace = 3s});
  expect_rank_1_named("has left");
}

TEST_F(Mpi, LearnsWhyARankAborted) {
  launch("abort", 3, {.grace = 3s});
  expect_rank_1_named("failed: rank 1 is out of luck");
}

TEST_F(Mpi, NothingStaysWhenTheLauncherIsKilled) {
  const std::set<std::string> segments = names_in("/dev/shm");
  const pid_t launcher = fork();
  if (launcher == 0) _exit(launch("stay", 2).code);
  await([&] { return !error_of(0).empty() && !error_of(1).empty(); }, "the ranks do not start");
  const std::set<std::string> during = names_in("/dev/shm");
  EXPECT_NE(during, segments);
  kill(launcher, SIGKILL);
  waitpid(launcher, nullptr, 0);
  for (const int rank : {0, 1})
    await([&] { return kill(std::stoi(error_of(rank)), 0) != 0; }, "a rank goes on");
  await([&] { return std::filesystem::is_empty(temporary()); }, "temporary files stay");
  std::set<std::string> ours;
  std::ranges::set_difference(during, segments, std::inserter(ours, ours.end()));
  for (const std::string& name : ours)
    await([&] { return !names_in("/dev/shm").contains(name); }, "shared memory stays");
}

TEST_F(Mpi, RefusesAProcessThatMpirunDidNotStart) {
  const PrivateFolder folder;
  EXPECT_THROW(connect({0, 2, 0, "file:" + folder.path(), ""}, "mpi"), std::invalid_argument);
}

}  // namespace

int main_of_rank(char** arguments) {
  GTEST_FLAG_SET(throw_on_failure, true);
  return run_role(arguments[0], arguments[1]);
}

}  // namespace howmany

int main(int argc, char** argv) {
  return howmany::testing_support::rank_main(argc, argv, howmany::main_of_rank);
}
