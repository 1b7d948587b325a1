// SPDX-License-Identifier: Apache-2.0
// Selects the backends that `howmany backend` measures, including torch's ("torch:gloo"). One
// thread.
#pragma once

#include <string>
#include <vector>

#include "reports/comm/torch_python.h"
#include "reports/results/machine.h"

namespace howmany::reports {

struct TorchRequest {
  std::string python;   // empty: use the active Python
  bool wanted = false;  // --torch: report a torch that cannot be measured
};

struct BackendSelection {
  std::vector<std::string> backends;
  std::vector<std::string> left_out;  // one sentence each
  TorchPython torch;                  // runs the backends "torch:..."
};

// Returns the usable backends among `asked`, or all usable ones if it is empty. Never throws for
// failures of the user's Python.
//
// - torch: included with --torch, by name, or if `asked` is empty and the active Python has a torch
// - throws: InputError for an unknown name, or if no backend is left
BackendSelection select_backends(const std::vector<std::string>& asked, const TorchRequest& torch,
                                 const Machine& machine, bool gpus);

}  // namespace howmany::reports
