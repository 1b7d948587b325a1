// SPDX-License-Identifier: Apache-2.0
#include "core/base/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "core/base/child.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/fd.h"
#include "core/base/process_stat.h"
#include "core/base/text/format.h"

namespace howmany {
namespace {

constexpr size_t kMaxOut = size_t{16} << 20, kMaxErr = size_t{64} << 10;
constexpr int kTickMilliseconds = 200;
constexpr int kOrphanPolls = 200, kOrphanPollMicroseconds = 5000;

volatile std::sig_atomic_t caught = 0;

void on_signal(int) { caught = 1; }

bool is_program(const std::string& path) {
  return std::filesystem::is_regular_file(path) && ::access(path.c_str(), X_OK) == 0;
}

struct Pipe {
  std::array<int, 2> ends{-1, -1};
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw InputError(fmt::format("cannot start a program: {}", std::strerror(errno)));
    }
  }
  ~Pipe() {
    close(0);
    close(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close(size_t end) {
    if (ends[end] >= 0) ::close(std::exchange(ends[end], -1));
  }
};

// Returns a file in memory with the text, at its start. Unlike a pipe it holds any text before the
// child reads.
Fd file_of(const std::string& text) {
  if (text.empty()) return Fd();
  Fd file(::memfd_create("input", MFD_CLOEXEC));
  for (size_t at = 0; at < text.size();) {
    const ssize_t n =
        ::pwrite(file.get(), text.data() + at, text.size() - at, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw InputError(fmt::format("cannot start a program: {}", std::strerror(errno)));
    at += static_cast<size_t>(n);
  }
  return file;
}

// The child with the pipes of its output.
struct PipedChild {
  explicit PipedChild(const Command& command)
      : in(file_of(command.input)),
        child({.argv = command.argv,
               .environment = environment_behind(command.environment),
               .folder = command.folder,
               .in = in.get(),
               .out = out.ends[1],
               .err = err.ends[1],
               .death_signal = SIGTERM}) {
    out.close(1);
    err.close(1);
  }
  Fd in;
  Pipe out, err;
  Child child;
};

// Makes this process the parent of orphaned descendants, such as the ranks of a killed mpirun.
// Their CPU time then counts as this process's, not as that of other programs.
class OrphanReaper {
 public:
  // If `kill`, ends the orphans too. The children of an orphan become orphans in turn.
  // Children that exist already are those of a guard (temporary.h), and stay.
  explicit OrphanReaper(bool kill) : kill_(kill), before_children_(children()) {
    ::prctl(PR_GET_CHILD_SUBREAPER, &before_);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  // Waits up to one second for the existing orphans.
  ~OrphanReaper() {
    for (int poll = 0; poll < kOrphanPolls; ++poll) {
      if (kill_) kill_children();
      pid_t pid = 0;
      while ((pid = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
      }
      if (pid < 0 || children().size() <= before_children_.size()) break;  // none is left
      ::usleep(kOrphanPollMicroseconds);
    }
    ::prctl(PR_SET_CHILD_SUBREAPER, before_);
  }
  OrphanReaper(const OrphanReaper&) = delete;
  OrphanReaper& operator=(const OrphanReaper&) = delete;

 private:
  static std::vector<pid_t> children() {
    const std::string self = std::to_string(::getpid());
    std::ifstream file("/proc/self/task/" + self + "/children");
    std::vector<pid_t> all;
    for (pid_t pid = 0; file >> pid;) all.push_back(pid);
    return all;
  }
  void kill_children() const {
    for (const pid_t pid : children())
      if (std::ranges::find(before_children_, pid) == before_children_.end()) ::kill(pid, SIGKILL);
  }

  bool kill_;
  std::vector<pid_t> before_children_;
  int before_ = 0;
};

void keep_tail(std::string& text) {
  if (text.size() > 2 * kMaxErr) text.erase(0, text.size() - kMaxErr);
}

// Returns false at the end of the stream.
bool drain(int fd, const std::function<void(std::string_view)>& take) {
  char buffer[1 << 14];
  const ssize_t n = ::read(fd, buffer, sizeof buffer);
  if (n > 0) take({buffer, static_cast<size_t>(n)});
  return n > 0 || (n < 0 && errno == EINTR);
}

class CommandRun {
 public:
  CommandRun(const Command& command, PipedChild& piped)
      : command_(command), piped_(piped), child_(piped.child) {}

  ProcessResult run() {
    while (!child_.has_ended()) {
      step(kTickMilliseconds);
      if (command_.on_tick) command_.on_tick();
      end_if_due();
    }
    while (step(0)) {
    }
    finish(child_.end());
    return std::move(result_);
  }

 private:
  // Reads the available output. Returns true if there was any.
  bool step(int milliseconds) {
    std::array<pollfd, 2> fds = {pollfd{piped_.out.ends[0], POLLIN, 0},
                                 pollfd{piped_.err.ends[0], POLLIN, 0}};
    const bool silent = fds[0].fd < 0 && fds[1].fd < 0;  // about to end: poll again soon
    if (::poll(fds.data(), fds.size(), silent ? std::min(milliseconds, 5) : milliseconds) <= 0) {
      return false;
    }
    bool read = false;
    if (fds[0].revents != 0) read |= read_out();
    if (fds[1].revents != 0) read |= read_err();
    return read;
  }

  bool read_out() {
    const bool open = drain(piped_.out.ends[0], [&](std::string_view text) {
      if (command_.on_stdout) command_.on_stdout(text);
      if (result_.out.size() < kMaxOut) result_.out += text;
    });
    if (!open) piped_.out.close(0);
    return open;
  }

  bool read_err() {
    const bool open = drain(piped_.err.ends[0], [&](std::string_view text) {
      if (command_.on_stderr) command_.on_stderr(text);
      result_.err += text;
      keep_tail(result_.err);
    });
    if (!open) piped_.err.close(0);
    return open;
  }

  void end_if_due() {
    const double now = seconds_since(start_);
    if (now >= look_at_) {  // not at each line that it prints
      look_at_ = now + kTickMilliseconds * 1e-3;
      if (!stat_of(child_.pid()).is_stopped()) awake_at_ = now;
    }
    const bool late = (command_.timeout_seconds > 0 && now > command_.timeout_seconds) ||
                      now > awake_at_ + command_.stopped_seconds;
    const bool done = command_.is_done && command_.is_done();
    if (!asked_ && (interrupted() || late || done)) {
      asked_ = true;
      why_ = interrupted() ? ProcessResult::How::kInterrupted
             : done        ? ProcessResult::How::kDone
                           : ProcessResult::How::kTimedOut;
      asked_at_ = now;
      command_.ask_to_end ? command_.ask_to_end() : child_.signal(SIGTERM);
    }
    if (asked_ && now > asked_at_ + command_.grace_seconds) child_.signal(SIGKILL);
  }

  void finish(int status) {
    result_.seconds = seconds_since(start_);
    if (result_.err.size() > kMaxErr) result_.err.erase(0, result_.err.size() - kMaxErr);
    result_.how =
        WIFSIGNALED(status) ? ProcessResult::How::kSignalled : ProcessResult::How::kExited;
    result_.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    if (asked_) result_.how = why_;
  }

  const Command& command_;
  PipedChild& piped_;
  Child& child_;
  ProcessResult result_;
  Clock::time_point start_ = Clock::now();
  bool asked_ = false;
  double asked_at_ = 0, awake_at_ = 0, look_at_ = 0;
  ProcessResult::How why_ = ProcessResult::How::kExited;
};

// Matches the lines that Google Benchmark prints about itself and the machine before it measures.
bool is_banner(std::string_view line) {
  constexpr std::string_view kStarts[] = {"***WARNING***", "Running /",   "Running ./",
                                          "Run on (",      "CPU Caches:", "Load Average:",
                                          "  L1 ",         "  L2 ",       "  L3 "};
  const bool date = line.size() >= 19 && line[4] == '-' && line[7] == '-' && line[10] == 'T' &&
                    line.find(' ') == std::string_view::npos;
  return date || std::ranges::any_of(
                     kStarts, [&](std::string_view start) { return line.starts_with(start); });
}

}  // namespace

std::string ProcessResult::last_line() const {
  for (size_t end = err.find_last_not_of(" \t\r\n"); end != std::string::npos;) {
    const size_t before = err.find_last_of('\n', end);
    const size_t start = before == std::string::npos ? 0 : before + 1;
    std::string line = err.substr(start, end - start + 1);
    std::erase_if(line, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
    if (!is_banner(line)) return line.substr(0, 500);
    end = start == 0 ? std::string::npos : err.find_last_not_of(" \t\r\n", start - 1);
  }
  return "";
}

std::string ProcessResult::describe() const {
  const std::string line = without_full_stop(last_line());
  auto with_line = [&](std::string what) { return line.empty() ? what : what + ": " + line; };
  switch (how) {
    case How::kExited:
      return with_line(fmt::format("exited with {}", code));
    case How::kSignalled:
      return with_line(fmt::format("ended by signal {} ({})", code, ::strsignal(code)));
    case How::kTimedOut:
      return with_line(fmt::format("stopped after {:.0f} s without a result", seconds));
    case How::kInterrupted:
      return "interrupted";
    case How::kDone:
      return "done";
    case How::kNotStarted:
      break;
  }
  return fmt::format("cannot be started: {}", std::strerror(code));
}

ProcessResult run_command(const Command& command) {
  const OrphanReaper reaper(command.end_descendants);  // destroyed after the child
  PipedChild piped(command);
  if (piped.child.error() != 0) {
    ProcessResult ended;
    ended.code = piped.child.error();
    return ended;
  }
  return CommandRun(command, piped).run();
}

void catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // not SA_RESTART: poll must wake up
  ::sigemptyset(&action.sa_mask);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before = {};
    ::sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(number, &action, nullptr);  // keeps nohup
  }
}

bool interrupted() { return caught != 0; }

void exec_program(const std::vector<std::string>& argv) {
  std::vector<char*> pointers;
  for (const std::string& argument : argv) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  ::execv(argv[0].c_str(), pointers.data());
  throw InputError(fmt::format("cannot start {}: {}", argv[0], std::strerror(errno)));
}

std::string find_in_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return is_program(name) ? name : "";
  const char* path = std::getenv("PATH");
  const std::string folders = path != nullptr ? path : "/usr/bin:/bin";
  for (size_t at = 0; at <= folders.size();) {
    const size_t end = std::min(folders.find(':', at), folders.size());
    const std::string candidate = folders.substr(at, end - at) + "/" + name;
    if (is_program(candidate)) return candidate;
    at = end + 1;
  }
  return "";
}

std::string program_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
}

std::vector<std::string> arguments_in(std::istream& cmdline) {
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(cmdline, argument, '\0');)
    arguments.push_back(std::move(argument));
  return arguments;
}

std::vector<std::string> arguments_of_this_process() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  return arguments_in(file);
}

std::string program_path() {
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe");
  if (own.filename() != "howmany-programs") return own;
  const std::vector<std::string> arguments = arguments_of_this_process();
  return arguments.empty() ? own
                           : own.parent_path() / std::filesystem::path(arguments[0]).filename();
}

}  // namespace howmany
