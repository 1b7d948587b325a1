// SPDX-License-Identifier: Apache-2.0
#include "reports/comm/torch_python.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include <embedded/reports/comm/torch_probe.py.h>
#include "core/base/process.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

constexpr double kTorchProbeTimeout = 20;  // seconds: importing torch from a network folder is slow

// Returns the last line, because torch may print before the answer.
std::string answer_line(std::string text) {
  text.erase(text.find_last_not_of(" \r\n") + 1);
  return text.substr(text.rfind('\n') + 1);
}

TorchPython probe_torch(const std::string& python) {
  TorchPython torch;
  try {
    const ProcessResult ended =
        run_command({.argv = {python, "-W", "ignore", "-c", embedded::kTorchProbe},
                     .timeout_seconds = kTorchProbeTimeout});
    if (!ended.ok()) throw InputError(ended.describe());
    torch = torch_python_from(parse_json(answer_line(ended.out), python));
  } catch (const InputError& error) {
    torch.problem = error.what();
  }
  torch.python = python;
  return torch;
}

std::vector<std::string> active_pythons() {
  std::vector<std::string> all;
  if (const char* const venv = std::getenv("VIRTUAL_ENV"); venv != nullptr && *venv != '\0')
    all.push_back(std::string(venv) + "/bin/python");
  all.insert(all.end(), {"python3", "python"});
  return all;
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
  for (const std::string& name : python.empty() ? active_pythons() : std::vector{python}) {
    const std::string program = find_in_path(name);
    if (program.empty()) continue;
    last = probe_torch(program);
    if (last.found) break;
  }
  return last;
}

}  // namespace howmany::reports
