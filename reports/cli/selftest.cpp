// SPDX-License-Identifier: Apache-2.0
#include "reports/cli/selftest.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "core/base/process.h"
#include "core/base/schema/exit_codes.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "core/base/text/print_stderr.h"
#include "core/base/text/table.h"
#include "reports/cli/quick_checks.h"
#include "reports/results/machine.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

namespace fs = std::filesystem;

struct TestSuite {
  std::string program, source, what;
};
const std::vector<TestSuite> kSuites = {
#define X(folder, unit, what) {#folder "_tests", #unit "_test.cpp", what},
    HM_SELFTESTS(X)
#undef X
};

struct Outcome {
  TestSuite suite;
  TestTotals totals;
  double seconds = 0;
  std::string trouble;  // reason if the program did not exit normally

  bool fine() const { return trouble.empty() && totals.failed == 0; }
};

// Returns "Comm.Sums" for "[  FAILED  ] Comm.Sums (12 ms)", or nullopt for other lines.
std::optional<std::string> test_of(std::string_view line, std::string_view mark) {
  if (!line.starts_with(mark) || !line.ends_with(" ms)")) return {};
  line.remove_prefix(mark.size());
  const std::string name(line.substr(0, line.find_first_of(" ,")));
  if (name.find('.') == name.npos) return {};
  return name;
}

std::string test_program(const std::string& name) {
  const fs::path beside(program_folder());
  for (const fs::path& folder : {beside, beside / ".." / "libexec" / "howmany"})
    if (::access((folder / name).c_str(), X_OK) == 0) return (folder / name).string();
  return "";
}

Outcome run(const TestSuite& suite, const SelftestArguments& arguments) {
  Outcome outcome{.suite = suite, .totals = {}, .trouble = {}};
  const std::string program = test_program(suite.program);
  if (program.empty()) {
    outcome.trouble = "is not here: this copy was built or packed without its tests";
    return outcome;
  }
  const ProcessResult ended =
      run_command({.argv = {program, "--source=" + suite.source, "--gtest_color=no"},
                   .timeout_seconds = arguments.timeout_seconds});
  outcome.totals = read_totals(ended.out);
  outcome.seconds = ended.seconds;
  const bool told =
      ended.how == ProcessResult::How::kExited && (ended.code == 0) == (outcome.totals.failed == 0);
  if (!told) outcome.trouble = ended.describe();
  return outcome;
}

// Sets `losses` to those of the first check that prints some.
Outcome run(const QuickCheck& check, const SelftestArguments& arguments,
            std::vector<double>& losses) {
  Outcome outcome{.suite = {check.program, "", check.what}, .totals = {}, .trouble = {}};
  std::vector<std::string> argv = check.arguments;
  try {
    argv.insert(argv.begin(), find_program(check.program));
  } catch (const InputError& error) {
    outcome.trouble = error.what();
    return outcome;
  }
  const ProcessResult ended =
      run_command({.argv = argv, .timeout_seconds = arguments.timeout_seconds});
  outcome.seconds = ended.seconds;
  bool passed = ended.ok();
  if (passed && check.prints_losses) {
    const std::vector<double> own = read_losses(ended.out);
    if (losses.empty()) losses = own;
    passed = are_same_losses(losses, own);
  } else if (!passed &&
             !(ended.how == ProcessResult::How::kExited && ended.code == exit_code::kCheckFailed)) {
    outcome.trouble = ended.describe();
    return outcome;
  }
  (passed ? outcome.totals.passed : outcome.totals.failed) = 1;
  if (!passed) outcome.totals.failures = {fmt::format("{}: {}", check.program, check.what)};
  return outcome;
}

// Calls run_one for each item until a signal, and reports the progress.
template <typename Item, typename RunOne>
std::vector<Outcome> run_each(const std::vector<Item>& items, bool quiet, const RunOne& run_one) {
  std::vector<Outcome> outcomes;
  for (const Item& item : items) {
    if (interrupted()) break;
    if (!quiet) print_stderr("[{}/{}] {}\n", outcomes.size() + 1, items.size(), item.what);
    outcomes.push_back(run_one(item));
  }
  return outcomes;
}

std::vector<Outcome> run_suites(const SelftestArguments& arguments) {
  return run_each(kSuites, arguments.quiet,
                  [&](const TestSuite& suite) { return run(suite, arguments); });
}

std::vector<Outcome> run_quick(const SelftestArguments& arguments, const Machine& machine) {
  std::vector<double> losses;
  return run_each(quick_checks(machine), arguments.quiet,
                  [&](const QuickCheck& check) { return run(check, arguments, losses); });
}

