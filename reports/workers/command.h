// `howmany workers`: how many loader workers feed these devices from these files on this machine.
// Limits, short probes, a prediction, then runs of loader_bench only where the answer is decided;
// every file of the folder is whole after each run. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace howmany::reports {

struct WorkersArguments {
  std::string data = "synthetic", workers = "auto", out, as = "threads", emit_check;
  std::optional<std::string> model, from, samples_per_second;
  std::string device = "cpu:0";                  // on which --model trains
  std::string python = "python3", start_method;  // of --as pytorch; "none": Python is left out
  int devices = 1, prefetch = 2;
  int64_t batch = 64, image_size = 224, seed = 1;
  double time_budget = 60, stall_percent = 1;
  bool json = false, quiet = false, no_color = false, verbose = false;
};

// Adds the subcommand; when it is called, `code` becomes its exit code.
void add_workers(CLI::App& app, int& code);
// Returns 0, or 3 when a measurement failed or was interrupted. Throws InputError.
int run_workers(const WorkersArguments& arguments);

// "auto" is empty. Throws InputError for what is no list of numbers from 0 to 1024.
std::vector<int> workers_from(const std::string& text);

}  // namespace howmany::reports
