// SPDX-License-Identifier: Apache-2.0
// The output options of the commands. Names, help and checks are the same in every command.
//
//   OutputArguments output;
//   add_output_options(app, output);
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace howmany {

struct OutputArguments {
  std::string out;
  bool json = false, quiet = false, verbose = false;
};

void add_output_options(CLI::App& app, OutputArguments& output);

// One option each, for commands that do not have all of them.
CLI::Option* add_out(CLI::App& app, std::string& folder);
CLI::Option* add_json(CLI::App& app, bool& json);
CLI::Option* add_quiet(CLI::App& app, bool& quiet);
CLI::Option* add_verbose(CLI::App& app, bool& verbose);

}  // namespace howmany