nlohmann::ordered_json to_json(const Outcome& outcome) {
  const TestTotals& totals = outcome.totals;
  return {{"program", outcome.suite.program}, {"source", outcome.suite.source},
          {"claim", outcome.suite.what},      {"passed", totals.passed},
          {"failed", totals.failed},          {"failures", totals.failures},
          {"skipped", totals.skipped},        {"seconds", outcome.seconds},
          {"trouble", outcome.trouble}};
}

std::string table_of(const std::vector<Outcome>& outcomes) {
  using Align = Table::Align;
  Table table({{"claim", Align::kLeft}, {"passed"}, {"failed"}, {"skipped"}, {"took"}});
  for (const Outcome& o : outcomes)
    table.add({o.suite.what, std::to_string(o.totals.passed), std::to_string(o.totals.failed),
               std::to_string(o.totals.skipped.size()), format_seconds(o.seconds)});
  return table.text();
}

// Returns the parts of this build that cannot run here. Their tests prove nothing.
std::vector<std::string> not_exercised(const Machine& machine) {
  std::vector<std::string> lines;
  for (const auto& [kind, parts] :
       {std::pair{"backend", &machine.comms}, {"kernels", &machine.kernels}})
    for (const Part& part : *parts)
      if (!part.usable) lines.push_back(fmt::format("{} {}: {}", kind, part.name, part.why));
  if (machine.cuda.empty()) lines.push_back("GPUs: none that this build can use is here");
  return lines;
}

std::string headline(const std::vector<Outcome>& outcomes) {
  int passed = 0, failed = 0, troubled = 0;
  size_t skipped = 0;
  for (const Outcome& o : outcomes) {
    passed += o.totals.passed;
    failed += o.totals.failed;
    skipped += o.totals.skipped.size();
    troubled += !o.trouble.empty();
  }
  if (failed + troubled == 0)
    return fmt::format("All is well: {} tests passed here, {} were skipped.", passed, skipped);
  return fmt::format(
      "Do not trust this copy on this machine: {} tests failed and {} programs broke ({} passed).",
      failed, troubled, passed);
}

void print(const std::vector<Outcome>& outcomes, const std::vector<std::string>& not_exercised) {
  fmt::print("{}\n\n{}", headline(outcomes), table_of(outcomes));
  for (const Outcome& o : outcomes) {
    if (!o.trouble.empty()) fmt::print("{} {}\n", o.suite.program, o.trouble);
    for (const std::string& name : o.totals.failures) fmt::print("FAILED {}\n", name);
    for (const std::string& name : o.totals.skipped) fmt::print("skipped {}\n", name);
  }
  for (const std::string& line : not_exercised) fmt::print("not exercised: {}\n", line);
}

int exit_code(const std::vector<Outcome>& outcomes) {
  int code = exit_code::kFine;
  for (const Outcome& o : outcomes) {
    if (!o.trouble.empty()) return exit_code::kMeasurementFailed;
    if (o.totals.failed > 0) code = 1;
  }
  return code;
}

}  // namespace

TestTotals read_totals(const std::string& printed) {
  TestTotals totals;
  std::string reason, before;
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line); before = line) {
    if (before.ends_with(": Skipped")) reason = line;
    if (test_of(line, "[       OK ] ")) ++totals.passed;
    if (const auto name = test_of(line, "[  FAILED  ] ")) {
      ++totals.failed;
      totals.failures.push_back(*name);
    }
    if (const auto name = test_of(line, "[  SKIPPED ] "))
      totals.skipped.push_back(reason.empty() ? *name : *name + ": " + reason);
    if (line.starts_with("[ RUN      ] ")) reason.clear();
  }
  return totals;
}

int run_selftest(const SelftestArguments& arguments) {
  catch_interrupts();
  const Machine machine = read_machine();
  const std::vector<Outcome> outcomes =
      arguments.quick ? run_quick(arguments, machine) : run_suites(arguments);
  if (arguments.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Outcome& o : outcomes) list.push_back(to_json(o));
    fmt::print("{}", dump_json({{"schema", "howmany.selftest/1"},
                                {"answer", headline(outcomes)},
                                {"suites", list},
                                {"not_exercised", not_exercised(machine)}}));
  } else {
    print(outcomes, not_exercised(machine));
  }
  return interrupted() ? exit_code::kInterrupted : exit_code(outcomes);
}

}  // namespace howmany::reports
