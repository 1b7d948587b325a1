#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "parallel/launch.h"
#include "parallel/mpirun.h"
#include "parallel/private_folder.h"

namespace howmany {
namespace {

using Clock = std::chrono::steady_clock;
using Action = struct sigaction;

constexpr const char* kSharedMemory = "/dev/shm";

// Catches SIGINT and SIGTERM during its lifetime. fd() is readable once one has arrived. Resets
// SIGCHLD to its default, because the exit codes of ignored children are lost.
class Signals {
 public:
  Signals() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    HM_ENSURE(fd_ >= 0, "[launch] eventfd: {}", std::strerror(errno));
    wake_ = fd_;
    caught_ = 0;
    Action action{};
    action.sa_handler = &Signals::on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, &old_interrupt_);
    sigaction(SIGTERM, &action, &old_terminate_);
    Action plain{};
    plain.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &plain, &old_child_);
  }
  ~Signals() {
    sigaction(SIGINT, &old_interrupt_, nullptr);
    sigaction(SIGTERM, &old_terminate_, nullptr);
    sigaction(SIGCHLD, &old_child_, nullptr);
    close(fd_);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_; }
  int take() {
    uint64_t count = 0;
    (void)!read(fd_, &count, sizeof count);
    return caught_.exchange(0);
  }

 private:
  static void on_signal(int signal) {
    const int error = errno;
    caught_ = signal;
    const uint64_t one = 1;
    (void)!write(wake_, &one, sizeof one);
    errno = error;
  }

  static inline std::atomic<int> caught_ = 0, wake_ = -1;
  int fd_;
  Action old_interrupt_{}, old_terminate_{}, old_child_{};
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
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

// Runs between fork and exec. Makes only system calls, since other threads may hold any lock.
[[noreturn]] void become(char* const* argv, char* const* environment, int rank, pid_t parent,
                         int report) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  setpgid(0, 0);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  if (rank > 0) dup2(null, STDOUT_FILENO);
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execvpe(argv[0], argv, environment);
  const int error = errno;
  (void)!write(report, &error, sizeof error);
  _exit(127);
}

