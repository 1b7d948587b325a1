// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>

#include "core/base/cli/number_check.h"
#include "core/base/cli/option.h"
#include "core/base/cli/output_options.h"
#include "core/base/schema/exit_codes.h"
#include "core/base/schema/flags.h"
#include "core/base/text/files.h"
#include "core/base/text/format.h"
#include "core/base/text/print_stderr.h"
#include "core/base/text/table.h"
#include "reports/regression/gate.h"
#include "reports/regression/history_command.h"
#include "reports/regression/writer.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

namespace fs = std::filesystem;

// Parses "junit=report.xml" into the writer and the path.
std::pair<const Writer*, std::string> output(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals + 1 == text.size()) {
    throw InputError(fmt::format("--write: \"{}\" is not FORMAT=FILE", text));
  }
  return {&find_writer(text.substr(0, equals)), text.substr(equals + 1)};
}

std::string format_names() {
  std::vector<std::string> names;
  for (const Writer& writer : writers()) names.emplace_back(writer.name);
  return fmt::format("{{{}}}", fmt::join(names, ","));
}

void add_judging(CLI::App& app, JudgeArguments& a) {
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_option(app, flag::kAlpha, a.alpha)->check(between(1e-6, 0.5));
  add_option(app, flag::kMinEffect, a.min_effect, "1% in pairs, else 5%");
  add_option(app, flag::kSameWithin, a.same_within, "3%");
  add_option(app, flag::kMetric, a.metrics, "real_time and all exact ones")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_option(app, flag::kDirection, a.directions)
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_option(app, flag::kFormat, a.format)->type_name(format_names());
  add_repeatable(app, flag::kWrite, a.write);
  add_json(app, a.json);
  add_quiet(app, a.quiet);
  add_switch(app, flag::kStrict, a.strict);
  add_switch(app, flag::kForce, a.force);
}

std::string formats() {
  std::string text = "Formats:\n";
  for (const Writer& writer : writers())
    text += fmt::format("  {:18} {}\n", writer.name, writer.what);
  return text;
}

constexpr const char* kVerdicts =
    "Verdicts: SLOWER and FASTER are changes that surely exceed --min-effect. SAME means that the\n"
    "whole interval of the change is within --same-within. INCONCLUSIVE: neither is certain.\n";

constexpr const char* kExitCodes =
    "Exit codes: 0 no regression, 1 a regression, 2 bad usage or input, 3 a side failed\n"
    "or nothing was compared, 4 the machines cannot be compared, 5 nothing could be judged,\n"
    "or a measurement is inconclusive and --strict is given.\n";

void add_measured_sides(CLI::App& app, GateArguments& a) {
  add_option(app, flag::kBase, a.base);
  add_option(app, flag::kCandidate, a.candidate);
  add_option(app, flag::kBaseBuild, a.base_build);
  add_option(app, flag::kCandidateBuild, a.candidate_build);
  add_option(app, flag::kBaseScript, a.base_script);
  add_option(app, flag::kCandidateScript, a.candidate_script);
  add_option(app, flag::kBench, a.benches, "all *_bench")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_option(app, flag::kArgs, a.bench_args);
  add_switch(app, flag::kPlain, a.plain);
}

void add_schedule(CLI::App& app, GateArguments& a) {
  add_option(app, flag::kScreen, a.screen)->check(whole_between(6, 10000));
  add_option(app, flag::kPairs, a.pairs)->check(whole_between(6, 10000));
  add_option(app, flag::kRepetitions, a.repetitions)->check(whole_between(1, 1000));
  add_option(app, flag::kMinTime, a.min_seconds)->check(above_zero());
  add_option(app, flag::kTimeBudget, a.time_budget)->check(above_zero());
  add_option(app, flag::kRunTimeout, a.run_timeout)->check(above_zero());
  add_option(app, flag::kSeed, a.seed);
  add_switch_off(app, flag::kNoShortcut, a.shortcut);
  add_out(app, a.out);
}

}  // namespace

double parse_share(const std::string& option, const std::string& text) {
  char* end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  const std::string rest = end;
  if (rest == "%") value /= 100;
  const bool ends_well = end != text.c_str() && (rest.empty() || rest == "%");
  if (!ends_well || !std::isfinite(value) || value < 0 || value >= 1) {
    throw InputError(
        fmt::format("{}: \"{}\" is not a share from 0 to 1; write 2% or 0.02", option, text));
  }
  return value;
}

JudgeOptions judge_options(const JudgeArguments& a) {
  JudgeOptions options;
  options.alpha = a.alpha;
  if (a.min_effect) options.min_effect = parse_share("--min-effect", *a.min_effect);
  if (a.same_within) options.same_within = parse_share("--same-within", *a.same_within);
  options.metrics = a.metrics;
  for (const std::string& direction : a.directions) add_metric_kind(options.kinds, direction);
  return options;
}

