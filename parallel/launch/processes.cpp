// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>

#include "core/base/child.h"
#include "core/base/error.h"
#include "core/base/fd.h"
#include "core/base/private_folder.h"
#include "core/base/process_stat.h"
#include "core/base/temporary.h"
#include "parallel/launch/caught_signals.h"
#include "parallel/launch/launch.h"
#include "parallel/launch/mpirun.h"
#include "parallel/launch/relay.h"

namespace howmany {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kSharedMemory = "/dev/shm";
constexpr uint64_t kSegmentBytes = uint64_t{5} << 20;  // per rank: 4 MiB in Open MPI 4.1
constexpr rlim_t kFewFiles = 256;
constexpr int kPollWithoutFd = 50;  // ms between polls on a kernel without pidfd
constexpr std::chrono::milliseconds kKillDelay(1'000);    // between SIGTERM and SIGKILL
constexpr std::chrono::milliseconds kOutputDrain(300);    // for mpirun to pass on the ranks' output
constexpr std::chrono::milliseconds kSignalGrace(3'000);  // between a forwarded signal and SIGKILL

std::string started_file(const std::string& folder, int rank) {
  return fmt::format("{}/started.{}", folder, rank);
}

// A FIFO that is readable once a rank or its supervisor has written a file (report_event).
class Events {
 public:
  explicit Events(const std::string& folder) {
    const std::string path = events_file(folder);
    if (mkfifo(path.c_str(), 0600) == 0)
      fd_ = Fd(open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    HM_ENSURE(fd_, "[launch] FIFO {}: {}", path, std::strerror(errno));
  }

  int fd() const { return fd_.get(); }
  void clear() const {
    char bytes[256];
    while (read(fd_.get(), bytes, sizeof bytes) > 0) {
    }
  }

 private:
  Fd fd_;
};

std::string file_limit_hint() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur >= kFewFiles
             ? ""
             : fmt::format("; the limit of open files is {}: raise it by ulimit -n",
                           limit.rlim_cur);
}

// This process's environment behind `ours`, without the variables of the launch that this process
// is a rank of.
std::vector<std::string> environment_of_ranks(std::vector<std::string> ours) {
  const size_t ours_count = ours.size();
  std::vector<std::string> all = environment_behind(std::move(ours));
  std::erase_if(all, [&, at = size_t{0}](const std::string& entry) mutable {
    return at++ >= ours_count && is_of_outer_launch(entry.substr(0, entry.find('=')));
  });
  return all;
}

// A rank, or mpirun.
struct RankChild {
  int rank;
  Child child;
};

class RankMonitor {
 public:
  RankMonitor(int world, const ProcessOptions& options, const LaunchFolders& folders)
      : world_(world), options_(options), folders_(folders), events_(folders.launch) {
    const auto now = Clock::now();
    if (options.time_limit.count() > 0) limit_ = now + options.time_limit;
    if (options.start_limit.count() > 0) start_ = now + options.start_limit;
  }

  RankExit run(const std::vector<std::string>& argv, CaughtSignals& signals) {
    start(argv);
    while (!children_.empty()) {
      sleep(signals.fd());
      if (out_) out_->copy();
      if (err_) err_->copy();
      events_.clear();
      if (const int signal = signals.take()) forward(signal);
      std::erase_if(children_, [this](RankChild& child) { return reap(child); });
      check_progress(Clock::now());
    }
    if (options_.mpirun) finish_mpirun();
    first_.timed_out = timed_out_;
    first_.forwarded = signal_;
    return first_;
  }

 private:
  void start(const std::vector<std::string>& argv) {
    std::vector<std::string> common = options_.environment;
    common.push_back(fmt::format("HOWMANY_RENDEZVOUS=file:{}/meet", folders_.launch));
    common.push_back(fmt::format("HOWMANY_EXITS={}", folders_.launch));
    if (options_.mpirun) return start_mpirun(argv, std::move(common));
    for (int rank = 0; rank < world_; ++rank) {
      std::vector<std::string> ours = common;
      ours.push_back(fmt::format("RANK={}", rank));
      ours.push_back(fmt::format("LOCAL_RANK={}", rank));
      ours.push_back(fmt::format("WORLD_SIZE={}", world_));
      ours.push_back(fmt::format("LOCAL_WORLD_SIZE={}", world_));
      add_child({.argv = argv,
                 .environment = environment_of_ranks(std::move(ours)),
                 .out = rank > 0 ? nowhere_.get() : -1,
                 .resets_signals = true},
                rank);
    }
  }

  void add_child(const ChildOptions& options, int rank) {
    Child child(options);
    HM_ENSURE(child.error() == 0, "[launch] cannot start '{}': {}", options.argv[0],
              std::strerror(child.error()));
    children_.push_back({rank, std::move(child)});
  }

  // The child is mpirun. Its children are the supervisors of the ranks.
  void start_mpirun(const std::vector<std::string>& argv, std::vector<std::string> environment) {
    out_.emplace(STDOUT_FILENO);
    err_.emplace(STDERR_FILENO);
    environment.push_back(fmt::format("{}={} {}", kSupervise, getpid(),
                                      (options_.grace + kKillDelay + kKillDelay).count()));
    if (std::string preload = loopback_preload(); !preload.empty())
      environment.push_back(std::move(preload));
    add_child({.argv = mpirun_command(argv, world_, folders_),
               .environment = environment_of_ranks(std::move(environment)),
               .out = out_->input(),
               .err = err_->input(),
               .leads_session = true,
               .resets_signals = true},
              0);
    out_->close_input();
    err_->close_input();
  }

  void sleep(int signal_fd) {
    std::vector<pollfd> polled = {{signal_fd, POLLIN, 0}, {events_.fd(), POLLIN, 0}};
    for (const auto* relay : {&out_, &err_})
      if (*relay) polled.push_back((*relay)->wanted());
    int milliseconds = -1;
    for (const RankChild& each : children_) {
      polled.push_back({each.child.fd(), POLLIN, 0});
      if (each.child.fd() < 0) milliseconds = kPollWithoutFd;
    }
    for (const auto& due : {limit_, start_, next_kill_})
      if (due) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(*due - Clock::now()).count();
        const int bounded = static_cast<int>(std::clamp<int64_t>(left, 0, 1'000'000));
        milliseconds = milliseconds < 0 ? bounded : std::min(milliseconds, bounded);
      }
    poll(polled.data(), polled.size(), milliseconds);
  }

  // The pid of the rank, or 0 if it does not run.
  pid_t pid_of(int rank) const {
    if (options_.mpirun) return pid_of_rank(folders_.launch, rank);
    for (const RankChild& each : children_)
      if (each.rank == rank) return each.child.pid();
    return 0;
  }
  bool has_started(int rank) const {
    return access(started_file(folders_.launch, rank).c_str(), F_OK) == 0;
  }
  // Returns true if every rank can handle a signal.
  bool all_started() const {
    for (int rank = 0; rank < world_; ++rank) {
      if (options_.start_limit.count() > 0 && !has_started(rank)) return false;
      if (options_.mpirun && pid_of(rank) == 0) return false;
    }
    return true;
  }

  // Ranks that have not started have nothing to save.
  void forward(int signal) {
    signal_ = signal;
    start_.reset();
    if (!all_started()) return send(SIGKILL);
    send(signal);
    next_signal_ = SIGKILL;
    next_kill_ = Clock::now() + kSignalGrace;
  }

  // A stopped process handles no other signal than SIGKILL.
  void send(int signal) {
    for (int rank = 0; rank < world_; ++rank) {
      const pid_t pid = pid_of(rank);
      if (pid > 0) kill(-pid, stat_of(pid).is_stopped() ? SIGKILL : signal);
    }
    if (!options_.mpirun || signal != SIGKILL) return;
    for (const RankChild& each : children_) each.child.signal(SIGKILL);
  }

  // Returns true if the child has ended.
  bool reap(RankChild& each) {
    if (!each.child.has_ended()) return false;
    const int status = each.child.end(), code = exit_code_of(status);
    if (code == 0 || first_.code != 0) return true;
    first_ = {
        .rank = each.rank, .code = code, .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0};
    kill_after(options_.grace);
    return true;
  }

  void kill_after(std::chrono::milliseconds delay) {
    if (!next_kill_) next_kill_ = Clock::now() + delay;
    start_.reset();
  }

  void check_progress(Clock::time_point now) {
    if (options_.mpirun && !next_kill_ && first_bad_exit(folders_.launch, world_))
      kill_after(options_.grace);
    if (options_.mpirun && next_kill_ && all_ended()) hurry_mpirun(now);
    if (start_ && all_started()) start_.reset();
    if (start_ && now >= *start_) give_up_start();
    escalate(now);
  }

  bool all_ended() const {
    for (int rank = 0; rank < world_; ++rank)
      if (access(fmt::format("{}/exit.{}", folders_.launch, rank).c_str(), F_OK) != 0 &&
          access(fmt::format("{}/done.{}", folders_.launch, rank).c_str(), F_OK) != 0)
        return false;
    return true;
  }
  // mpirun takes a second or more to end after a failure, and sometimes hangs.
  void hurry_mpirun(Clock::time_point now) {
    if (hurried_) return;
    hurried_ = true;
    next_signal_ = SIGKILL;
    next_kill_ = std::min(*next_kill_, now + kOutputDrain);
  }

  void give_up_start() {
    start_.reset();
    first_ = late_rank();
    next_signal_ = SIGKILL;
    next_kill_ = Clock::now();
  }

  // Returns the rank that keeps the others from starting, by the states of the processes.
  RankExit late_rank() const {
    const double seconds = std::chrono::duration<double>(options_.start_limit).count();
    RankExit late{.rank = options_.mpirun ? -1 : 0, .code = 3};
    late.why = fmt::format("did not start the ranks within {:.1f} s{}", seconds, file_limit_hint());
    for (int rank = 0; rank < world_; ++rank) {
      const pid_t pid = pid_of(rank);
      if (pid == 0 || has_started(rank)) continue;
      late.rank = rank;
      late.why = fmt::format("did not connect to the others within {:.1f} s", seconds);
      if (!stat_of(pid).is_stopped()) continue;
      late.why += ": it is stopped (SIGSTOP)";
      return late;
    }
    return late;
  }

  void escalate(Clock::time_point now) {
    if (limit_ && now >= *limit_) {
      timed_out_ = true;
      limit_.reset();
      next_kill_ = now;
    }
    if (!next_kill_ || now < *next_kill_) return;
    send(next_signal_);
    next_signal_ = SIGKILL;
    next_kill_ = now + std::min(options_.grace, kKillDelay);
  }

  void finish_mpirun() {
    while (out_->copy() || err_->copy()) {
    }
    if (out_->error() != 0 && signal_ == 0)
      throw Error(fmt::format("cannot write to stdout: {}", std::strerror(out_->error())));
    if (first_.code == 0 || !first_.why.empty()) return;
    const RankExit mpirun{.rank = -1,
                          .code = first_.code,
                          .signal = first_.signal,
                          .last_line = err_->last_line() + file_limit_hint()};
    first_ = first_bad_exit(folders_.launch, world_).value_or(mpirun);
  }
  const int world_;
  const ProcessOptions& options_;
  const LaunchFolders& folders_;
  const Events events_;
  std::optional<Relay> out_, err_;  // of mpirun
  const Fd nowhere_{open("/dev/null", O_WRONLY | O_CLOEXEC)};
  std::vector<RankChild> children_;
  std::optional<Clock::time_point> limit_, start_, next_kill_;
  int next_signal_ = SIGTERM;
  int signal_ = 0;
  bool timed_out_ = false, hurried_ = false;
  RankExit first_;
};

// Without room for its segments, Open MPI ends a rank by SIGBUS or SIGSEGV.
void require_shared_memory(int world) {
  const uint64_t needed = kSegmentBytes * static_cast<uint64_t>(world);
  struct statvfs disk {};
  if (statvfs(kSharedMemory, &disk) == 0) {
    const uint64_t left = uint64_t{disk.f_bavail} * disk.f_frsize;
    HM_ENSURE(left >= needed,
              "{} ranks of mpi need {} MiB in {}, and {} MiB are free: remove files there, or use "
              "--backend gloo",
              world, needed >> 20, kSharedMemory, left >> 20);
  }
  rlimit limit{};
  HM_ENSURE(getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= kSegmentBytes,
            "mpi needs files of {} MiB in {}, and ulimit -f allows {} bytes: raise it, or use "
            "--backend gloo",
            kSegmentBytes >> 20, kSharedMemory, limit.rlim_cur);
}

RankExit run(const std::vector<std::string>& argv, int world, const ProcessOptions& options) {
  CaughtSignals signals;
  const PrivateFolder folder;
  std::optional<PrivateFolder> segments;
  if (options.mpirun && access(kSharedMemory, W_OK) == 0) {
    require_shared_memory(world);
    segments.emplace(kSharedMemory);
  }
  const LaunchFolders folders{folder.path(), segments ? segments->path() : ""};
  std::vector<std::string> guarded = {folders.launch};
  if (segments) guarded.push_back(folders.segments);
  const FolderGuard guard(guarded);
  return RankMonitor(world, options, folders).run(argv, signals);
}

}  // namespace

RankExit launch_processes(const std::vector<std::string>& argv, int world,
                          const ProcessOptions& options) {
  HM_REQUIRE(!argv.empty() && world >= 1, "[launch] {} ranks of nothing", world);
  for (const std::string& entry : options.environment)
    HM_REQUIRE(entry.find('=') != std::string::npos && entry[0] != '=',
               "[launch] '{}' is not NAME=value", entry);
  const RankExit exit = run(argv, world, options);
  if (exit.forwarded != 0) raise(exit.forwarded);
  return exit;
}

void report_started(const Place& place) {
  const char* const folder = std::getenv("HOWMANY_EXITS");
  if (folder == nullptr || place.launcher != "howmany") return;
  std::ofstream(started_file(folder, place.rank)).close();
  report_event(folder);
}

}  // namespace howmany
