// SPDX-License-Identifier: Apache-2.0
#include "reports/results/user_python.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/process.h"
#include "core/base/text/json.h"

namespace howmany::reports {
namespace {

// Returns the last line, because libraries may print before the answer.
std::string answer_line(std::string text) {
  text.erase(text.find_last_not_of(" \r\n") + 1);
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

std::vector<std::string> user_pythons(const std::string& python) {
  std::vector<std::string> names = {python}, found;
  if (python.empty()) {
    names = {"python3", "python"};
    if (const char* const venv = std::getenv("VIRTUAL_ENV"); venv != nullptr && *venv != '\0')
      names.insert(names.begin(), std::string(venv) + "/bin/python");
  }
  for (const std::string& name : names)
    if (std::string program = find_in_path(name); !program.empty())
      found.push_back(std::move(program));
  return found;
}

nlohmann::json run_python(const std::string& python, const PythonCall& call) {
  Command command{.argv = {python, "-W", "ignore", "-c", call.code},
                  .input = call.input,
                  .timeout_seconds = call.timeout_seconds};
  command.argv.insert(command.argv.end(), call.arguments.begin(), call.arguments.end());
  const ProcessResult ended = run_command(command);
  if (!ended.ok()) throw InputError(ended.describe());
  return parse_json(answer_line(ended.out), python);
}

}  // namespace howmany::reports