void check_outputs(const JudgeArguments& arguments) {
  find_writer(arguments.format);
  for (const std::string& text : arguments.write) {
    const std::string path = output(text).second;
    const fs::path folder = fs::path(path).parent_path();
    if (!folder.empty() && !fs::is_directory(folder)) {
      throw InputError(fmt::format("--write: the folder of {} does not exist", path));
    }
  }
}

int print_result(const Comparison& comparison, const JudgeArguments& arguments) {
  for (const std::string& text : arguments.write) {
    const auto [writer, path] = output(text);
    write_text(path, writer->write(comparison));
  }
  const Writer& writer = find_writer(arguments.json ? "json" : arguments.format);
  const std::string text = writer.write(comparison);
  std::fwrite(text.data(), 1, text.size(), stdout);
  const int64_t unclear = comparison.count(Verdict::kInconclusive);
  const int code = exit_code(comparison, arguments.strict);
  if (code == 0 && unclear > 0) {
    print_stderr("warning: {} of {} inconclusive (--strict makes that exit 5)\n", unclear,
                 number(comparison.judged(), "measurement"));
  }
  return code;
}

int run_compare(const CompareArguments& arguments) {
  check_outputs(arguments.judge);
  const JudgeOptions options = judge_options(arguments.judge);
  auto other = std::async(std::launch::async, [&] { return read_suite(arguments.candidate); });
  const Suite base = read_suite(arguments.base), candidate = other.get();
  refuse_unknown_metrics(base, candidate, options);
  const Comparison comparison = judge(base, candidate, options);
  if (comparison.likeness.level == Likeness::Level::kNot && !arguments.judge.force) {
    print_stderr("howmany: not comparable, {}. Use --force to compare them.\n",
                 refusal(comparison.likeness));
    return exit_code::kNotComparable;
  }
  return print_result(comparison, arguments.judge);
}

void add_compare(CLI::App& sub, int& code) {
  auto* const app = &sub;
  auto a = std::make_shared<CompareArguments>();
  add_judging(*app, a->judge);
  app->add_option("base", a->base,
                  "JSON of Google Benchmark, pytest-benchmark or hyperfine, or a result folder")
      ->type_name("PATH")
      ->required();
  app->add_option("candidate", a->candidate, "The same, of the new code")
      ->type_name("PATH")
      ->required();
  app->footer(
      formats() + kVerdicts + kExitCodes +
      "Examples:\n"
      "  howmany compare before.json after.json\n"
      "  howmany compare old/ new/ --write junit=report.xml --write markdown=summary.md\n"
      "  howmany compare a.json b.json --min-effect 2% --metric real_time,items_per_second");
  app->callback([a, &code] { code = run_compare(*a); });
}

void add_gate(CLI::App& sub, int& code) {
  auto* const app = &sub;
  auto a = std::make_shared<GateArguments>();
  add_judging(*app, a->judge);
  add_measured_sides(*app, *a);
  add_schedule(*app, *a);
  app->footer(
      std::string(kVerdicts) + kExitCodes +
      "Examples:\n"
      "  howmany gate --base old/bin/my_bench --candidate new/bin/my_bench\n"
      "  howmany gate --base-build build-main --candidate-build build --bench core_bench\n"
      "  howmany gate --base-script 'python main/train.py' --candidate-script 'python train.py'\n"
      "  howmany gate --base ... --candidate ... --write junit=gate.xml --time-budget 300\n"
      "  howmany compare OUT/base.json OUT/candidate.json              # judges again, in pairs");
  app->callback([a, &code] {
    // script_bench takes no flags of the gate. Equal script files may import different modules.
    if (!a->base_script.empty()) a->plain = true, a->shortcut = false;
    code = run_gate(*a);
  });
}

void add_history(CLI::App& sub, int& code) {
  auto* const app = &sub;
  auto a = std::make_shared<HistoryArguments>();
  app->add_option("source", a->source, "Folder or file of JSON Lines, or git:BRANCH")
      ->type_name("PATH")
      ->required();
  add_option(*app, flag::kMinEffect, a->min_effect, "2%");
  add_json(*app, a->json);  // schema howmany.history/1
  add_quiet(*app, a->quiet);
  app->footer(
      "Each line: {\"commit\", \"date\", \"benchmark\", \"metric\", \"ratio\"}. The ratio is to a\n"
      "pinned program that was measured at the same time, so that the machine cancels.\n"
      "Examples:\n"
      "  howmany gate --base anchor/my_bench --candidate build/my_bench --write history=h/$(date "
      "+%F).jsonl\n"
      "  howmany history h/\n"
      "  howmany history git:benchmark-results --json");
  app->callback([a, &code] { code = run_history(*a); });
}

}  // namespace howmany::reports
