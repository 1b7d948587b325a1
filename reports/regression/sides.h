// SPDX-License-Identifier: Apache-2.0
// The two sides of a gate as programs. One thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reports/regression/gate.h"
#include "reports/regression/launcher.h"

namespace howmany::reports {

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

struct Commands {
  std::vector<std::vector<std::string>> base, candidate;
};
// Returns the commands of --base and --candidate, or script_bench with the training commands, or
// the programs that both build folders have. Throws InputError.
Commands commands_of(const GateArguments& arguments);

}  // namespace howmany::reports
