// SPDX-License-Identifier: Apache-2.0
#include "reports/cli/completion/command_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <nlohmann/json.hpp>

namespace howmany::reports {
namespace {

using CliWords = std::vector<std::string>;

CliWords plain_words_of(const CliWords& words) {
  CliWords plain;
  std::ranges::copy_if(words, std::back_inserter(plain), is_plain_word);
  return plain;
}

// Parses "{a,b}", or "{a->0,b->1} OR {0,1}" for a CheckedTransformer.
CliWords choices_in(const std::string& type) {
  const size_t begin = type.find('{'), end = type.find('}');
  CliWords words;
  for (size_t at = begin; at < end && end != std::string::npos;) {
    const size_t next = std::min(type.find(',', at + 1), end);
    const std::string word = type.substr(at + 1, next - at - 1);
    words.push_back(word.substr(0, word.find("->")));
    at = next;
  }
  return plain_words_of(words);
}

ValueKind kind_of(const std::string& type) {
  if (type.empty()) return ValueKind::kNone;
  if (type.starts_with("DIR")) return ValueKind::kFolder;
  return type.starts_with("PATH") || type.starts_with("FILE") ? ValueKind::kPath : ValueKind::kWord;
}

std::string on_one_line(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return std::iscntrl(c) != 0; }, ' ');
  return text;
}

template <typename Keep>
std::vector<OptionSpec> options_that(const CommandSpec& command, Keep keep) {
  std::vector<OptionSpec> kept;
  std::ranges::copy_if(command.options, std::back_inserter(kept), keep);
  return kept;
}

void offer_choices(CommandSpec& command, const std::string& name, const CliWords& choices) {
  for (OptionSpec& option : command.options)
    if (option.kind == ValueKind::kWord && option.choices.empty() &&
        std::ranges::count(option.names, name) > 0)
      option.choices = choices;
}

}  // namespace

bool is_plain_word(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_.:+-").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

OptionSpec make_option(const CliWords& names, const std::string& help, const std::string& type) {
  OptionSpec option{plain_words_of(names), on_one_line(help), "", kind_of(type), choices_in(type)};
  option.list = type.starts_with("A,B,...");
  option.type = option.choices.empty() || option.list
                    ? type.substr(0, type.find(':'))
                    : fmt::format("{{{}}}", fmt::join(option.choices, ","));
  return option;
}

void use_description(CommandSpec& command, const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    CommandSpec described{command.name, json.at("description"), json.at("footer"), {}, {}};
    for (const auto& option : json.at("options"))
      described.options.push_back(
          make_option(option.at("names"), option.at("help"), option.at("type")));
    for (const auto& [name, choices] : json.at("choices").items())
      offer_choices(described, "--" + name, plain_words_of(choices));
    command = std::move(described);
  } catch (const nlohmann::json::exception&) {
    return;  // not the expected program, or another version
  }
}

void share_choices(CommandSpec& root) {
  const CommandSpec* train = find_command(root, "train");
  if (train == nullptr) return;
  for (const OptionSpec& option : std::vector(train->options))
    for (const std::string& name : option.names)
      for (CommandSpec& command : root.commands)
        if (!option.choices.empty()) offer_choices(command, name, option.choices);
}

const CommandSpec* find_command(const CommandSpec& root, const std::string& name) {
  const auto found = std::ranges::find(root.commands, name, &CommandSpec::name);
  return found == root.commands.end() ? nullptr : &*found;
}

CliWords option_names(const CommandSpec& command) {
  CliWords names;
  for (const OptionSpec& option : command.options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

std::vector<OptionSpec> named_options(const CommandSpec& command) {
  return options_that(command, [](const OptionSpec& option) { return !option.names.empty(); });
}

std::vector<OptionSpec> positional_arguments(const CommandSpec& command) {
  return options_that(command, [](const OptionSpec& option) { return option.names.empty(); });
}

}  // namespace howmany::reports
