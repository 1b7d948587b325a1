// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reports/cli/completion/scripts.h"

namespace howmany::reports {
namespace {

constexpr const char* kFishHead =
    R"(# fish completion of howmany, written by `howmany completion fish`.
# Succeeds if the words before the cursor belong to command $argv[1]; `none`: there is no word yet.
function __howmany_in
    set -l words (commandline -opc)
    set -l token (commandline -ct)
    set -l command none
    if set -q words[2]
        set command $words[2]
    else if string match -q -- '-*' "$token"
        set command run
    end
    if string match -q -- '-*' "$command"
        set command run
    end
    test "$command" = "$argv[1]"
end
complete -c howmany -f
complete -c howmany -n '__howmany_in run' -l version -d Version
)";

std::string fish_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\\' || c == '\'') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

std::string fish_value(const OptionSpec& option) {
  if (option.kind == ValueKind::kPath) return " -r -F";
  if (option.kind == ValueKind::kFolder) return " -x -a '(__fish_complete_directories)'";
  if (option.kind == ValueKind::kNone) return "";
  if (option.choices.empty()) return " -x";
  const std::string words = fmt::format("{}", fmt::join(option.choices, " "));
  return option.list ? fmt::format(" -x -a '(__fish_append , {})'", words)
                     : fmt::format(" -x -a '{}'", words);
}

std::string fish_names(const OptionSpec& option) {
  std::string text;
  for (const std::string& name : option.names)
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  return text;
}

std::string fish_positional(const OptionSpec& option) {
  if (option.kind == ValueKind::kWord && option.choices.empty()) return "";
  return option.kind == ValueKind::kPath ? " -F" : fish_value(option);
}

std::string fish_command(const CommandSpec& command) {
  const std::string begin = fmt::format("complete -c howmany -n '__howmany_in {}'", command.name);
  std::string text;
  for (const OptionSpec& option : command.options)
    text += fmt::format(
        "{}{}{}\n", begin,
        option.names.empty() ? fish_positional(option) : fish_names(option) + fish_value(option),
        option.help.empty() ? "" : " -d " + fish_quoted(option.help));
  return text;
}

}  // namespace

std::string fish_script(const CommandSpec& root) {
  std::string text = kFishHead;
  for (const CommandSpec& command : root.commands)
    text += fmt::format("complete -c howmany -n '__howmany_in none' -a {} -d {}\n", command.name,
                        fish_quoted(command.help));
  for (const CommandSpec& command : root.commands) text += fish_command(command);
  return text;
}

}  // namespace howmany::reports
