// SPDX-License-Identifier: Apache-2.0
// A command line as data. Completion scripts and the man page are generated from it. Values only.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace howmany::reports {

enum class ValueKind { kNone, kWord, kPath, kFolder };

struct OptionSpec {
  std::vector<std::string> names;  // "--out", "-h"; empty: a positional argument
  std::string help;                // one line of help
  std::string type;                // "DIR", "{slurm}"; empty: a flag
  ValueKind kind = ValueKind::kNone;
  std::vector<std::string> choices;  // safe to paste into a script, see is_plain_word()
  bool list = false;                 // accepts a comma-separated list of choices
};

struct CommandSpec {
  std::string name, help, footer;
  std::vector<OptionSpec> options;  // including positional arguments, in order
  std::vector<CommandSpec> commands;
};

// True if no character of `text` is special in a shell: letters, digits and _.:+-
bool is_plain_word(const std::string& text);
// Parses the type that CLI11 prints in its help, "TEXT:{slurm}" or "DIR". An empty `type` gives a
// flag. Omits names and choices that are not plain words.
OptionSpec make_option(const std::vector<std::string>& names, const std::string& help,
                       const std::string& type);
// Replaces the options of `command` by the output of its program's --describe-options. Leaves
// `command` unchanged if `text` is not such output.
void use_description(CommandSpec& command, const std::string& text);
// Copies choices to options that have none from a described option of the same name ("--model").
void share_choices(CommandSpec& root);

const CommandSpec* find_command(const CommandSpec& root, const std::string& name);
// Returns all option names of a command: "--out", "--help", "-h".
std::vector<std::string> option_names(const CommandSpec& command);
std::vector<OptionSpec> named_options(const CommandSpec& command);
std::vector<OptionSpec> positional_arguments(const CommandSpec& command);

}  // namespace howmany::reports
