// SPDX-License-Identifier: Apache-2.0
#include "reports/cli/help.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/cli/option.h"
#include "core/base/error.h"
#include "core/base/process.h"
#include "core/base/schema/flags.h"
#include "core/base/text/names.h"
#include "reports/cli/command_spec.h"
#include "reports/cli/topics.h"
#include "reports/results/machine.h"

namespace howmany::reports {
namespace {

std::string list_of_help() {
  std::string text = "howmany help TOPIC\n\nTopics:\n";
  for (const HelpTopic& topic : help_topics())
    text += fmt::format("  {:<14} {}\n", topic.name, topic.summary);
  text += "\nCommands:\n";
  for (const CommandRow& row : commands()) text += fmt::format("  {:<14} {}\n", row.name, row.help);
  return text;
}

void print_help(const CLI::App& app, const std::string& subject) {
  if (subject.empty()) return fmt::print("{}", list_of_help());
  if (const HelpTopic* topic = find_help_topic(subject)) return fmt::print("{}", topic->text);
  const CommandRow* const row = find_command(subject);
  if (row == nullptr)
    throw InputError(fmt::format("no help about \"{}\"{} (howmany help lists the topics)", subject,
                                 did_you_mean(subject, help_subjects())));
  if (row->is(kProgram)) exec_program({find_program("howmany-" + subject), "--help"});
  fmt::print("{}", app.get_subcommand(subject)->help("howmany"));
}

// The names and helps of all options, by command.
nlohmann::ordered_json options_json(const CLI::App& app) {
  nlohmann::ordered_json json;
  for (const CommandRow& row : commands()) {
    json[row.name] = nlohmann::json::array();
    for (const OptionSpec& option : describe(app, row).options)
      json[row.name].push_back({{"names", option.names}, {"help", option.help}});
  }
  return json;
}

}  // namespace

void add_help(CLI::App& sub, int& code) {
  const auto subject = std::make_shared<std::string>();
  const auto options = std::make_shared<bool>(false);
  sub.add_option("topic", *subject, "Topic or command (default: list of topics)");
  add_switch(sub, flag::kDescribeOptions, *options)->group("");  // for tests
  sub.footer(
      "Examples:\n"
      "  howmany help method\n"
      "  howmany help gpus                  # as howmany gpus --help");
  sub.callback([subject, options, &sub, &code] {
    const CLI::App& app = *sub.get_parent();
    if (*options)
      fmt::print("{}\n", options_json(app).dump(2));
    else
      print_help(app, *subject);
    code = 0;
  });
}

}  // namespace howmany::reports
