#include "reports/cli/root_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "core/base/cli/list_option.h"
#include "core/base/cli/number_check.h"
#include "core/base/cli/output_options.h"
#include "core/base/process.h"
#include "core/base/schema/flags.h"
#include "core/base/text/names.h"
#include "reports/cli/selftest.h"
#include "reports/comm/command.h"
#include "reports/gpus/command.h"
#include "reports/regression/cli.h"
#include "reports/results/machine.h"
#include "reports/results/record.h"
#include "reports/transfer/command.h"
#include "reports/workers/command.h"

namespace howmany::reports {
namespace {

const std::vector<std::string> kCommands = {"run",   "gpus",    "workers", "backend", "transfer",
                                            "train", "devices", "report",  "selftest"};

// If an option is given twice, the last value counts, except for lists.
void last_wins(CLI::App& app) {
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void add_output(CLI::App& app, Arguments& a) {
  app.add_option("--min-efficiency", a.min_efficiency,
                 "What a device must give to be worth it [0.8]")
      ->check(between(0.01, 2.0));
  app.add_option(
      flag::kSamples, a.samples,
      "Samples to train, for time and device-hours [1281167, one pass over ImageNet-1k]");
  auto* json = add_json(app, a.json);
  app.add_option("--emit", a.emit, "slurm: a job script for what is recommended, on stdout")
      ->check(CLI::IsMember({"slurm"}))
      ->excludes(json);
  add_no_color(app, a.no_color);
}

std::string type_of(const PassedOption& option) {
  if (std::string_view(option.name) == "data") return "PATH";
  return *option.values == '\0' ? "NAME" : fmt::format("{{{}}}", option.values);
}

void add_passed(CLI::App& app, Arguments& a, bool of_files) {
  for (const PassedOption& option : passed_options())
    if (option.of_files == of_files)
      app.add_option(fmt::format("--{}", option.name), a.passed[option.name], option.help)
          ->type_name(type_of(option));
}

void add_measuring(CLI::App& app, Arguments& a) {
  add_list(
      app, flag::kDevices, a.devices,
      "Devices in order: cuda:0,cuda:1 or the beginnings of GPUs' UUIDs, cpu:0,cpu:1 [GPUs, else "
      "slices of the cores]");
  add_list(app, flag::kMode, a.modes,
           "Parallel modes, with options as pipeline:micro_batches=8, or all [data_parallel,ddp]");
  add_list(app, flag::kBackend, a.backends,
           "Communication between ranks; auto chooses and says why [auto]");
  app.add_option(flag::kCoresPerDevice, a.cores_per_device, "Cores of a cpu device")
      ->check(CLI::Range(1, 4096));
  add_passed(app, a, false);
  app.add_option(flag::kRounds, a.rounds, "Times everything is measured, in fresh processes [3]")
      ->check(CLI::Range(1, 1000));
  app.add_option(
         "--time-budget", a.time_budget,
         "Seconds for the whole measurement; each configuration is measured once in any case")
      ->check(above_zero());
  app.add_option("--run-timeout", a.run_timeout,
                 "Seconds after which a run counts as hung [120, or within --time-budget twice "
                 "what is left, 30 at the least]")
      ->check(above_zero());
  app.add_option(flag::kSeed, a.seed, "Seed of data and parameters [1]");
  app.add_flag(flag::kSyncBatchnorm, a.sync_batchnorm,
               "Batch norm by the statistics of all replicas, not of each");
  app.add_flag(flag::kProfile, a.profile,
               "Also where a step goes, in steps after the timed ones, and trace.pftrace");
  app.add_flag(
      flag::kOversubscribe, a.oversubscribe,
      "Allow more devices than cores, or a GPU listed twice; marked, and never recommended");
  add_out(app, a.out);
  app.add_option("--resume", a.resume, "Folder of an earlier run to go on with")
      ->type_name("DIR")
      ->excludes("--out");
  add_quiet(app, a.quiet);
  add_verbose(app, a.verbose);
}

void add_gpus(CLI::App& app, Arguments& a) {
  last_wins(app);
  app.add_option(flag::kModel, a.models,
                 "Model, with its options: resnet18:image=64; may be repeated [mlp]")
      ->type_name("NAME")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  auto* weak = app.add_option(flag::kBatchPerDevice, a.batch_per_device,
                              "Weak scaling: this many samples a device and step [by model]");
  app.add_option(flag::kGlobalBatch, a.global_batch,
                 "Strong scaling: this many samples a step in all")
      ->check(whole_up_to(kMostBatch))
      ->excludes(weak);
  weak->check(whole_up_to(kMostBatch));
  add_passed(app, a, true);
  app.add_option(flag::kWorkers, a.workers, "Loader workers a device")->check(CLI::Range(0, 4096));
  add_measuring(app, a);
  add_output(app, a);
  app.footer(
      "Examples:\n"
      "  howmany gpus --model resnet18 --batch-per-device 32\n"
      "  howmany gpus --model mlp --devices cpu:0,cpu:1 --mode data_parallel,ddp --out X\n"
      "  howmany gpus --mode all --devices cpu:0,cpu:1                    # which division is "
      "best?\n"
      "  howmany gpus --model resnet18 --global-batch 256 --samples 90M   # strong scaling\n"
      "  howmany gpus --model resnet18 --devices cuda:0,cuda:1 --precision bf16\n"
      "  howmany gpus --resume X                                          # after Ctrl-C");
}

void add_run(CLI::App& app, Arguments& a) {
  last_wins(app);
  app.add_option("--preset", a.preset, "quick (2 minutes at most) or full [quick]")
      ->type_name("{quick,full}");
  add_measuring(app, a);
  add_output(app, a);
  app.footer(
      "Examples:\n"
      "  howmany                          # the quick tour\n"
      "  howmany run --preset full --out X\n"
      "  howmany run --json > summary.json");
}

void add_report(CLI::App& app, Arguments& a) {
  last_wins(app);
  app.add_option("path", a.path, "Folder of a run, or a summary.json")
      ->type_name("PATH")
      ->required();
  add_output(app, a);
  app.footer(
      "Examples:\n"
      "  howmany report howmany-out/20260101T120000Z\n"
      "  howmany report summary.json --min-efficiency 0.6 --samples 90M\n"
      "  howmany report howmany-out/20260101T120000Z --emit slurm > job.sh");
}

void add_selftest(CLI::App& app, SelftestArguments& a) {
  last_wins(app);
  app.add_option(flag::kTimeout, a.timeout_seconds,
                 "Seconds after which a test program counts as hung")
      ->check(above_zero())
      ->capture_default_str();
  app.add_flag(flag::kJson, a.json, "The result on stdout as JSON, nothing else there");
  add_quiet(app, a.quiet);
  app.footer(
      "Examples:\n"
      "  howmany selftest                 # after unpacking the bundle on another machine\n"
      "  howmany selftest --json > selftest.json\n"
      "Exit codes: 0 all passed, 1 a test failed, 3 a test program is missing, crashed or hung.");
}

// Runs external subcommands, as git does: all arguments after the name belong to the program.
void hand_over(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  if (name != "train" && name != "devices") return;
  std::vector<std::string> arguments = {find_program("howmany-" + name)};
  arguments.insert(arguments.end(), argv + 2, argv + argc);
  become(arguments);
}

std::vector<std::string> words(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const std::string first = words.empty() ? "" : words[0];
  const bool about_us = first == "--help" || first == "-h" || first == "--version";
  if (first.empty() || (first.starts_with("-") && !about_us)) words.insert(words.begin(), "run");
  std::vector<std::string> known = kCommands;
  known.insert(known.end(), kComparingCommands.begin(), kComparingCommands.end());
  known.insert(known.end(), kMetaCommands.begin(), kMetaCommands.end());
  if (!first.empty() && !first.starts_with("-") &&
      std::find(known.begin(), known.end(), first) == known.end()) {
    throw InputError(fmt::format("unknown command \"{}\"{} (howmany --help lists them)", first,
                                 did_you_mean(first, known)));
  }
  return words;
}

// Writes an error for unexpected arguments that suggests what to use instead.
std::string not_expected(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App& command = *app.get_subcommands().front();
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  const std::string see =
      fmt::format("(howmany {} --help shows what there is)", command.get_name());
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (name.starts_with("--") && std::ranges::find(known, name) == known.end())
      return fmt::format("unknown option {}{} {}", name, did_you_mean(name, known), see);
  }
  return fmt::format("\"{}\" is not expected there {}", command.remaining().front(), see);
}

}  // namespace

int run_command(int argc, char** argv, const BuildText& build) {
  hand_over(argc, argv);
  CLI::App app{"Tells how many GPUs to ask for, from measurements of real training steps."};
  app.name("howmany");
  app.set_version_flag("--version", build.version, "Version, commit and the parts built in");
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  howmany                                    # two minutes: how does this machine scale?\n"
      "  howmany gpus --model resnet18 --data DIR   # your model, your data\n"
      "  howmany workers --data DIR                 # how many loader workers feed it?\n"
      "  howmany backend                            # which backend, from which size on?\n"
      "  howmany compare before.json after.json     # did it get slower?\n"
      "  howmany gate --base A --candidate B        # the same, measured now, for CI\n"
      "  howmany gpus --help");
  Arguments a;
  int code = kFine;
  auto* tour = app.add_subcommand("run", "The answers for this machine (the default)");
  add_run(*tour, a);
  tour->callback([&] {
    if (!a.preset) a.preset = "quick";
    code = run_gpus(a);
  });
  auto* gpus = app.add_subcommand("gpus", "How many devices to ask for, measured");
  add_gpus(*gpus, a);
  gpus->callback([&] { code = run_gpus(a); });
  add_workers(app, code);
  add_backend_command(app, code);
  add_transfer_command(app, code);
  app.add_subcommand("train", "One plain training run (see howmany train --help)");
  app.add_subcommand("devices", "What is here: devices, cores and their limits, backends");
  auto* report = app.add_subcommand("report", "Render again from the files of a run");
  add_report(*report, a);
  report->callback([&] { code = run_report(a); });

  SelftestArguments self;
  auto* selftest = app.add_subcommand("selftest", "Does this copy compute right on this machine?");
  add_selftest(*selftest, self);
  selftest->callback([&] { code = run_selftest(self); });
  add_comparing(app, code);
  add_meta_commands(app, build, code);

  std::vector<std::string> typed = words(argc, argv);
  try {
    std::vector<std::string> reversed(typed.rbegin(), typed.rend());
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
