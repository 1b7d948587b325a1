// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/text/shell.h"
#include "reports/cli/completion/scripts.h"

namespace howmany::reports {
namespace {

constexpr const char* kZshHead = R"(#compdef howmany
# zsh completion of howmany, written by `howmany completion zsh`.
_howmany() {
  local curcontext=$curcontext command=run
  local -a commands=(
)";
constexpr const char* kZshDispatch = R"(  )
  if ((CURRENT == 2)) && [[ $words[2] != -* ]]; then
    _describe -t commands command commands
    return
  fi
  if [[ $words[2] != -* ]]; then
    command=$words[2]
    shift words
    ((CURRENT--))
  fi
  case $command in
)";
// If autoloaded from $fpath, the file is the first call of the function. If sourced, it only
// registers the function.
constexpr const char* kZshTail = R"(  esac
}
if [[ $funcstack[1] == _howmany ]]; then
  _howmany "$@"
else
  compdef _howmany howmany
fi
)";

std::string zsh_escaped(const std::string& text, std::string_view special) {
  std::string escaped;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string zsh_action(const OptionSpec& option) {
  if (option.kind == ValueKind::kPath) return "_files";
  if (option.kind == ValueKind::kFolder) return "_files -/";
  if (option.choices.empty()) return " ";
  const std::string words = fmt::format("{}", fmt::join(option.choices, " "));
  // zsh splits the action at ':' first.
  return option.list ? "_sequence compadd - " + zsh_escaped(words, ":")
                     : "(" + zsh_escaped(words, ":") + ")";
}

// Returns "--out=[Folder for the results]:DIR:_files -/".
std::string zsh_spec(const OptionSpec& option, const std::string& name) {
  const std::string help = zsh_escaped(option.help, "\\[]:");
  if (option.kind == ValueKind::kNone) return shell_quoted(fmt::format("{}[{}]", name, help));
  return shell_quoted(fmt::format("*{}{}[{}]:{}:{}", name, name.starts_with("--") ? "=" : "", help,
                                  zsh_escaped(option.type, "\\:"), zsh_action(option)));
}

std::string zsh_command(const CommandSpec& command) {
  std::string text = fmt::format("    {})\n      _arguments", command.name);
  for (const OptionSpec& option : named_options(command))
    for (const std::string& name : option.names) text += " \\\n        " + zsh_spec(option, name);
  for (const OptionSpec& option : positional_arguments(command))
    text += " \\\n        " + shell_quoted(fmt::format(":{}:{}", zsh_escaped(option.type, "\\:"),
                                                       zsh_action(option)));
  return text + " ;;\n";
}

}  // namespace

std::string zsh_script(const CommandSpec& root) {
  std::string text = kZshHead;
  for (const CommandSpec& command : root.commands)
    text += "    " +
            shell_quoted(fmt::format("{}:{}", command.name, zsh_escaped(command.help, "\\:"))) +
            "\n";
  text += kZshDispatch;
  for (CommandSpec command : root.commands) {
    if (command.name == "run") command.options.push_back(make_option({"--version"}, "Version", ""));
    text += zsh_command(command);
  }
  return text + kZshTail;
}

}  // namespace howmany::reports
