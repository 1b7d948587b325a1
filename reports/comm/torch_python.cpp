// SPDX-License-Identifier: Apache-2.0
#include "reports/comm/torch_python.h"

#include <nlohmann/json.hpp>

#include <embedded/reports/comm/torch_probe.py.h>
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "reports/results/record.h"
#include "reports/results/user_python.h"

namespace howmany::reports {
namespace {

TorchPython probe_torch(const std::string& python) {
  TorchPython torch;
  try {
    torch = torch_python_from(run_python(python, {.code = embedded::kTorchProbe}));
  } catch (const InputError& error) {
    torch.problem = error.what();
  }
  torch.python = python;
  return torch;
}

}  // namespace

TorchPython torch_python_from(const nlohmann::json& probe) {
  const JsonNode root(probe, "the torch probe");
  TorchPython torch{.version = root.at("torch").string(),
                    .python_version = root.at("python").string(),
                    .backends = root.at("backends").strings(),
                    .found = root.at("found").boolean(),
                    .problem = without_full_stop(root.at("why").string())};
  std::erase_if(torch.backends, [](const std::string& name) {
    return name != "gloo" && name != "nccl" && name != "mpi";
  });
  return torch;
}

nlohmann::json to_json(const TorchPython& torch) {
  return {{"python", torch.python},
          {"version", torch.version},
          {"python_version", torch.python_version},
          {"backends", torch.backends}};
}

TorchPython find_torch(const std::string& python) {
  TorchPython last{.python = python.empty() ? "python3" : python, .problem = "is not there"};
  for (const std::string& program : user_pythons(python)) {
    last = probe_torch(program);
    if (last.found) break;
  }
  return last;
}

}  // namespace howmany::reports
