// SPDX-License-Identifier: Apache-2.0
// The checks of `howmany selftest --quick`: each installed program computes something small. They
// need no test programs.
#pragma once

#include <string>
#include <vector>

#include "reports/results/machine.h"

namespace howmany::reports {

struct QuickCheck {
  std::string program;  // for find_program()
  std::string what;     // meaning of a pass
  std::vector<std::string> arguments;
  bool prints_losses = false;  // equal to those of the first such check
};

// Returns the checks for this machine: less than 10 s on two cores. They write only to the
// temporary directory.
std::vector<QuickCheck> quick_checks(const Machine& machine);

// Returns {0.81, 0.76} for "Epoch 1, Loss: 0.81\nEpoch 2, Loss: 0.76\n". Accepts any text.
std::vector<double> read_losses(const std::string& printed);

// Returns false if one is empty, the numbers of epochs differ, a loss is not finite, or a pair
// differs by more than 1 %. Exact equality is the claim of the whole selftest.
bool are_same_losses(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace howmany::reports
