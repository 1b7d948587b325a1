// `howmany compare`, as told on the command line. Results on stdout, everything else on stderr;
// exit codes: 0 no regression, 1 a regression, 2 bad usage or input (thrown as InputError), 3 a
// side failed or nothing was compared, 4 the machines cannot be compared, 5 inconclusive under
// --strict.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/regression/judge.h"

namespace howmany::reports {

constexpr int kNotComparable = 4;

// How to judge and how to tell it: shared by `compare` and `gate`.
struct JudgeArguments {
  double alpha = 0.05;
  std::optional<std::string> min_effect, same_within;  // "2%" or "0.02"
  std::vector<std::string> metrics, directions;
  std::string noise;               // a file of `gate --self-test`
  std::vector<std::string> write;  // FORMAT=FILE
  std::string format = "text";
  bool json = false, strict = false, force = false;
};

struct CompareArguments {
  std::string base, candidate;
  JudgeArguments judge;
};

int run_compare(const CompareArguments& arguments);

// The parts that `gate` needs too.
JudgeOptions judge_options(const JudgeArguments& arguments);
// Refuses unknown formats and files that cannot be written, before anything is measured.
void check_outputs(const JudgeArguments& arguments);
// Writes what was asked for, prints the rest, and gives the exit code.
int tell(const Comparison& comparison, const JudgeArguments& arguments);
// "2%" and "0.02" are the same. Throws InputError, which names the option.
double parse_share(const std::string& option, const std::string& text);

}  // namespace howmany::reports
