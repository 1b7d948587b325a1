// SPDX-License-Identifier: Apache-2.0
#include "reports/cli/completion/cli.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/cli/option.h"
#include "core/base/process.h"
#include "core/base/schema/flags.h"
#include "core/base/text/names.h"
#include "reports/cli/completion/command_spec.h"
#include "reports/cli/completion/scripts.h"
#include "reports/cli/help/man.h"
#include "reports/cli/help/topics.h"
#include "reports/results/machine.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

constexpr double kDescribeTimeout = 20;  // seconds

template <typename Part>  // CLI::App or CLI::Option
bool shown_in_help(const Part* part) {
  return !part->get_group().empty();
}

OptionSpec describe_option(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  const bool flag = option.get_items_expected_max() == 0;
  return make_option(names, option.get_description(), flag ? "" : option.get_type_name());
}

CommandSpec describe_app(const CLI::App& app) {
  CommandSpec command{app.get_name(), app.get_description(), app.get_footer(), {}, {}};
  for (const CLI::Option* option : app.get_options(shown_in_help<CLI::Option>))
    command.options.push_back(describe_option(*option));
  for (const CLI::App* sub : app.get_subcommands(shown_in_help<CLI::App>))
    command.commands.push_back(describe_app(*sub));
  return command;
}

// If the program is missing, its command has no options.
void ask_program(CommandSpec& command) {
  try {
    const ProcessResult ended =
        run_command({.argv = {find_program("howmany-" + command.name), flag::kDescribeOptions},
                     .timeout_seconds = kDescribeTimeout});
    if (ended.ok()) use_description(command, ended.out);
  } catch (const InputError&) {
    return;
  }
}

std::vector<std::string> help_subjects(const CommandSpec& root) {
  std::vector<std::string> names;
  for (const HelpTopic& topic : help_topics()) names.emplace_back(topic.name);
  for (const CommandSpec& command : root.commands) names.push_back(command.name);
  return names;
}

CommandSpec describe_everything(const CLI::App& app) {
  CommandSpec root = describe_app(app);
  for (CommandSpec& command : root.commands) {
    if (std::ranges::count(kPrograms, command.name) > 0) ask_program(command);
    if (command.name != "help") continue;
    for (OptionSpec& option : command.options)
      if (option.names.empty()) option.choices = help_subjects(root);
  }
  share_choices(root);
  return root;
}

std::string script_for(const std::string& shell, const CommandSpec& root) {
  if (shell == "bash") return bash_script(root);
  return shell == "zsh" ? zsh_script(root) : fish_script(root);
}

std::string list_of_help(const CommandSpec& root) {
  std::string text = "howmany help TOPIC\n\nTopics:\n";
  for (const HelpTopic& topic : help_topics())
    text += fmt::format("  {:<14} {}\n", topic.name, topic.summary);
  text += "\nCommands:\n";
  for (const CommandSpec& command : root.commands)
    text += fmt::format("  {:<14} {}\n", command.name, command.help);
  return text;
}

void print_help(const CLI::App& app, const std::string& subject) {
  const CommandSpec root = describe_app(app);
  if (subject.empty()) return fmt::print("{}", list_of_help(root));
  if (const HelpTopic* topic = find_help_topic(subject)) return fmt::print("{}", topic->text);
  if (find_command(root, subject) == nullptr)
    throw InputError(fmt::format("no help about \"{}\"{} (howmany help lists the topics)", subject,
                                 did_you_mean(subject, help_subjects(root))));
  if (std::ranges::count(kPrograms, subject) > 0)
    exec_program({find_program("howmany-" + subject), "--help"});
  fmt::print("{}", app.get_subcommand(subject)->help("howmany"));
}

void add_completion(CLI::App& app, int& code) {
  auto* sub = app.add_subcommand("completion", "Completion script for a shell, on stdout");
  const auto shell = std::make_shared<std::string>();
  sub->add_option("shell", *shell, "Shell that runs the script")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  sub->footer(
      "Examples:\n"
      "  source <(howmany completion bash)      # this shell; for every one, add it to ~/.bashrc\n"
      "  source <(howmany completion zsh)       # after compinit, in ~/.zshrc\n"
      "  howmany completion fish > ~/.config/fish/completions/howmany.fish");
  sub->callback([shell, &app, &code] {
    fmt::print("{}", script_for(*shell, describe_everything(app)));
    code = 0;
  });
}

// The names and helps of all options, by command.
nlohmann::ordered_json options_json(const CommandSpec& root) {
  nlohmann::ordered_json commands;
  for (const CommandSpec& command : root.commands) {
    commands[command.name] = nlohmann::json::array();
    for (const OptionSpec& option : command.options)
      commands[command.name].push_back({{"names", option.names}, {"help", option.help}});
  }
  return commands;
}

void add_help(CLI::App& app, const std::string& date, int& code) {
  auto* sub = app.add_subcommand("help", "A topic, the help of a command, or the man page");
  const auto subject = std::make_shared<std::string>();
  const auto man = std::make_shared<bool>(false), options = std::make_shared<bool>(false);
  auto* topic = sub->add_option("topic", *subject, "Topic or command (default: list of topics)");
  add_switch(*sub, flag::kMan, *man)->excludes(topic);
  add_switch(*sub, flag::kDescribeOptions, *options)->group("");  // for tests
  sub->footer(
      "Examples:\n"
      "  howmany help method\n"
      "  howmany help gpus                  # as howmany gpus --help\n"
      "  howmany help --man | man -l -");
  sub->callback([subject, man, options, date, &app, &code] {
    if (*options)
      fmt::print("{}\n", options_json(describe_everything(app)).dump(2));
    else if (*man)
      fmt::print("{}", man_page(describe_everything(app), date));
    else
      print_help(app, *subject);
    code = 0;
  });
}

}  // namespace

const std::vector<std::string> kMetaCommands = {"completion", "help", "version"};

void add_meta_commands(CLI::App& app, const BuildText& build, int& code) {
  add_completion(app, code);
  add_help(app, build.date, code);
  app.add_subcommand("version", "Version, commit and the parts built in")
      ->callback([text = build.version, &code] {
        fmt::print("{}\n", text);
        code = 0;
      });
}

}  // namespace howmany::reports
