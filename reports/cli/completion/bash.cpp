// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reports/cli/completion/scripts.h"

namespace howmany::reports {
namespace {

// The script compares words itself because `compgen -W` would expand them. Readline breaks words at
// '=' and completes the text after it.
constexpr const char* kBashHead =
    R"(# bash completion of howmany, written by `howmany completion bash`.
_howmany_offer() {
  local prefix=$1 word
  shift
  for word; do
    if [[ $word == "$prefix"* ]]; then COMPREPLY+=("$word"); fi
  done
}
# A list: completes what follows the last comma.
_howmany_offer_list() {
  local begun=${1%"${1##*,}"}
  local current=$1
  shift
  _howmany_offer "$current" "${@/#/$begun}"
}
_howmany() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}
  COMPREPLY=()
  if [[ $current == '=' ]]; then
    current=
  elif [[ $previous == '=' ]]; then
    previous=${COMP_WORDS[COMP_CWORD - 2]}
  fi
)";
constexpr const char* kBashTail = R"(}
complete -F _howmany howmany
)";

std::string bash_action(const OptionSpec& option) {
  if (option.kind == ValueKind::kPath) return "compopt -o default 2>/dev/null";
  if (option.kind == ValueKind::kFolder) return "compopt -o dirnames 2>/dev/null";
  if (option.choices.empty()) return ":";
  return fmt::format("_howmany_offer{} \"$current\" {}", option.list ? "_list" : "",
                     fmt::join(option.choices, " "));
}

bool bash_has_action(const OptionSpec& option) {
  return option.kind != ValueKind::kWord || !option.choices.empty();
}

// Completes the value of the preceding option, unless it is free text.
std::string bash_values(const CommandSpec& command) {
  std::string text, others;
  for (const OptionSpec& option : named_options(command)) {
    if (option.kind == ValueKind::kNone) continue;
    const std::string names = fmt::format("{}", fmt::join(option.names, " | "));
    if (bash_has_action(option))
      text += fmt::format("        {})\n          {}\n          return ;;\n", names,
                          bash_action(option));
    else
      others += (others.empty() ? "" : " | ") + names;
  }
  if (!others.empty()) text += fmt::format("        {}) return ;;\n", others);
  return text.empty() ? "" : "      case $previous in\n" + text + "      esac\n";
}

std::string bash_positionals(const CommandSpec& command) {
  const auto positionals = positional_arguments(command);
  if (positionals.empty()) return "";
  return fmt::format("      if [[ $current != -* ]]; then {}; return; fi\n",
                     bash_action(positionals.front()));
}

std::string bash_command(const CommandSpec& command) {
  return fmt::format("    {})\n{}{}      _howmany_offer \"$current\" {} ;;\n", command.name,
                     bash_values(command), bash_positionals(command),
                     fmt::join(option_names(command), " "));
}

}  // namespace

std::string bash_script(const CommandSpec& root) {
  std::vector<std::string> names;
  for (const CommandSpec& command : root.commands) names.push_back(command.name);
  std::string text = kBashHead;
  text += "  if ((COMP_CWORD == 1)); then\n";
  text += fmt::format(
      "    _howmany_offer \"$current\" {} {}\n    if [[ $current != -* ]]; then return; fi\n",
      fmt::join(names, " "), "--version");
  text += "  fi\n  if [[ $command == -* ]]; then command=run; fi\n  case $command in\n";
  for (const CommandSpec& command : root.commands) text += bash_command(command);
  return text + "  esac\n" + kBashTail;
}

}  // namespace howmany::reports
