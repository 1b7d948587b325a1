#include "reports/compare/cli.h"

#include <fmt/format.h>

#include <memory>

#include "reports/compare/command.h"
#include "reports/compare/writer.h"

namespace howmany {
namespace {

void add_judging(CLI::App& app, JudgeArguments& a) {
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("--alpha", a.alpha, "Chance of even one false alarm that is accepted [0.05]")
      ->check(CLI::Range(1e-6, 0.5));
  app.add_option("--min-effect", a.min_effect,
                 "The floor: smaller changes never count [1% paired, 5% unpaired]");
  app.add_option("--same-within", a.same_within, "An interval within this is the same [3%]");
  app.add_option("--metric", a.metrics, "Metrics to judge besides exact ones, or all [real_time]")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--direction", a.directions, "METRIC=less|more|exact: which way is better")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--noise", a.noise, "noise.json of gate --self-test: raises the floor to it");
  app.add_option("--format", a.format, "On stdout [text]; howmany compare --help lists them");
  app.add_option("--write", a.write, "FORMAT=FILE, may be repeated")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_flag("--json", a.json, "As --format json");
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
    "Exit codes: 0 no regression, 1 a regression, 2 bad usage or input, 3 a side failed,\n"
    "4 the machines cannot be compared, 5 inconclusive under --strict.\n";

void add_compare(CLI::App& parent, int& code) {
  auto* app = parent.add_subcommand("compare", "Did it get slower? Two files or result folders");
  auto a = std::make_shared<CompareArguments>();
  add_judging(*app, a->judge);
  app->add_option("base", a->base, "Google Benchmark JSON or a result folder")->required();
  app->add_option("candidate", a->candidate, "The same, of the new code")->required();
  app->footer(
      formats() + kExitCodes +
      "Examples:\n"
      "  howmany compare before.json after.json\n"
      "  howmany compare old/ new/ --write junit=report.xml --write markdown=summary.md\n"
      "  howmany compare a.json b.json --min-effect 2% --metric real_time,items_per_second");
  app->callback([a, &code] { code = run_compare(*a); });
}

}  // namespace

const std::vector<std::string> kComparingCommands = {"compare"};

void add_comparing(CLI::App& app, int& code) { add_compare(app, code); }

}  // namespace howmany
