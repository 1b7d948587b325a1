// SPDX-License-Identifier: Apache-2.0
#include "core/base/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string_view>
#include <thread>

#include "core/base/clock.h"
#include "core/base/environ.h"
#include "core/base/process_stat.h"

namespace howmany {
namespace {

constexpr std::chrono::seconds kSessionEnd(2);  // for killed processes to end
constexpr std::chrono::milliseconds kSessionPoll(2);

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

// Runs between fork and exec. Makes only system calls, since other threads may hold any lock.
[[noreturn]] void be_child(const ChildOptions& options, const char* program, char* const* argv,
                           char* const* environment, pid_t parent, int failure) {
  prctl(PR_SET_PDEATHSIG, options.death_signal);
  if (getppid() != parent) _exit(127);  // the parent ended before prctl
  if (options.leads_session)
    setsid();
  else
    setpgid(0, 0);
  const int in = options.in >= 0 ? options.in : open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (in >= 0) dup2(in, STDIN_FILENO);
  if (options.out >= 0) dup2(options.out, STDOUT_FILENO);
  if (options.err >= 0) dup2(options.err, STDERR_FILENO);
  if (options.resets_signals) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(signal, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
  }
  if (options.folder.empty() || chdir(options.folder.c_str()) == 0)
    execvpe(program, argv, environment);
  const int error = errno;
  (void)!write(failure, &error, sizeof error);
  _exit(127);
}

}  // namespace

Child::Child(const ChildOptions& options) : leads_session_(options.leads_session) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    error_ = errno;
    return;
  }
  const Fd failure(ends[0]);
  Fd report(ends[1]);
  const std::vector<char*> argv = pointers(options.argv), variables = pointers(options.environment);
  const char* const program = options.program.empty() ? argv[0] : options.program.c_str();
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) be_child(options, program, argv.data(), variables.data(), parent, report.get());
  if (pid_ < 0) {
    error_ = errno;
    return;
  }
  report = Fd();                             // end of file below: exec succeeded
  if (!leads_session_) setpgid(pid_, pid_);  // parent and child race; the first call counts
  (void)!read(failure.get(), &error_, sizeof error_);
  fd_ = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  if (error_ != 0) end();
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      fd_(std::move(other.fd_)),
      leads_session_(other.leads_session_),
      error_(other.error_) {}

Child& Child::operator=(Child&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(fd_, other.fd_);
  std::swap(leads_session_, other.leads_session_);
  std::swap(error_, other.error_);
  return *this;
}

void Child::signal(int number) const {
  if (pid_ > 0) kill(-pid_, number);
}

bool Child::has_ended() const {
  siginfo_t info = {};
  return pid_ <= 0 ||
         waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid == pid_;
}

int Child::end() {
  int status = 0;
  if (pid_ <= 0) return status;
  kill(-pid_, SIGKILL);
  kill(pid_, SIGKILL);
  if (leads_session_) kill_session();
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

// Kills the processes of the session until none is left, except for its leader.
void Child::kill_session() const {
  const auto until = Clock::now() + kSessionEnd;
  for (bool any = true; any && Clock::now() < until;) {
    any = false;
    std::error_code unreadable;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", unreadable)) {
      const pid_t pid = std::atoi(entry.path().filename().c_str());
      if (pid <= 0 || pid == pid_) continue;
      const ProcessStat stat = stat_of(pid);
      if (stat.session != pid_ || !stat.is_alive()) continue;
      kill(pid, SIGKILL);
      any = true;
    }
    if (any) std::this_thread::sleep_for(kSessionPoll);
  }
}

std::vector<std::string> environment_behind(std::vector<std::string> first) {
  const auto name_of = [](std::string_view variable) {
    return variable.substr(0, variable.find('='));
  };
  std::set<std::string, std::less<>> set;
  for (const std::string& variable : first) set.emplace(name_of(variable));
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!set.contains(name_of(*variable))) first.emplace_back(*variable);
  return first;
}

int exit_code_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace howmany
