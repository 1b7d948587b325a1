// SPDX-License-Identifier: Apache-2.0
#include "reports/cli/root_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/cli/number_check.h"
#include "core/base/cli/option.h"
#include "core/base/cli/output_options.h"
#include "core/base/process.h"
#include "core/base/schema/exit_codes.h"
#include "core/base/schema/flags.h"
#include "core/base/text/names.h"
#include "reports/cli/commands.h"
#include "reports/cli/completion.h"
#include "reports/cli/help.h"
#include "reports/cli/login_node.h"
#include "reports/cli/report.h"
#include "reports/cli/selftest.h"
#include "reports/cluster/command.h"
#include "reports/comm/command.h"
#include "reports/export/exporter.h"
#include "reports/forms/form.h"
#include "reports/gpus/command.h"
#include "reports/html/summary_files.h"
#include "reports/memory/command.h"
#include "reports/nodes/facts.h"
#include "reports/nodes/nodes.h"
#include "reports/predict/command.h"
#include "reports/regression/command.h"
#include "reports/results/machine.h"
#include "reports/submit/command.h"
#include "reports/transfer/command.h"
#include "reports/why/command.h"
#include "reports/workers/command.h"

namespace howmany::reports {
namespace {

using Words = std::vector<std::string>;
constexpr double kDescribeSeconds = 10;

// If an option is given twice, the last value counts, except for lists.
void last_wins(CLI::App& app) {
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

// The values of --emit, without those in LaTeX.
Words emit_names() {
  Words names = {"slurm", "proposal"};
  for (const std::string& form : form_names()) names.push_back("proposal=" + form);
  return names;
}

std::string emit_error(std::string& text) {
  if (text == "slurm" || text == "proposal") return "";
  try {
    parse_form_choice(text);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

std::string export_error(std::string& text) {
  try {
    parse_export(text);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

std::string export_kinds() {
  std::string text;
  for (const Exporter& exporter : exporters())
    text += fmt::format("\n  {:12} {}", exporter.name, exporter.what);
  return text;
}

void add_answer(CLI::App& app, AnswerArguments& a) {
  add_option(app, flag::kMinEfficiency, a.min_efficiency, "0.8")->check(between(0.01, 2.0));
  add_count(app, flag::kSamples, a.samples, "1281167, one pass over ImageNet-1k");
  auto* json = add_json(app, a.json);
  add_option(app, flag::kEmit, a.emit)
      ->check(CLI::Validator(emit_error, fmt::format("{{{}}}", fmt::join(emit_names(), ","))))
      ->excludes(json);
}

void add_forwarded(CLI::App& app, Arguments& a, bool of_files) {
  for (const ForwardedOption& option : forwarded_options()) {
    if (option.of_files != of_files) continue;
    auto* added = add_option(app, *option.flag, a.forwarded[option.name()], option.usual);
    if (*option.values != '\0') added->type_name(fmt::format("{{{}}}", option.values));
  }
}

void add_measuring(CLI::App& app, Arguments& a) {
  add_devices(app, a.devices, "the GPUs, else slices of the cores");
  add_option(app, flag::kDeviceCount, a.counts, "1,2,3,4,8,... and whole nodes")
      ->delimiter(',')
      ->check(whole_between(1, 4096));
  add_option(app, flag::kNodes, a.nodes, "1,2,4,... of the job")
      ->delimiter(',')
      ->check(whole_between(1, 4096));
  add_option(app, flag::kHosts, a.hosts, "those of the job")->check(not_empty());
  add_list(app, flag::kMode, a.modes, "data_parallel,ddp");
  add_list(app, flag::kBackend, a.backends, "auto");
  add_option(app, flag::kCoresPerDevice, a.cores_per_device, "1")->check(whole_between(1, 4096));
  add_forwarded(app, a, false);
  add_option(app, flag::kRounds, a.rounds, "3")->check(whole_between(1, 1000));
  add_option(app, flag::kTimeBudget, a.time_budget, "no limit")->check(above_zero());
  add_option(app, flag::kRunTimeout, a.run_timeout,
             "120, on GPUs 600, or less within --time-budget")
      ->check(above_zero());
  add_option(app, flag::kSeed, a.seed, "1")->check(whole_between(0, kMaxSeed));
  add_switch(app, flag::kSyncBatchnorm, a.sync_batchnorm);
  add_switch(app, flag::kProfile, a.profile);
  add_switch(app, flag::kOversubscribe, a.oversubscribe);
  auto* out = add_out(app, a.out);
  add_option(app, flag::kResume, a.resume)->excludes(out);
  add_quiet(app, a.quiet);
  add_verbose(app, a.verbose);
}

// Returns the models, modes and backends of this build, or "" if the program that knows is missing.
std::string parts_help() {
  try {
    const ProcessResult described =
        howmany::run_command({.argv = {find_program("howmany-train"), flag::kDescribeOptions},
                              .timeout_seconds = kDescribeSeconds});
    const auto json = nlohmann::json::parse(described.out, nullptr, false);
    return json.is_object() ? json.value("parts", "") + "\n" : "";
  } catch (const InputError&) {
    return "";
  }
}

// Shows the parts of this build before the examples. They are sought only if help is printed.
void add_footer(CLI::App& app, const std::string& examples) {
  app.footer("");  // else the footer of howmany would follow
  app.footer([examples] { return parts_help() + examples; });
}

// Submits jobs of howmany, or collects their results.
void add_submitting(CLI::App& app, Arguments& a) {
  auto* submit = add_option(app, flag::kSubmit, a.submit)->check(not_empty());
  add_switch(app, flag::kOneJob, a.one_job)->needs(submit);
  add_switch(app, flag::kDryRun, a.dry_run)->needs(submit);
}

// Returns the options as they were given, for the jobs that are submitted.
Words options_for_jobs(const CLI::App& app, bool resumed) {
  std::set<std::string> except = {flag::kSubmit, flag::kOneJob, flag::kDryRun,
                                  flag::kNodes,  flag::kOut,    flag::kResume,
                                  flag::kJson,   flag::kEmit,   flag::kQuiet};
  if (resumed) except.insert({flag::kMinEfficiency, flag::kSamples});
  Words words;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || except.contains(name)) continue;
    if (option->get_expected_max() == 0) words.push_back(name);
    if (option->get_expected_max() == 0) continue;
    for (const std::string& value : option->results()) words.insert(words.end(), {name, value});
  }
  return words;
}

int run_study_and_print(const Arguments& arguments) {
  const StudyRun run = run_study(arguments, write_summary);
  ReportArguments report;
  static_cast<AnswerArguments&>(report) = arguments;
  report.paths = {run.folder};
  if (!run.folder.empty()) run_report(report);
  return run.exit_code;
}

void add_gpus(CLI::App& app, const Words& command, int& code) {
  const auto arguments = std::make_shared<Arguments>();
  Arguments& a = *arguments;
  last_wins(app);
  add_repeatable(app, flag::kModel, a.models, "mlp");
  add_option(app, flag::kBatchPerDevice, a.batch_per_device, "by model")
      ->check(whole_between(1, kMaxBatch));
  add_option(app, flag::kGlobalBatch, a.global_batch, "")->check(whole_between(1, kMaxBatch));
  add_forwarded(app, a, true);
  add_option(app, flag::kWorkers, a.workers, "2 for files, else 0")->check(whole_between(0, 4096));
  add_option(app, flag::kSamplesPerStep, a.samples_per_step, "from its batches")
      ->check(whole_between(1, kMaxBatch));
  add_switch(app, flag::kTryDdp, a.try_ddp);
  add_switch(app, flag::kTry, a.tries);
  add_option(app, flag::kStartTimeout, a.start_timeout, "120")->check(above_zero());
  add_option(app, flag::kRate, a.rate, "")->check(not_empty());
  add_switch(app, flag::kPrivate, a.keep_private);
  add_switch(app, flag::kInCopy, a.in_copy);
  add_option(app, flag::kUpTo, a.up_to, "")->check(whole_between(2, 16'384));
  add_option(app, flag::kCluster, a.cluster, "");
  add_option(app, flag::kFinishWithin, a.finish_within, "")->check(above_zero());
  add_option(app, flag::kBudget, a.budget, "")->check(above_zero());
  add_measuring(app, a);
  add_submitting(app, a);
  add_answer(app, a);
  app.callback([&app, arguments, &command, &code] {
    arguments->command = command;
    arguments->options = options_for_jobs(app, !arguments->resume.empty());
    code = is_of_study(*arguments)
               ? run_study_and_print(*arguments)
               : measure_within_job(1, 1, [&] { return measure_and_print(*arguments); });
  });
  add_footer(
      app,
      "Your own PyTorch script, unmodified, after --. {n} is the number of devices:\n"
      "  howmany gpus -- python train.py --epochs 9\n"
      "  howmany gpus --devices cuda:0-3 -- torchrun --nproc-per-node {n} train.py\n"
      "And on GPUs of a cluster (howmany cluster lists some); without a GPU, its step is counted:\n"
      "  howmany gpus --up-to 64 --cluster a100x8 -- python train.py\n"
      "The same for a model of howmany; nothing is measured:\n"
      "  howmany gpus --model resnet50 --cluster a100x4 --up-to 16\n"
      "Any other program that prints its rate:\n"
      "  howmany gpus --rate '(?<samples_per_s>[0-9.]+) img/s' -- python train_jax.py\n\n"
      "Examples:\n"
      "  howmany gpus --model resnet18 --batch-per-device 32\n"
      "  howmany gpus --model mlp --devices cpu:0,cpu:1 --mode data_parallel,ddp --out X\n"
      "  howmany gpus --mode all --devices cpu:0,cpu:1                    # which division is "
      "best?\n"
      "  howmany gpus --model resnet18 --global-batch 256 --samples 90M   # strong scaling\n"
      "  howmany gpus --model resnet18 --devices cuda:0,cuda:1 --precision bf16\n"
      "  howmany gpus --resume X                                          # after Ctrl-C\n"
      "From a login node; nothing runs there:\n"
      "  howmany gpus --submit 'sbatch -A proj --gpus-per-node=4 -t 15' --nodes 1,2,4 --out X -- "
      "python train.py\n"
      "  howmany gpus --resume X                                          # the results so far");
}

void add_run(CLI::App& app, int& code) {
  const auto arguments = std::make_shared<Arguments>();
  Arguments& a = *arguments;
  last_wins(app);
  add_option(app, flag::kPreset, a.preset, "quick, 2 minutes at most")->type_name("{quick,full}");
  add_measuring(app, a);
  add_answer(app, a);
  app.callback([arguments, &code] {
    refuse_login_node();
    if (!arguments->preset) arguments->preset = "quick";
    code = measure_and_print(*arguments);
  });
  app.footer(
      "Examples:\n"
      "  howmany                          # the quick tour\n"
      "  howmany run --preset full --out X\n"
      "  howmany run --json > summary.json");
}

void add_report(CLI::App& app, int& code) {
  const auto arguments = std::make_shared<ReportArguments>();
  ReportArguments& a = *arguments;
  last_wins(app);
  app.add_option("path", a.paths, "Folders of runs, or files summary.json")
      ->type_name("PATH")
      ->required()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_answer(app, a);
  add_option(app, flag::kExperiments, a.experiments)->needs(app.get_option(flag::kEmit));
  auto* exports =
      add_repeatable(app, flag::kExport, a.exports)->check(CLI::Validator(export_error, ""));
  add_option(app, flag::kPython, a.python, "the active one")->needs(exports);
  app.callback([arguments, &code] { code = run_report(*arguments); });
  app.footer(
      "Examples:\n"
      "  howmany report howmany-out/20260101T120000Z\n"
      "  howmany report summary.json --min-efficiency 0.6 --samples 90M\n"
      "  howmany report howmany-out/20260101T120000Z --emit slurm > job.sh\n"
      "  howmany report weak strong --emit proposal > scaling.md   # for a proposal of computing "
      "time\n"
      "  howmany report RUN --emit proposal=csc > RUN/scaling.md  # the form of a computing "
      "centre\n"
      "  howmany report RUN --emit proposal=ncar:latex --experiments experiments.toml\n"
      "  howmany report before after                           # side by side\n"
      "  howmany report RUN --export openmetrics:/var/lib/node_exporter/howmany.prom\n"
      "  howmany report RUN --export mlflow:DIR --export wandb:DIR  # nothing is uploaded\n"
      "Forms: " +
      fmt::format("{}", fmt::join(form_names(), ", ")) +
      "; each also with :latex. Plots are SVG files in the folder of the run.\nExports:" +
      export_kinds());
}

void add_selftest(CLI::App& app, int& code) {
  const auto arguments = std::make_shared<SelftestArguments>();
  SelftestArguments& a = *arguments;
  last_wins(app);
  add_switch(app, flag::kQuick, a.quick);
  add_option(app, flag::kRunTimeout, a.timeout_seconds)->check(above_zero());
  add_json(app, a.json);
  add_quiet(app, a.quiet);
  app.callback([arguments, &code] { code = run_selftest(*arguments); });
  app.footer(
      "Examples:\n"
      "  howmany selftest                 # after unpacking the bundle on another machine\n"
      "  howmany selftest --quick         # about 10 s: each program computes something small\n"
      "  howmany selftest --json > selftest.json\n"
      "Exit codes: 0 all passed, 1 a test failed, 3 a test program is missing, crashed or hung.");
}

// For check_nodes(), which starts it on each node.
void add_node(CLI::App& app, int& code) {
  const auto head = std::make_shared<std::string>(), python = std::make_shared<std::string>();
  app.add_option("head", *head, "The first node")->required();
  app.add_option("python", *python, "A Python with torch");
  app.callback([head, python, &code] {
    fmt::print("{}\n", facts_of_this_node(*head, *python));
    code = exit_code::kFine;
  });
}

// Adapters to the type of CommandRow::add.
template <void (*add)(CLI::App&, int&)>
void without_command(CLI::App& app, const Words& /*command*/, int& code) {
  add(app, code);
}
void nothing(CLI::App& /*app*/, const Words& /*command*/, int& /*code*/) {}

// All commands. The sections of --help are in the order of their first rows.
constexpr CommandRow kCommands[] = {
    {"gpus", group::kAsk, "Number of GPUs, from measured steps", add_gpus, kTakesCommand},
    {"why", group::kAsk, "Where the time of a run goes, and what would help",
     without_command<add_why_command>},
    {"workers", group::kAsk, "Number of loader workers, measured", add_workers, kTakesCommand},
    {"backend", group::kAsk, "Communication backend by size, measured", add_backend_command,
     kTakesCommand},
    {"memory", group::kAsk, "Does a training step fit a device?", add_memory_command,
     kTakesCommand | kProgram},
    {"predict", group::kAsk, "Rate on more GPUs than were measured",
     without_command<add_predict_command>},
    {"transfer", group::kMeasure, "Cost of moving data, measured",
     without_command<add_transfer_command>},
    {"devices", group::kMeasure, "Devices, cores, their limits, and backends", nothing, kProgram},
    {"train", group::kMeasure, "One plain training run", nothing, kProgram},
    {"selftest", group::kMeasure, "Does this copy compute right on this machine?",
     without_command<add_selftest>},
    {"compare", group::kCi, "Did it get slower? Two files or result folders",
     without_command<add_compare>},
    {"gate", group::kCi, "Is it slower? Measures both sides now, interleaved",
     without_command<add_gate>},
    {"history", group::kCi, "When did it get slower? Reads a history; always exits 0",
     without_command<add_history>},
    {"report", group::kMore, "Answer of a run again, or of several side by side",
     without_command<add_report>},
    {"cluster", group::kMore, "List of clusters, and the times of collectives on one",
     without_command<add_cluster_command>},
    {"help", group::kMore, "Topics, all commands, or the help of one", without_command<add_help>},
    {"run", group::kUnlisted, "The answers for this machine (the default)",
     without_command<add_run>},
    {"node", group::kUnlisted, "The facts of this node, for a run on several",
     without_command<add_node>},
    {"completion", group::kUnlisted, "Completion script for a shell, on stdout",
     without_command<add_completion>},
};

bool has_own_command(int argc, char** argv) {
  return std::find(argv, argv + argc, std::string_view("--")) != argv + argc;
}

// Runs external subcommands, as git does: all arguments after the name belong to the program.
void run_external(int argc, char** argv) {
  const CommandRow* const row = argc > 1 ? find_command(argv[1]) : nullptr;
  if (row == nullptr || !row->is(kProgram)) return;
  if (row->is(kTakesCommand) && has_own_command(argc, argv)) return;
  std::vector<std::string> arguments = {find_program(fmt::format("howmany-{}", row->name))};
  arguments.insert(arguments.end(), argv + 2, argv + argc);
  exec_program(arguments);
}

// Returns the words after the program's name, which begin with a command.
Words typed_words(int argc, char** argv) {
  Words words(argv + 1, argv + argc);
  const std::string first = words.empty() ? "" : words[0];
  const bool about_us = first == "--help" || first == "-h" || first == "--version";
  if (first.empty() || (first.starts_with("-") && !about_us)) words.insert(words.begin(), "run");
  if (about_us || find_command(words[0]) != nullptr) return words;
  Words known;
  for (const CommandRow& row : kCommands) known.emplace_back(row.name);
  throw InputError(fmt::format("unknown command \"{}\"{} (howmany --help lists them)", first,
                               did_you_mean(first, known)));
}

// Removes "--" and the words after it, which are the user's own command, and returns them.
Words words_after_dashes(Words& typed) {
  const auto dashes = std::ranges::find(typed, "--");
  if (dashes == typed.end()) return {};
  const CommandRow* const row = find_command(typed[0]);
  if (row == nullptr || !row->is(kTakesCommand))
    throw InputError(fmt::format("howmany {} takes no command after --", typed[0]));
  Words command(dashes + 1, typed.end());
  if (command.empty()) throw InputError("no command after --");
  typed.erase(dashes, typed.end());
  return command;
}

// Writes an error for unexpected arguments that suggests what to use instead.
std::string not_expected(const CLI::App& app, const Words& words) {
  const CLI::App& command = *app.get_subcommands().front();
  Words known;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  if (command.get_name() == "run") known.emplace_back(flag::kVersion.name);  // of bare `howmany`
  const std::string see = fmt::format("(howmany {} --help lists them)", command.get_name());
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (name.starts_with("--") && std::ranges::find(known, name) == known.end())
      return fmt::format("unknown option {}{} {}", name, did_you_mean(name, known), see);
  }
  return fmt::format("\"{}\" is not expected there {}", command.remaining().front(), see);
}

}  // namespace

std::span<const CommandRow> commands() { return kCommands; }

const CommandRow* find_command(std::string_view name) {
  const auto* const found = std::ranges::find(kCommands, name, &CommandRow::name);
  return found == std::end(kCommands) ? nullptr : found;
}

int run_command(int argc, char** argv, const std::string& version) {
  run_external(argc, argv);
  CLI::App app{"Recommends a number of GPUs from measured training steps."};
  app.name("howmany");
  app.set_version_flag(flag::kVersion, version, flag::kVersion.help);
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  howmany                                    # two minutes: how does this machine scale?\n"
      "  howmany gpus -- python train.py            # your own PyTorch script, unmodified\n"
      "  howmany why howmany-out/20260101T120000Z   # why does it not scale?\n"
      "  howmany workers -- python train.py         # how many loader workers for it?\n"
      "  howmany gpus --model resnet50 --cluster a100x4 --up-to 16  # no GPU here?\n"
      "  howmany predict --rates 1=412,2=801 --up-to 16  # and on more GPUs?\n"
      "  howmany gpus --model resnet18 --data DIR   # our model, your data\n"
      "  howmany memory --device-memory 24GB -- python train.py  # does it fit?\n"
      "  howmany backend                            # which backend, from which size on?\n"
      "  howmany compare before.json after.json     # did it get slower?\n"
      "  howmany gate --base A --candidate B        # the same, measured now, for CI\n"
      "howmany COMMAND --help shows options and examples; howmany help lists topics and every "
      "command.");
  Words command;
  int code = exit_code::kFine;
  for (const CommandRow& row : kCommands) {
    const bool listed = row.group != group::kUnlisted;
    CLI::App* const sub =
        app.add_subcommand(row.name, row.help)->group(listed ? std::string(row.group) : "");
    row.add(*sub, command, code);
  }
  if (argc > 1 && argv[1] == kComplete) {
    print_completions(app, Words(argv + 2, argv + argc));
    return exit_code::kFine;
  }
  Words typed = typed_words(argc, argv);
  command = words_after_dashes(typed);
  try {
    Words reversed(typed.rbegin(), typed.rend());
    app.parse(reversed);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ExtrasError&) {
    throw InputError(not_expected(app, typed));
  } catch (const CLI::ParseError& error) {
    throw InputError(error.what());
  }
  return code;
}

}  // namespace howmany::reports
