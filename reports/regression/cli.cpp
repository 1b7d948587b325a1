#include "reports/regression/cli.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "core/base/cli/number_check.h"
#include "core/base/cli/output_options.h"
#include "core/base/schema/flags.h"
#include "reports/regression/command.h"
#include "reports/regression/gate.h"
#include "reports/regression/history.h"
#include "reports/regression/history_command.h"
#include "reports/regression/kernels.h"
#include "reports/regression/writer.h"

namespace howmany::reports {
namespace {

std::string format_names() {
  std::vector<std::string> names;
  for (const Writer& writer : writers()) names.emplace_back(writer.name);
  return fmt::format("{{{}}}", fmt::join(names, ","));
}

void add_judging(CLI::App& app, JudgeArguments& a) {
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("--alpha", a.alpha, "Chance of even one false alarm that is accepted [0.05]")
      ->check(between(1e-6, 0.5));
  app.add_option("--min-effect", a.min_effect,
                 "The floor: smaller changes never count [1% paired, 5% unpaired]");
  app.add_option("--same-within", a.same_within, "An interval within this is the same [3%]");
  app.add_option("--metric", a.metrics, "Metrics to judge besides exact ones, or all [real_time]")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--direction", a.directions, "METRIC=less|more|exact: which way is better")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--noise", a.noise, "noise.json of gate --self-test: raises the floor to it")
      ->type_name("FILE");
  app.add_option("--format", a.format, "On stdout [text]; howmany compare --help lists them")
      ->type_name(format_names());
  app.add_option("--write", a.write, "FORMAT=FILE, may be repeated")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_flag(flag::kJson, a.json, "As --format json");
  app.add_flag("--strict", a.strict, "Exit 5 when a measurement is inconclusive");
  app.add_flag("--force", a.force, "Compare machines that are not alike");
}

std::string formats() {
  std::string text = "Formats:\n";
  for (const Writer& writer : writers())
    text += fmt::format("  {:18} {}\n", writer.name, writer.what);
  return text;
}

constexpr const char* kExitCodes =
    "Exit codes: 0 no regression, 1 a regression, 2 bad usage or input, 3 a side failed\n"
    "or nothing was compared, 4 the machines cannot be compared, 5 inconclusive under --strict.\n";

void add_compare(CLI::App& parent, int& code) {
  auto* app = parent.add_subcommand("compare", "Did it get slower? Two files or result folders");
  auto a = std::make_shared<CompareArguments>();
  add_judging(*app, a->judge);
  app->add_option("base", a->base, "Google Benchmark JSON or a result folder")
      ->type_name("PATH")
      ->required();
  app->add_option("candidate", a->candidate, "The same, of the new code")
      ->type_name("PATH")
      ->required();
  app->footer(
      formats() + kExitCodes +
      "Examples:\n"
      "  howmany compare before.json after.json\n"
      "  howmany compare old/ new/ --write junit=report.xml --write markdown=summary.md\n"
      "  howmany compare a.json b.json --min-effect 2% --metric real_time,items_per_second");
  app->callback([a, &code] { code = run_compare(*a); });
}

void add_measured_sides(CLI::App& app, GateArguments& a) {
  app.add_option("--base", a.base, "Command of the old program");
  app.add_option("--candidate", a.candidate, "Command of the new one");
  app.add_option("--base-build", a.base_build, "Or: build folder of the old programs")
      ->type_name("DIR");
  app.add_option("--candidate-build", a.candidate_build, "Build folder of the new ones")
      ->type_name("DIR");
  app.add_option("--bench", a.benches, "Programs of the build folders [all *_bench]")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--args", a.bench_args,
                 "Arguments for them, such as \"--benchmark_filter=matmul\"");
  app.add_flag("--plain", a.plain, "The commands take no flags and print the JSON by themselves");
}

