// SPDX-License-Identifier: Apache-2.0
#include "reports/why/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "core/base/cli/option.h"
#include "core/base/cli/output_options.h"
#include "core/base/schema/exit_codes.h"
#include "core/base/schema/flags.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"
#include "core/base/text/print_stderr.h"
#include "core/base/text/shell.h"
#include "core/base/text/table.h"
#include "reports/results/plain_json.h"
#include "reports/results/run_folder.h"
#include "reports/submit/study.h"
#include "reports/why/timeline.h"
#include "reports/why/why.h"

namespace howmany::reports {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTimeline = "why.pftrace";

struct WhyArguments {
  std::string path, trace;
  bool json = false;
};

// Throws InputError if the path leads to no run of `howmany gpus`.
std::string summary_of_gpus(const std::string& path) {
  if (!fs::exists(path)) throw InputError(fmt::format("there is no folder {}", path));
  if (fs::is_directory(path) && is_study(path)) {
    const Study study = read_study(path);
    throw InputError(fmt::format("{} is of several jobs; use howmany why {}", path,
                                 shell_quoted(path_of(study, study.jobs.back()))));
  }
  const std::string file = summary_path(path);
  if (!fs::exists(file))
    throw InputError(fmt::format("{} holds no summary.json; use a folder of howmany gpus", path));
  return file;
}

void refuse_other_commands(const std::string& path, const Summary& summary) {
  for (const char* question : {"workers", "backend", "transfer"})
    if (summary.answer.contains(question))
      throw InputError(fmt::format(
          "{} is of howmany {}; howmany why needs the results of howmany gpus", path, question));
}

[[noreturn]] void refuse_without_evidence(const std::string& path, const Script& script) {
  if (!script.rate.empty())
    throw InputError(
        fmt::format("{} holds no evidence: {} shows the rate of a program, not its steps", path,
                    flag::kRate.name));
  throw InputError(
      fmt::format("{} holds no evidence of where the time goes: an older version recorded it, or "
                  "no step was measured; measure again with howmany gpus",
                  path));
}

// The answer is the stored one if plan.json is missing, as if only summary.json was copied.
struct RecordedWhy {
  nlohmann::ordered_json answer;
  std::string timeline;  // empty: no steps were recorded
};

RecordedWhy recorded_why(const std::string& file, const std::string& folder) {
  Summary summary = read_summary(file);
  refuse_other_commands(file, summary);
  const std::string plan_file = folder + "/plan.json";
  if (!fs::exists(plan_file)) {
    const nlohmann::json& stored = json_member(summary.answer, "why");
    if (!stored.is_object()) refuse_without_evidence(file, {});
    return {stored, ""};
  }
  const Plan plan = read_plan(plan_file);
  const Results results = read_results(folder, plan);
  summary.measurements = measurements(plan, results);
  RecordedWhy why{why_json(plan, results, summary), timeline(plan, results)};
  if (!why.answer.is_object()) refuse_without_evidence(folder, plan.request.script);
  return why;
}

// Returns the sentence about the file; empty if there is none. The folder may not be ours.
std::string written_timeline(const WhyArguments& arguments, const std::string& folder,
                             const std::string& trace) {
  if (trace.empty()) {
    if (arguments.trace.empty()) return "";
    return fmt::format("{} is not written: no steps were recorded\n", arguments.trace);
  }
  const std::string file = arguments.trace.empty() ? folder + "/" + kTimeline : arguments.trace;
  try {
    write_text(file, trace);
  } catch (const InputError& error) {
    return fmt::format("{} is not written: {}\n", file, error.what());
  }
  return fmt::format("All ranks on one clock: {} opens in ui.perfetto.dev.\n", file);
}

int run_why(const WhyArguments& arguments) {
  const std::string file = summary_of_gpus(arguments.path),
                    parent = fs::path(file).parent_path().string(),
                    folder = parent.empty() ? "." : parent;
  const RecordedWhy why = recorded_why(file, folder);
  fmt::print("{}", arguments.json ? dump_json(why.answer)
                                  : why_text(why.answer, true, color_wanted(STDOUT_FILENO)));
  print_stderr("{}", written_timeline(arguments, folder, why.timeline));
  return exit_code::kFine;
}

}  // namespace

void add_why_command(CLI::App& sub, int& code) {
  const auto a = std::make_shared<WhyArguments>();
  sub.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  sub.add_option("path", a->path, "Folder of a run of howmany gpus, or its summary.json")
      ->type_name("PATH")
      ->required();
  add_option(sub, flag::kTrace, a->trace, "why.pftrace in the folder");
  add_json(sub, a->json);
  sub.callback([a, &code] { code = run_why(*a); });
  sub.footer(
      "The time that a step loses against one device, in parts that add up to it, and what would\n"
      "win it back. Nothing is measured: the run has recorded it, perhaps on another machine.\n\n"
      "Examples:\n"
      "  howmany gpus --out X -- python train.py\n"
      "  howmany why X                    # at every number of devices\n"
      "  howmany why X --json > why.json\n"
      "  howmany why X --trace ranks.pftrace   # open it in ui.perfetto.dev");
}

}  // namespace howmany::reports
