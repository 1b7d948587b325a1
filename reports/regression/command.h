// SPDX-License-Identifier: Apache-2.0
// The commands `compare`, `gate` and `history`. Results go to stdout, everything else to stderr.
//
// Exit codes:
// - 0: no regression
// - 1: a regression
// - 2: bad usage or input (thrown as InputError)
// - 3: a side failed, or nothing was compared
// - 4: the machines cannot be compared
// - 5: nothing could be judged; with --strict: a measurement is inconclusive
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/regression/judge.h"

namespace CLI {
class App;
}

namespace howmany::reports {

// Each adds options to the subcommand. If it runs, it sets `code`, which must outlive `sub`.
void add_compare(CLI::App& sub, int& code);
void add_gate(CLI::App& sub, int& code);
void add_history(CLI::App& sub, int& code);

// Options for judging and output, shared by `compare` and `gate`.
struct JudgeArguments {
  double alpha = 0.05;
  std::optional<std::string> min_effect, same_within;  // "2%" or "0.02"
  std::vector<std::string> metrics, directions;
  std::vector<std::string> write;  // FORMAT=FILE
  std::string format = "text";
  bool json = false, strict = false, force = false, quiet = false;
};

struct CompareArguments {
  std::string base, candidate;
  JudgeArguments judge;
};

int run_compare(const CompareArguments& arguments);

// Used by `gate` too.
JudgeOptions judge_options(const JudgeArguments& arguments);
// Throws InputError for unknown formats and unwritable files. Called before measuring.
void check_outputs(const JudgeArguments& arguments);
// Writes the requested files, prints the result and returns the exit code.
int print_result(const Comparison& comparison, const JudgeArguments& arguments);
// Parses "2%" or "0.02" as 0.02. Throws InputError that names the option.
double parse_share(const std::string& option, const std::string& text);

}  // namespace howmany::reports
