// SPDX-License-Identifier: Apache-2.0
// Launches the sides of a gate and reads their results. Works with any program that takes Google
// Benchmark's flags (1.5 or later; calibrate() detects which) or prints such JSON by itself. One
// thread.
#pragma once

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "reports/regression/suite.h"

namespace howmany::reports {

// Splits text as a shell does, but with quotes and backslashes only. Throws InputError naming
// `option`.
std::vector<std::string> split_command(const std::string& option, const std::string& text);

// Returns the program that a shell would run for `name`. Throws InputError naming --SIDE.
std::string find_command(const std::string& side, const std::string& name);

struct LaunchOptions {
  int repetitions = 3;        // per process; the best one counts
  double min_seconds = 0.01;  // per repetition, if the program chooses its iterations
  double timeout_seconds = 120;
  bool plain = false;  // add no flags; the command prints JSON by itself
};

// A side could not be started, failed or left no results. Exit code 3.
class LaunchError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Launcher {
 public:
  // argv[0] is a result of find_command().
  Launcher(std::string side, std::vector<std::string> argv, LaunchOptions options);
  ~Launcher();

  // Runs once, detects the flags of the program and returns the results. Throws LaunchError.
  Suite calibrate();
  // Fixes the iterations of each repetition, so that both sides do equal work. Needs Google
  // Benchmark 1.8 or later. Returns false and changes nothing if the program cannot.
  bool fix_iterations(const Suite& calibrated);
  // Runs only these benchmarks from now on if the program can select them. It may run others too.
  // It is not started if it has none of them.
  void choose(const std::vector<std::string>& names);
  // Throws LaunchError. Returns an empty suite if interrupted.
  Suite run();
  double last_wall_seconds() const { return wall_seconds_; }

 private:
  // Benchmarks with equal iterations, run in one process.
  struct Group {
    int64_t iterations = 0;          // 0: the program chooses
    std::vector<std::string> names;  // empty: all
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

// One side: a command, or several programs of a build folder.
class Side {
 public:
  Side(std::string name, const std::vector<std::vector<std::string>>& commands,
       const LaunchOptions& options);

  Suite calibrate();
  bool fix_iterations(const Suite& calibrated);
  void choose(const std::vector<std::string>& names);
  Suite run();
  double wall_seconds() const { return wall_seconds_; }
  const std::string& name() const { return name_; }

 private:
  Suite each(Suite (Launcher::*start)());

  std::string name_;
  std::vector<std::unique_ptr<Launcher>> programs_;
  double wall_seconds_ = 0;
};

}  // namespace howmany::reports
