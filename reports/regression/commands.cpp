// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/base/schema/flags.h"
#include "reports/regression/gate.h"
#include "reports/regression/launcher.h"
#include "reports/results/machine.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

namespace fs = std::filesystem;

// Returns DIR/bin/NAME, else DIR/NAME, or "".
std::string program_in(const std::string& folder, const std::string& name) {
  for (const char* below : {"/bin/", "/"}) {
    const std::string path = folder + below + name;
    if (fs::is_regular_file(path) && ::access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

std::set<std::string> bench_names(const std::string& folder) {
  std::set<std::string> names;
  for (const char* below : {"/bin", ""}) {
    if (!fs::is_directory(folder + below)) continue;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder + below)) {
      const std::string name = entry.path().filename().string();
      const bool bench = name.ends_with("_bench") || name.ends_with("_benchmark");
      if (bench && !program_in(folder, name).empty()) names.insert(name);
    }
  }
  return names;
}

std::vector<std::string> wanted_benches(const GateArguments& a) {
  if (!a.benches.empty()) return a.benches;
  const std::set<std::string> base = bench_names(a.base_build),
                              candidate = bench_names(a.candidate_build);
  std::vector<std::string> both;
  std::set_intersection(base.begin(), base.end(), candidate.begin(), candidate.end(),
                        std::back_inserter(both));
  if (both.empty()) {
    throw InputError(
        fmt::format("{} and {} have no *_bench program in common; name them with --bench",
                    a.base_build, a.candidate_build));
  }
  return both;
}

std::vector<std::string> command_in(const std::string& folder, const std::string& name,
                                    const GateArguments& a) {
  const std::string path = program_in(folder, name);
  if (path.empty()) throw InputError(fmt::format("there is no program {} in {}", name, folder));
  std::vector<std::string> command = {path};
  if (!a.bench_args.empty()) {
    for (std::string& word : split_command("--args", a.bench_args))
      command.push_back(std::move(word));
  }
  return command;
}

// Prints the steps of a training command as JSON.
std::vector<std::string> script_command(const Flag& option, const std::string& text) {
  std::vector<std::string> command = {find_program("script_bench"), "--benchmark_format=json",
                                      flag::kModel, "training", "--"};
  for (std::string& word : split_command(option, text)) command.push_back(std::move(word));
  return command;
}

}  // namespace

Commands commands_of(const GateArguments& a) {
  const bool commands = !a.base.empty() && !a.candidate.empty();
  const bool builds = !a.base_build.empty() && !a.candidate_build.empty();
  const bool scripts = !a.base_script.empty() && !a.candidate_script.empty();
  if (commands + builds + scripts != 1) {
    throw InputError(
        "give --base CMD and --candidate CMD, --base-build DIR and --candidate-build DIR, or "
        "--base-script CMD and --candidate-script CMD");
  }
  if (scripts)
    return {{script_command(flag::kBaseScript, a.base_script)},
            {script_command(flag::kCandidateScript, a.candidate_script)}};
  if (commands) {
    Commands result{{split_command("--base", a.base)}, {split_command("--candidate", a.candidate)}};
    result.base[0][0] = find_command("base", result.base[0][0]);
    result.candidate[0][0] = find_command("candidate", result.candidate[0][0]);
    return result;
  }
  for (const std::string& folder : {a.base_build, a.candidate_build}) {
    if (!fs::is_directory(folder)) throw InputError(fmt::format("{} is not a folder", folder));
  }
  Commands result;
  for (const std::string& name : wanted_benches(a)) {
    result.base.push_back(command_in(a.base_build, name, a));
    result.candidate.push_back(command_in(a.candidate_build, name, a));
  }
  return result;
}

}  // namespace howmany::reports
