// SPDX-License-Identifier: Apache-2.0
// The table of all commands of `howmany`. To add one, add a row in root_command.cpp. Parsing, help
// and completion read the table.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace howmany::reports {

// Sections of `howmany --help`. The unlisted commands are in `howmany help` only.
namespace group {
inline constexpr std::string_view kAsk = "Ask", kMeasure = "Measure", kCi = "CI", kMore = "More",
                                  kUnlisted = "Unlisted";
}

// Properties of a command.
enum CommandTraits : unsigned {
  kTakesCommand = 1,  // the user's own command after "--"
  kProgram = 2,       // the program howmany-NAME, unless the user's own command follows
};

struct CommandRow {
  const char* name;
  std::string_view group;
  const char* help;
  // Adds options and callback to the subcommand. `command`: the words after "--", read when it
  // runs. `code` receives the exit code. Both must outlive the parse.
  void (*add)(CLI::App& sub, const std::vector<std::string>& command, int& code);
  unsigned traits = 0;

  bool is(CommandTraits trait) const { return (traits & trait) != 0; }
};

std::span<const CommandRow> commands();
// Returns nullptr if there is no such command.
const CommandRow* find_command(std::string_view name);

}  // namespace howmany::reports
