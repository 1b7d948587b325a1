// A command line as data: the source of the completion scripts and of the man page. Values only.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace howmany::reports {

enum class ValueKind { kNone, kWord, kPath, kFolder };

struct OptionSpec {
  std::vector<std::string> names;  // "--out", "-h"; empty: a positional argument
  std::string help;                // one line
  std::string type;                // "DIR", "{slurm}"; empty: a flag
  ValueKind kind = ValueKind::kNone;
  std::vector<std::string> choices;  // safe to paste into a script, see is_plain_word()
  bool list = false;                 // choices may be joined by commas
};

struct CommandSpec {
  std::string name, help, footer;
  std::vector<OptionSpec> options;  // positional arguments included, in their order
  std::vector<CommandSpec> commands;
};

// True if no shell gives any character of `text` a meaning: letters, digits and _.:+-
bool is_plain_word(const std::string& text);
// Returns the option that CLI11 describes as `type` in its help, "TEXT:{slurm}" or "DIR"; a flag if
// `type` is empty. Names and choices that are not plain words are left out.
OptionSpec make_option(const std::vector<std::string>& names, const std::string& help,
                       const std::string& type);
// Replaces the options of `command` by what its program printed under --describe-options. Leaves
// `command` as it is if `text` is not that.
void use_description(CommandSpec& command, const std::string& text);
// Gives every option without choices those that a program described for its name ("--model").
void share_choices(CommandSpec& root);

const CommandSpec* find_command(const CommandSpec& root, const std::string& name);
// All option names of a command: "--out", "--help", "-h".
std::vector<std::string> option_names(const CommandSpec& command);
std::vector<OptionSpec> named_options(const CommandSpec& command);
std::vector<OptionSpec> positional_arguments(const CommandSpec& command);

}  // namespace howmany::reports
