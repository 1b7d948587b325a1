// SPDX-License-Identifier: Apache-2.0
// Counts a step of the user's own script on a GPU that is not here, by script_bench --count.
// One call at a time: it runs programs.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "reports/predict/counted.h"
#include "reports/script/script.h"

namespace howmany::reports {

struct PretendedGpu {
  std::string name;
  int64_t memory = 0;             // bytes
  std::array<int, 2> capability;  // of NVIDIA's chips, such as {8, 0}
  int devices = 1;                // of a node, at most one for each rank
};

class StepCounter {
 public:
  // `report` gets a line if the way of counting changes.
  StepCounter(PretendedGpu gpu, std::function<void(const std::string&)> report);

  // Runs the script as one of `world` ranks. Its tensors have shapes alone; if the step needs
  // values, this CPU computes it, and all steps from then on. Throws InputError if nothing follows
  // from the count, and std::runtime_error if the script fails.
  CountedStep count(const Script& script, int world);

 private:
  CountedStep count_once(const Script& script, int world) const;

  PretendedGpu gpu_;
  std::function<void(const std::string&)> report_;
  bool real_ = false;
};

}  // namespace howmany::reports
