// SPDX-License-Identifier: Apache-2.0
#include "parallel/launch/rank_supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "core/base/child.h"
#include "core/base/error.h"
#include "core/base/process.h"
#include "core/base/process_stat.h"
#include "parallel/launch/mpirun.h"

namespace howmany {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kEndPoll(20);  // between looks for the end of the other ranks

struct RankLaunch {
  std::string folder, rank;
  int world = 1;
  pid_t launcher = 0;
  std::chrono::milliseconds grace{0};
};

std::string text_of_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Reads "<pid of the launcher> <grace in ms>", and removes it from the environment of the rank.
RankLaunch launch_from_environment() {
  RankLaunch launch{.folder = text_of_variable("HOWMANY_EXITS"),
                    .rank = text_of_variable("OMPI_COMM_WORLD_RANK")};
  const std::string request = text_of_variable(kSupervise);
  unsetenv(kSupervise);
  char* end = nullptr;
  launch.launcher = static_cast<pid_t>(std::strtol(request.c_str(), &end, 10));
  launch.grace = std::chrono::milliseconds(std::strtol(end, nullptr, 10));
  launch.world = std::atoi(text_of_variable("OMPI_COMM_WORLD_SIZE").c_str());
  return launch;
}

void set_rank_environment(const RankLaunch& launch) {
  setenv("RANK", launch.rank.c_str(), 1);
  setenv("WORLD_SIZE", std::to_string(launch.world).c_str(), 1);
  setenv("LOCAL_RANK", text_of_variable("OMPI_COMM_WORLD_LOCAL_RANK").c_str(), 1);
  setenv("LOCAL_WORLD_SIZE", text_of_variable("OMPI_COMM_WORLD_LOCAL_SIZE").c_str(), 1);
}

// A reader never gets half a file.
void write_file(const RankLaunch& launch, const char* kind, int value) {
  const std::string path = fmt::format("{}/{}.{}", launch.folder, kind, launch.rank);
  const std::string draft = fmt::format("{}/.{}.{}", launch.folder, kind, launch.rank);
  std::ofstream(draft) << value << "\n";
  std::error_code ignored;
  std::filesystem::rename(draft, path, ignored);
  report_event(launch.folder);
}

// Runs this program again as the rank, and returns the child. Its error() is not 0 if it cannot be
// started.
Child start_rank(const RankLaunch& launch) {
  const Fd nowhere(open("/dev/null", O_WRONLY | O_CLOEXEC));
  std::error_code unreadable;
  return Child({.argv = arguments_of_this_process(),
                .environment = environment_behind({}),
                .program = std::filesystem::read_symlink("/proc/self/exe", unreadable),
                .out = launch.rank != "0" ? nowhere.get() : -1,
                .resets_signals = true});
}

// Blocks until the rank has ended. Returns its exit code, or 128 + signal.
int wait_for(Child& rank) {
  pollfd ended{rank.fd(), POLLIN, 0};
  while (!rank.has_ended()) poll(&ended, 1, rank.fd() < 0 ? 50 : -1);
  return exit_code_of(rank.end());
}

bool all_ended(const RankLaunch& launch) {
  int ended = 0;
  std::error_code gone;
  for (const auto& file : std::filesystem::directory_iterator(launch.folder, gone)) {
    const std::string name = file.path().filename();
    if (name.starts_with("exit.") || name.starts_with("done.")) ++ended;
  }
  return gone || ended >= launch.world;
}

}  // namespace

void supervise_rank() {
  if (std::getenv(kSupervise) == nullptr) return;
  const RankLaunch launch = launch_from_environment();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // mpirun may have ended before prctl. It is a child of the launcher.
  if (stat_of(getppid()).parent != launch.launcher) _exit(127);
  set_rank_environment(launch);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_IGN);
  Child rank = start_rank(launch);
  if (rank.error() != 0) {
    write_file(launch, "exit", 127);
    _exit(127);
  }
  write_file(launch, "pid", rank.pid());
  const int code = wait_for(rank);
  std::error_code ignored;
  std::filesystem::remove(fmt::format("{}/pid.{}", launch.folder, launch.rank), ignored);
  write_file(launch, code == 0 ? "done" : "exit", code);
  const auto until = Clock::now() + launch.grace;
  while (code != 0 && Clock::now() < until && !all_ended(launch))
    std::this_thread::sleep_for(kEndPoll);
  _exit(code);
}

}  // namespace howmany
