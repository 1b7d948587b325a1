// SPDX-License-Identifier: Apache-2.0
#include "core/base/cli/output_options.h"

#include "core/base/cli/number_check.h"
#include "core/base/cli/option.h"
#include "core/base/schema/flags.h"

namespace howmany {

void add_output_options(CLI::App& app, OutputArguments& output) {
  add_out(app, output.out);
  add_json(app, output.json);
  add_quiet(app, output.quiet);
  add_verbose(app, output.verbose);
}

CLI::Option* add_out(CLI::App& app, std::string& folder) {
  return add_option(app, flag::kOut, folder, "howmany-out/<UTC time>")->check(not_empty());
}

CLI::Option* add_json(CLI::App& app, bool& json) { return add_switch(app, flag::kJson, json); }

CLI::Option* add_quiet(CLI::App& app, bool& quiet) { return add_switch(app, flag::kQuiet, quiet); }

CLI::Option* add_verbose(CLI::App& app, bool& verbose) {
  return add_switch(app, flag::kVerbose, verbose);
}

}  // namespace howmany
