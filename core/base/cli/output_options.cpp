#include "core/base/cli/output_options.h"

#include "core/base/cli/number_check.h"
#include "core/base/schema/flags.h"

namespace howmany {

void add_output_options(CLI::App& app, OutputArguments& output) {
  add_out(app, output.out);
  add_json(app, output.json);
  add_quiet(app, output.quiet);
  add_no_color(app, output.no_color);
  add_verbose(app, output.verbose);
}

CLI::Option* add_out(CLI::App& app, std::string& folder) {
  return app.add_option("--out", folder, "Folder for the results [howmany-out/<UTC time>]")
      ->type_name("DIR")
      ->check(not_empty());
}

CLI::Option* add_json(CLI::App& app, bool& json) {
  return app.add_flag(flag::kJson, json, "The summary on stdout as JSON, nothing else there");
}

CLI::Option* add_quiet(CLI::App& app, bool& quiet) {
  return app.add_flag("--quiet", quiet, "No progress on stderr");
}

CLI::Option* add_no_color(CLI::App& app, bool& no_color) {
  return app.add_flag("--no-color", no_color, "No colour, as NO_COLOR in the environment");
}

CLI::Option* add_verbose(CLI::App& app, bool& verbose) {
  return app.add_flag("--verbose", verbose, "What the bench programs say, on stderr");
}

}  // namespace howmany