void add_schedule(CLI::App& app, GateArguments& a) {
  app.add_option("--screen", a.screen, "Pairs of launches to screen with [10]")
      ->check(CLI::Range(6, 10000));
  app.add_option("--pairs", a.pairs, "Fresh pairs that decide what the screen left open [40]")
      ->check(CLI::Range(6, 10000));
  app.add_option("--repetitions", a.repetitions,
                 "In each launch, which counts as the best of them [3]")
      ->check(CLI::Range(1, 1000));
  app.add_option("--min-time", a.min_seconds, "Seconds of a repetition [0.01]")
      ->check(above_zero());
  app.add_option("--time-budget", a.time_budget, "Seconds for everything [300]")
      ->check(above_zero());
  app.add_option("--run-timeout", a.run_timeout,
                 "Seconds after which a launch counts as hung [120]")
      ->check(above_zero());
  app.add_option(flag::kSeed, a.seed, "Random seed of the order of the runs [1]");
  app.add_flag("!--no-canary", a.canary, "Without the benchmark that is known to be slower");
  app.add_flag("!--no-shortcut", a.shortcut, "Measure identical programs too");
  add_out(app, a.out);
  add_quiet(app, a.quiet);
}

void add_gate(CLI::App& parent, int& code) {
  auto* app =
      parent.add_subcommand("gate", "Is it slower? Both sides measured now, in turns, for CI");
  auto a = std::make_shared<GateArguments>();
  add_judging(*app, a->judge);
  add_measured_sides(*app, *a);
  add_schedule(*app, *a);
  app->add_flag("--self-test", a->self_test,
                "How often this gate alarms on unchanged code, and what slowdowns it finds, here");
  app->add_option("--blocks", a->blocks, "Blocks of the self-test [15000]")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  app->footer(
      std::string(kExitCodes) +
      "Examples:\n"
      "  howmany gate --base old/bin/my_bench --candidate new/bin/my_bench\n"
      "  howmany gate --base-build build-main --candidate-build build --bench core_bench\n"
      "  howmany gate --base ... --candidate ... --write junit=gate.xml --time-budget 300\n"
      "  howmany gate --self-test --out gate-trace --time-budget 1200   # go on: again\n"
      "  howmany compare OUT/base.json OUT/candidate.json              # judge again, in pairs");
  app->callback([a, &code] { code = run_gate(*a); });
}

void add_worker(CLI::App& parent, int& code) {
  auto* app = parent.add_subcommand("gate-worker", "What the canary and the self-test measure");
  app->group("");  // internal
  auto a = std::make_shared<WorkerArguments>();
  app->add_option(flag::kKernels, a->kernels)->delimiter(',');
  app->add_option("--extra", a->extra, "Percent of more work")->check(between(0, 1000));
  app->add_option("--repetitions", a->repetitions)->check(CLI::Range(1, 1000));
  app->add_option(flag::kSeed, a->seed);
  app->callback([a, &code] { code = run_worker(*a); });
}

void add_history(CLI::App& parent, int& code) {
  auto* app =
      parent.add_subcommand("history", "Steps, drift and flapping in a history; never blocks");
  auto a = std::make_shared<HistoryArguments>();
  app->add_option("source", a->source, "Folder or file of JSON Lines, or git:BRANCH")
      ->type_name("PATH")
      ->required();
  app->add_option("--min-effect", a->min_effect, "Smaller changes of level are not told [2%]");
  app->add_flag(flag::kJson, a->json, "As JSON, schema howmany.history/1");
  app->footer(
      "Each line: {\"commit\", \"date\", \"benchmark\", \"metric\", \"ratio\"}, the ratio to a "
      "pinned\n"
      "anchor that was measured beside it, so that the machine cancels.\n"
      "Examples:\n"
      "  howmany gate --base anchor/my_bench --candidate build/my_bench --write history=h/$(date "
      "+%F).jsonl\n"
      "  howmany history h/\n"
      "  howmany history git:benchmark-results --json");
  app->callback([a, &code] { code = run_history(*a); });
}

}  // namespace

const std::vector<std::string> kComparingCommands = {"compare", "gate", "history", "gate-worker"};

void add_comparing(CLI::App& app, int& code) {
  add_compare(app, code);
  add_gate(app, code);
  add_history(app, code);
  add_worker(app, code);
}

}  // namespace howmany::reports
