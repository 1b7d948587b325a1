// SPDX-License-Identifier: Apache-2.0
// The options of a command as data, for completion and `howmany help`. Values only.
#pragma once

#include <string>
#include <vector>

#include "reports/cli/commands.h"

namespace howmany::reports {

enum class ValueKind { kNone, kWord, kPath, kFolder };

struct OptionSpec {
  std::vector<std::string> names;  // "--out", "-h"; empty: a positional argument
  std::string help;                // one line of help
  ValueKind kind = ValueKind::kNone;
  std::vector<std::string> choices;  // empty: any value
  bool list = false;                 // accepts a comma-separated list of choices
};

struct CommandSpec {
  std::vector<OptionSpec> options;  // including positional arguments, in order

  // Returns nullptr if there is no such option.
  const OptionSpec* find(const std::string& name) const;
  // Returns the first positional argument, or nullptr.
  const OptionSpec* positional() const;
};

// Describes the subcommand of `app`. Asks the program of the command for its options, if it has
// one; there are none if the program is missing.
CommandSpec describe(const CLI::App& app, const CommandRow& row);

}  // namespace howmany::reports
