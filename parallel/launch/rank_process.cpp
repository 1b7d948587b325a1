// SPDX-License-Identifier: Apache-2.0
#include "parallel/launch/rank_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <thread>

#include "core/base/error.h"
#include "parallel/launch/mpirun.h"
#include "parallel/launch/process_stat.h"

namespace howmany {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kSessionEnd(2);  // for killed processes to end

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

// Runs between fork and exec. Makes only system calls, since other threads may hold any lock.
[[noreturn]] void exec_program(char* const* argv, char* const* environment, int rank, pid_t parent,
                               Streams streams, int report) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  if (streams.out >= 0)
    setsid();
  else
    setpgid(0, 0);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  if (rank > 0) dup2(null, STDOUT_FILENO);
  if (streams.out >= 0) dup2(streams.out, STDOUT_FILENO);
  if (streams.err >= 0) dup2(streams.err, STDERR_FILENO);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execvpe(argv[0], argv, environment);
  const int error = errno;
  (void)!write(report, &error, sizeof error);
  _exit(127);
}

// Kills the processes of the session, except for its leader. Returns false if there are none.
bool kill_session(pid_t session) {
  bool any = false;
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", unreadable)) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0 || pid == session) continue;
    const ProcessStat stat = stat_of(pid);
    if (stat.session != session || !stat.is_alive()) continue;
    kill(pid, SIGKILL);
    any = true;
  }
  return any;
}

}  // namespace

RankProcess::RankProcess(std::vector<std::string> argv, std::vector<std::string> environment,
                         int rank, Streams streams)
    : rank_(rank), leads_session_(streams.out >= 0) {
  int report[2];
  HM_ENSURE(pipe2(report, O_CLOEXEC) == 0, "[launch] pipe: {}", std::strerror(errno));
  const std::vector<char*> arguments = pointers(argv), variables = pointers(environment);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) exec_program(arguments.data(), variables.data(), rank, parent, streams, report[1]);
  int error = pid_ < 0 ? errno : 0;
  close(report[1]);
  if (pid_ > 0) (void)!read(report[0], &error, sizeof error);  // end of file: exec succeeded
  close(report[0]);
  if (pid_ > 0) fd_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  if (error == 0 && fd_ < 0) error = errno;
  if (error == 0) return;
  if (pid_ > 0) end();
  if (fd_ >= 0) close(fd_);
  throw Error(fmt::format("[launch] cannot start '{}': {}", argv[0], std::strerror(error)));
}
RankProcess::RankProcess(RankProcess&& other) noexcept
    : rank_(other.rank_),
      leads_session_(other.leads_session_),
      pid_(std::exchange(other.pid_, -1)),
      fd_(std::exchange(other.fd_, -1)) {}

RankProcess& RankProcess::operator=(RankProcess&& other) noexcept {
  std::swap(rank_, other.rank_);
  std::swap(leads_session_, other.leads_session_);
  std::swap(pid_, other.pid_);
  std::swap(fd_, other.fd_);
  return *this;
}

RankProcess::~RankProcess() {
  if (pid_ > 0) end();
  if (fd_ >= 0) close(fd_);
}

std::optional<RankExit> RankProcess::ended() {
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid != pid_)
    return {};
  end();
  const bool by_signal = info.si_code != CLD_EXITED;
  return RankExit{.rank = rank_,
                  .code = by_signal ? 128 + info.si_status : info.si_status,
                  .signal = by_signal ? info.si_status : 0};
}

void RankProcess::end() {
  kill(pid_, SIGKILL);
  kill(-pid_, SIGKILL);
  const auto until = Clock::now() + kSessionEnd;
  while (leads_session_ && kill_session(pid_) && Clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

// Returns this process's environment with `ours` added. Drops variables of the same names, and
// those of the launch that this process is a rank of.
std::vector<std::string> environment_with(std::vector<std::string> ours) {
  const auto name = [](const std::string& entry) { return entry.substr(0, entry.find('=')); };
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (std::ranges::find(ours, name(*entry), name) == ours.end() &&
        !is_of_outer_launch(name(*entry)))
      all.emplace_back(*entry);
  std::ranges::move(ours, std::back_inserter(all));
  return all;
}

}  // namespace howmany