// A rank in a process group of its own, so that its children can be ended with it.
class RankProcess {
 public:
  RankProcess(std::vector<std::string> argv, std::vector<std::string> environment, int rank)
      : rank_(rank) {
    int report[2];
    HM_ENSURE(pipe2(report, O_CLOEXEC) == 0, "[launch] pipe: {}", std::strerror(errno));
    const std::vector<char*> arguments = pointers(argv), variables = pointers(environment);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) become(arguments.data(), variables.data(), rank, parent, report[1]);
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
  RankProcess(RankProcess&& other) noexcept
      : rank_(other.rank_),
        pid_(std::exchange(other.pid_, -1)),
        fd_(std::exchange(other.fd_, -1)) {}
  RankProcess& operator=(RankProcess&& other) noexcept {
    std::swap(rank_, other.rank_);
    std::swap(pid_, other.pid_);
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~RankProcess() {
    if (pid_ > 0) end();
    if (fd_ >= 0) close(fd_);
  }

  int fd() const { return fd_; }
  void send(int signal) const { kill(-pid_, signal); }

  // Returns how the rank ended, or nullopt if it still runs. Kills the rest of its process group
  // before it reaps the rank, so that the group id is still its own.
  std::optional<RankExit> ended() {
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

 private:
  void end() {
    kill(pid_, SIGKILL);
    kill(-pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
  }

  int rank_;
  pid_t pid_ = -1;
  int fd_ = -1;
};

class Watch {
 public:
  // pass: forwards a signal to the ranks, or returns false; then each process gets the signal.
  // failed: returns true if a rank that is not our child had a bad exit. May be empty.
  Watch(std::vector<RankProcess> ranks, const ProcessOptions& options,
        std::function<bool(int)> pass, std::function<bool()> failed)
      : ranks_(std::move(ranks)),
        pass_(std::move(pass)),
        failed_(std::move(failed)),
        grace_(options.grace) {
    if (options.time_limit.count() > 0) limit_ = Clock::now() + options.time_limit;
  }

  RankExit wait(Signals& signals) {
    while (!ranks_.empty()) {
      sleep(signals.fd());
      if (const int signal = signals.take()) pass_on(signal);
      std::erase_if(ranks_, [this](RankProcess& rank) { return reap(rank); });
      // The scripts of the ranks apply the grace. mpirun sometimes hangs after a rank was killed.
      if (looks() && failed_()) next_kill_ = Clock::now() + 2 * grace_;
      escalate(Clock::now());
    }
    first_.timed_out = timed_out_;
    return first_;
  }

  int signal() const { return signal_; }

 private:
  bool looks() const { return failed_ && !next_kill_; }

  void sleep(int signal_fd) {
    std::vector<pollfd> polled = {{signal_fd, POLLIN, 0}};
    for (const RankProcess& rank : ranks_) polled.push_back({rank.fd(), POLLIN, 0});
    int milliseconds = looks() ? 500 : -1;
    for (const auto& due : {limit_, next_kill_})
      if (due) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(*due - Clock::now()).count();
        const int bounded = static_cast<int>(std::clamp<int64_t>(left, 0, 1'000'000));
        milliseconds = milliseconds < 0 ? bounded : std::min(milliseconds, bounded);
      }
    poll(polled.data(), polled.size(), milliseconds);
  }

  void pass_on(int signal) {
    signal_ = signal;
    next_kill_ = Clock::now() + grace_;
    if (pass_(signal)) return;
    for (const RankProcess& rank : ranks_) rank.send(signal);
    next_signal_ = SIGKILL;
  }

  bool reap(RankProcess& rank) {
    const auto exit = rank.ended();
    if (!exit) return false;
    if (exit->code == 0 || first_.code != 0) return true;
    first_ = *exit;
    if (!next_kill_) next_kill_ = Clock::now() + grace_;
    return true;
  }

  void escalate(Clock::time_point now) {
    if (limit_ && now >= *limit_) {
      timed_out_ = true;
      limit_.reset();
      next_kill_ = now;
    }
    if (!next_kill_ || now < *next_kill_) return;
    for (const RankProcess& rank : ranks_) rank.send(next_signal_);
    next_signal_ = SIGKILL;
    next_kill_ = now + grace_;
  }

  std::vector<RankProcess> ranks_;
  const std::function<bool(int)> pass_;
  const std::function<bool()> failed_;
  const std::chrono::milliseconds grace_;
  std::optional<Clock::time_point> limit_, next_kill_;
  int next_signal_ = SIGTERM;
  int signal_ = 0;
  bool timed_out_ = false;
  RankExit first_;
};

std::vector<RankProcess> start_ranks(const std::vector<std::string>& argv, int world,
                                     const ProcessOptions& options, const LaunchFolders& folders) {
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < world; ++rank) {
    std::vector<std::string> ours = options.environment;
    ours.push_back(fmt::format("RANK={}", rank));
    ours.push_back(fmt::format("LOCAL_RANK={}", rank));
    ours.push_back(fmt::format("WORLD_SIZE={}", world));
    ours.push_back(fmt::format("LOCAL_WORLD_SIZE={}", world));
    ours.push_back(fmt::format("HOWMANY_RENDEZVOUS=file:{}/meet", folders.launch));
    ranks.emplace_back(argv, environment_with(std::move(ours)), rank);
  }
  return ranks;
}

// Starts mpirun, whose children are the ranks.
std::vector<RankProcess> start_mpirun(const std::vector<std::string>& argv, int world,
                                      const ProcessOptions& options, const LaunchFolders& folders) {
  std::vector<std::string> ours = options.environment;
  ours.push_back(fmt::format("HOWMANY_RENDEZVOUS=file:{}/meet", folders.launch));
  ours.push_back(fmt::format("HOWMANY_EXITS={}", folders.launch));
  std::vector<RankProcess> started;
  started.emplace_back(mpirun_command(argv, world, folders, options.grace),
                       environment_with(std::move(ours)), 0);
  return started;
}

RankExit run(const std::vector<std::string>& argv, int world, const ProcessOptions& options,
             int& signal) {
  const PrivateFolder folder;
  std::optional<PrivateFolder> segments;
  if (options.mpirun && access(kSharedMemory, W_OK) == 0) segments.emplace(kSharedMemory);
  Signals signals;
  const auto start = options.mpirun ? start_mpirun : start_ranks;
  std::function<bool()> failed;
  if (options.mpirun) failed = [&] { return first_bad_exit(folder.path(), world).has_value(); };
  const auto pass = [&](int passed) {
    if (options.mpirun) signal_ranks(folder.path(), world, passed);
    return options.mpirun;
  };
  const LaunchFolders folders{folder.path(), segments ? segments->path() : ""};
  Watch watch(start(argv, world, options, folders), options, pass, failed);
  RankExit exit = watch.wait(signals);
  signal = watch.signal();
  if (!options.mpirun || exit.code == 0) return exit;
  const bool timed_out = exit.timed_out;
  exit.rank = -1;
  exit = first_bad_exit(folder.path(), world).value_or(exit);
  exit.timed_out = timed_out;
  return exit;
}

}  // namespace

RankExit launch_processes(const std::vector<std::string>& argv, int world,
                          const ProcessOptions& options) {
  HM_REQUIRE(!argv.empty() && world >= 1, "[launch] {} ranks of nothing", world);
  for (const std::string& entry : options.environment)
    HM_REQUIRE(entry.find('=') != std::string::npos && entry[0] != '=',
               "[launch] '{}' is not NAME=value", entry);
  int signal = 0;
  const RankExit exit = run(argv, world, options, signal);
  if (signal != 0) raise(signal);
  return exit;
}

}  // namespace howmany
