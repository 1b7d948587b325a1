// `howmany backend` and `howmany transfer`: their options, what they run and what they print. Exit
// codes: 0 fine, 1 wrong data, 2 bad usage or input (thrown as InputError), 3 a measurement failed
// or was interrupted; what was measured is kept. One thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/comm/advise.h"
#include "reports/comm/measure.h"

namespace CLI {
class App;
}

namespace howmany {

// Each adds a subcommand that, when chosen, runs and sets `code`.
void add_backend_command(CLI::App& app, int& code);
void add_transfer_command(CLI::App& app, int& code);

struct OutputArguments {
  std::string out;
  bool json = false, quiet = false, no_color = false, verbose = false;
};
void add_output_options(CLI::App& app, OutputArguments& a);

// As tables and sentences.
std::string render_backend(const BackendAdvice& advice,
                           const std::vector<Measurement>& measurements, bool color);

// What `howmany backend` or `howmany transfer` printed, from its summary alone; empty for
// another's.
std::string render_suites(const Summary& summary, bool color);

// Writes the summary and prints it as asked; the exit code.
int finish(const std::string& folder, Summary& summary, const nlohmann::json& request,
           const std::vector<SuiteRun>& runs, const OutputArguments& a, const std::string& text);

}  // namespace howmany
