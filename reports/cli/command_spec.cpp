// SPDX-License-Identifier: Apache-2.0
#include "reports/cli/command_spec.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/process.h"
#include "core/base/schema/flags.h"
#include "reports/results/machine.h"

namespace howmany::reports {
namespace {

using Words = std::vector<std::string>;
constexpr double kDescribeTimeout = 20;  // seconds

// Parses "{a,b}", or "{a->0,b->1} OR {0,1}" for a CheckedTransformer.
Words choices_in(const std::string& type) {
  const size_t begin = type.find('{'), end = type.find('}');
  Words words;
  for (size_t at = begin; at < end && end != std::string::npos;) {
    const size_t next = std::min(type.find(',', at + 1), end);
    const std::string word = type.substr(at + 1, next - at - 1);
    words.push_back(word.substr(0, word.find("->")));
    at = next;
  }
  return words;
}

// `type` is the one that CLI11 prints in its help, "TEXT:{slurm}" or "DIR". Empty for a flag.
OptionSpec make_option(const Words& names, std::string help, const std::string& type) {
  std::ranges::replace_if(
      help, [](unsigned char c) { return std::iscntrl(c) != 0; }, ' ');
  const bool path = type.starts_with("PATH") || type.starts_with("FILE");
  const ValueKind kind = type.empty()              ? ValueKind::kNone
                         : type.starts_with("DIR") ? ValueKind::kFolder
                         : path                    ? ValueKind::kPath
                                                   : ValueKind::kWord;
  return {names, help, kind, choices_in(type), type.starts_with("A,B,...")};
}

CommandSpec describe_app(const CLI::App& app) {
  CommandSpec command;
  const auto shown = [](const CLI::Option* option) { return !option->get_group().empty(); };
  for (const CLI::Option* option : app.get_options(shown)) {
    Words names;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    const bool flag = option->get_items_expected_max() == 0;
    command.options.push_back(
        make_option(names, option->get_description(), flag ? "" : option->get_type_name()));
  }
  return command;
}

CommandSpec describe_program(const std::string& name) {
  CommandSpec command;
  try {
    const ProcessResult ended =
        run_command({.argv = {find_program("howmany-" + name), flag::kDescribeOptions},
                     .timeout_seconds = kDescribeTimeout});
    const auto json = nlohmann::json::parse(ended.out);
    for (const auto& option : json.at("options"))
      command.options.push_back(
          make_option(option.at("names"), option.at("help"), option.at("type")));
    for (const auto& [option_name, choices] : json.at("choices").items())
      for (OptionSpec& option : command.options)
        if (std::ranges::count(option.names, "--" + option_name) > 0) option.choices = choices;
  } catch (const InputError&) {
    return {};  // missing
  } catch (const nlohmann::json::exception&) {
    return {};  // not the expected program, or another version
  }
  return command;
}

}  // namespace

const OptionSpec* CommandSpec::find(const std::string& name) const {
  const auto found = std::ranges::find_if(options, [&](const OptionSpec& option) {
    return std::ranges::count(option.names, name) > 0;
  });
  return found == options.end() ? nullptr : &*found;
}

const OptionSpec* CommandSpec::positional() const {
  const auto found =
      std::ranges::find_if(options, [](const OptionSpec& option) { return option.names.empty(); });
  return found == options.end() ? nullptr : &*found;
}

CommandSpec describe(const CLI::App& app, const CommandRow& row) {
  return row.is(kProgram) ? describe_program(row.name)
                          : describe_app(*app.get_subcommand(row.name));
}

}  // namespace howmany::reports
