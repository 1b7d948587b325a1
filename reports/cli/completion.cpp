// SPDX-License-Identifier: Apache-2.0
#include "reports/cli/completion.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "core/base/schema/flags.h"
#include "reports/cli/command_spec.h"
#include "reports/cli/topics.h"

namespace howmany::reports {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kBash =
    R"bash(# bash completion of howmany, written by `howmany completion bash`.
_howmany() {
  local word
  COMPREPLY=()
  while IFS=$'\t' read -r word _; do
    case $word in
      :files) compopt -o default 2>/dev/null ;;
      :folders) compopt -o dirnames 2>/dev/null ;;
      *) COMPREPLY+=("$word") ;;
    esac
  done < <(command howmany __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _howmany howmany
)bash";

constexpr const char* kZsh = R"zsh(#compdef howmany
# zsh completion of howmany, written by `howmany completion zsh`.
_howmany() {
  local -a found=(${(f)"$(command howmany __complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
  case $found[1] in
    :files) compset -P '--*='; _files ;;
    :folders) compset -P '--*='; _files -/ ;;
    *) found=("${(@)found//:/\\:}"); found=("${(@)found/$'\t'/:}"); _describe howmany found ;;
  esac
}
if [[ $funcstack[1] == _howmany ]]; then _howmany "$@"; else compdef _howmany howmany; fi
)zsh";

constexpr const char* kFish =
    R"fish(# fish completion of howmany, written by `howmany completion fish`.
function __howmany_complete
    set -l token (commandline -ct)
    set -l typed (commandline -opc) "$token"
    set -l found (command howmany __complete $typed[2..-1] 2>/dev/null)
    switch "$found[1]"
        case ''
        case :files
            __fish_complete_path "$token"
        case :folders
            __fish_complete_directories "$token" ''
        case '*'
            printf '%s\n' $found
    end
end
complete -c howmany -f -a '(__howmany_complete)'
)fish";

void print_choices(const std::string& begun, const std::string& current, const Words& choices) {
  for (const std::string& choice : choices)
    if (choice.starts_with(current)) fmt::print("{}{}\n", begun, choice);
}

void print_names(const std::string& current, const CommandSpec& command) {
  for (const OptionSpec& option : command.options)
    for (const std::string& name : option.names)
      if (name.starts_with(current)) fmt::print("{}\t{}\n", name, option.help);
}

// howmany-train knows the models, modes and backends.
Words choices_of(const CLI::App& app, const CommandRow& row, const OptionSpec& option) {
  if (!option.choices.empty()) return option.choices;
  if (option.names.empty()) return row.name == std::string_view("help") ? help_subjects() : Words{};
  const CommandSpec train = describe(app, *find_command("train"));
  const OptionSpec* const same = train.find(option.names.front());
  return same == nullptr ? Words{} : same->choices;
}

void print_values(const CLI::App& app, const CommandRow& row, const OptionSpec& option,
                  std::string begun, std::string current) {
  if (option.kind == ValueKind::kPath) return fmt::print(":files\n");
  if (option.kind == ValueKind::kFolder) return fmt::print(":folders\n");
  if (const size_t comma = current.rfind(','); option.list && comma != current.npos) {
    begun += current.substr(0, comma + 1);
    current.erase(0, comma + 1);
  }
  print_choices(begun, current, choices_of(app, row, option));
}

}  // namespace

void print_completions(const CLI::App& app, Words words) {
  std::string current = words.empty() ? "" : words.back(), begun;
  if (!words.empty()) words.pop_back();
  if (current == "=") {
    current.clear();
  } else if (!words.empty() && words.back() == "=") {
    words.pop_back();
  } else if (const size_t equals = current.find('=');
             current.starts_with("--") && equals != current.npos) {
    begun = current.substr(0, equals + 1);
    words.push_back(current.substr(0, equals));
    current.erase(0, equals + 1);
  }
  if (std::ranges::count(words, "--") > 0) return fmt::print(":files\n");  // the user's own command
  if (words.empty()) {
    for (const CommandRow& row : commands())
      if (std::string_view(row.name).starts_with(current))
        fmt::print("{}\t{}\n", row.name, row.help);
    print_choices("", current, {flag::kVersion.name});
    if (!current.starts_with("-")) return;
  }
  const bool has_command = !words.empty() && !words[0].starts_with("-");
  const CommandRow* const row = find_command(has_command ? words[0] : "run");
  if (row == nullptr) return;
  const CommandSpec command = describe(app, *row);
  const OptionSpec* option = words.empty() ? nullptr : command.find(words.back());
  if (option != nullptr && option->kind != ValueKind::kNone)
    return print_values(app, *row, *option, begun, current);
  option = command.positional();
  if (option != nullptr && !current.starts_with("-"))
    return print_values(app, *row, *option, begun, current);
  print_names(current, command);
}

void add_completion(CLI::App& sub, int& code) {
  const auto shell = std::make_shared<std::string>();
  sub.add_option("shell", *shell, "Shell that runs the script")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  sub.footer(
      "Examples:\n"
      "  source <(howmany completion bash)      # this shell; for every one, add it to "
      "~/.bashrc\n"
      "  source <(howmany completion zsh)       # after compinit, in ~/.zshrc\n"
      "  howmany completion fish > ~/.config/fish/completions/howmany.fish\n"
      "The scripts call the howmany of PATH.");
  sub.callback([shell, &code] {
    fmt::print("{}", *shell == "bash" ? kBash : *shell == "zsh" ? kZsh : kFish);
    code = 0;
  });
}

}  // namespace howmany::reports
