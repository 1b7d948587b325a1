// SPDX-License-Identifier: Apache-2.0
// Runs scripts of ours in the user's Python, which has the user's libraries. One thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace howmany::reports {

struct PythonCall {
  const char* code;                         // prints JSON as its last line
  std::vector<std::string> arguments = {};  // sys.argv[1:]
  std::string input = {};                   // standard input
  double timeout_seconds = 20;              // importing from a network folder is slow
};

// Returns the paths of `python` if not empty, else of the active Pythons: $VIRTUAL_ENV/bin/python,
// python3 and python. Omits those that do not exist.
std::vector<std::string> user_pythons(const std::string& python);

// Returns the JSON of the last line. Throws InputError if the script fails or prints no JSON.
nlohmann::json run_python(const std::string& python, const PythonCall& call);

}  // namespace howmany::reports
