// Starts one side of a gate once and reads what it measured. Works with any program that takes
// Google Benchmark's flags (1.5 and later; which flags, calibrate() finds out), or that prints such
// JSON by itself. One thread.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "reports/regression/suite.h"

namespace howmany::reports {

// Words as a shell splits them: quotes and backslashes, nothing else. Throws InputError naming
// `option`.
std::vector<std::string> split_command(const std::string& option, const std::string& text);

// The program a shell would start for `name`. Throws InputError naming --SIDE.
std::string find_command(const std::string& side, const std::string& name);

struct LaunchOptions {
  int repetitions = 3;        // in each process; the launch counts as the best of them
  double min_seconds = 0.01;  // of a repetition, where the program chooses its iterations
  double timeout_seconds = 120;
  bool plain = false;  // add no flags: the command prints the JSON by itself
};

// A side that could not be started, ended badly or left no results: exit code 3.
class LaunchError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Launcher {
 public:
  // argv[0] as in find_command.
  Launcher(std::string side, std::vector<std::string> argv, LaunchOptions options);
  ~Launcher();

  // Runs once, finds out which flags the program knows, and gives what it measured. LaunchError.
  Suite calibrate();
  // Fixes the iterations of each repetition where the program can (Google Benchmark 1.8 and later)
  // to these, so that both sides do the same work. False, and nothing is changed, where not.
  bool fix_iterations(const Suite& calibrated);
  // Only these from now on, where the program can choose; it may go on to run the others, but is
  // not started at all for none of its own.
  void choose(const std::vector<std::string>& names);
  // LaunchError; an empty suite when interrupted.
  Suite run();
  double last_wall_seconds() const { return wall_seconds_; }
  const std::vector<std::string>& names() const { return names_; }  // after calibrate()

 private:
  // Benchmarks that share their iterations: one process.
  struct Group {
    int64_t iterations = 0;          // 0: as the program chooses
    std::vector<std::string> names;  // none: all
  };
  std::vector<std::string> command(const Group& group) const;
  Suite start(const Group& group);
  bool runs_just(const Group& group);
  void make_groups();

  std::string side_, output_;
  std::vector<std::string> argv_;
  LaunchOptions options_;
  bool interleave_ = true, can_choose_ = false, idle_ = false;
  std::map<std::string, int64_t> iterations_;
  std::vector<std::string> names_, chosen_;
  std::vector<Group> groups_ = {{}};
  double wall_seconds_ = 0;
};

}  // namespace howmany::reports
