// SPDX-License-Identifier: Apache-2.0
// `howmany workers` finds how many loader workers feed the devices: for given files, or in the
// user's own script. Numbers of workers take turns. Every file of the folder is complete after each
// run. One thread.
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
  std::string data = "synthetic", workers = "auto", out, as = "threads";
  std::optional<std::string> model, from;
  std::optional<double> samples_per_second;
  std::string device = "cpu:0";                  // device of --model
  std::string python = "python3", start_method;  // for --worker-type pytorch
  int devices = 1, prefetch = 2;
  int64_t batch = 64, image_size = 224, seed = 1;
  double time_budget = 60, stall_percent = 1;
  std::vector<std::string> command;  // after "--": the user's own
  int loader = 0;                    // the n-th DataLoader of that script; 0: the one that trains
  bool keep_private = false;         // --private
  bool in_copy = false;              // --in-copy
  bool own_prefetch = true;          // no --prefetch was given
  bool json = false, quiet = false, verbose = false;
};

// Adds the subcommand. If it runs, `code` receives its exit code. `command`: the words after "--",
// read when it runs.
void add_workers(CLI::App& app, const std::vector<std::string>& command, int& code);
// Returns an exit code: kFine, kMeasurementFailed or kInterrupted. Throws InputError.
int run_workers(const WorkersArguments& arguments);

// Returns an empty list for "auto". Throws InputError if `text` is not a list of numbers from 0 to
// 1024.
std::vector<int> workers_from(const std::string& text);

}  // namespace howmany::reports
