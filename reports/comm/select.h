// Which backends `howmany backend` measures on this machine, torch's own among them ("torch:gloo").
// One thread.
#pragma once

#include <string>
#include <vector>

#include "reports/comm/torch_python.h"
#include "reports/results/machine.h"

namespace howmany::reports {

struct TorchRequest {
  std::string python;    // empty: the active Python
  bool wanted = false;   // --torch: a torch that cannot be measured is reported
  bool refused = false;  // --no-torch
};

struct BackendSelection {
  std::vector<std::string> backends;
  std::vector<std::string> left_out;  // one sentence each
  TorchPython torch;                  // runs the backends "torch:..."
};

// Returns the usable backends among `asked`, or all usable ones if it is empty. torch's rows come
// with --torch, by name, or by themselves if `asked` is empty and the active Python has a torch.
// Throws InputError for an unknown name, and if nothing is left to measure. Never throws for what
// the user's Python does.
BackendSelection select_backends(const std::vector<std::string>& asked, const TorchRequest& torch,
                                 const Machine& machine, bool gpus);

}  // namespace howmany::reports
