// SPDX-License-Identifier: Apache-2.0
// Finds the user's PyTorch: its Python, and the backends of its torch.distributed. One thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace howmany::reports {

struct TorchPython {
  std::string python = {};                        // path of the interpreter; empty: none
  std::string version = {}, python_version = {};  // "2.13.0", "3.11.7"
  std::vector<std::string> backends = {};         // subset of "gloo", "nccl" and "mpi"
  bool found = false;                             // that Python has a torch, even a broken one
  std::string problem = {};  // "has no torch"; empty if torch.distributed works
};

// Runs `python` if not empty, else the active Python: the first of $VIRTUAL_ENV/bin/python, python3
// and python that has a torch. Imports torch only if it exists, for at most 20 s. Never throws for
// failures of Python: `problem` reports them.
TorchPython find_torch(const std::string& python);

// Parses the output of the probe. Throws InputError if it is invalid.
TorchPython torch_python_from(const nlohmann::json& probe);
// Returns {python, version, python_version, backends}.
nlohmann::json to_json(const TorchPython& torch);

}  // namespace howmany::reports
