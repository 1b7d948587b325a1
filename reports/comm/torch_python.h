// The user's PyTorch: which Python has it, and which backends its torch.distributed was built with.
// One thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace howmany::reports {

struct TorchPython {
  std::string python = {};                        // path of the interpreter; empty if there is none
  std::string version = {}, python_version = {};  // "2.13.0", "3.11.7"
  std::vector<std::string> backends = {};         // of "gloo", "nccl" and "mpi"
  bool found = false;                             // that Python has a torch, working or not
  std::string problem = {};  // "has no torch"; empty if torch.distributed works
};

// Runs `python`, or the active Python if it is empty: $VIRTUAL_ENV/bin/python, python3, python, the
// first of them that has a torch. Imports torch only if there is one, and waits at most 20 s for
// it. Never throws for what Python does: `problem` reports it.
TorchPython find_torch(const std::string& python);

// The output of the probe. Throws InputError for anything else.
TorchPython torch_python_from(const nlohmann::json& probe);
// {python, version, python_version, backends}.
nlohmann::json to_json(const TorchPython& torch);

}  // namespace howmany::reports
