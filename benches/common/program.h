// SPDX-License-Identifier: Apache-2.0
// Common parts of the bench programs: error lines and exit codes, and the ranks they run on. Ranks
// are threads of this process, or processes that one of them starts and supervises. Call from the
// main thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "benches/common/workload.h"
#include "parallel/launch/launch.h"

namespace CLI {
class App;
}

namespace howmany::benches {

// Prepares the process (core/base/startup.h) and runs body. An exception becomes one line on stderr
// and an exit code: 2 if the flags or the input are wrong, 3 for every other failure. --help
// returns 0.
int run_program(const std::string& name, const std::function<int()>& body);

// Parses the flags of `app`. Returns the unknown flags of the form --benchmark_..., for Google
// Benchmark. Throws std::invalid_argument for any other unknown flag, with the nearest known
// one, and CLI::Success after --help. Call it within run_program().
std::vector<std::string> parse(CLI::App& app, int argc, char** argv);

constexpr int kInterrupted = 130;  // the shells' exit code after Ctrl-C

// Starts `world` copies of this program as ranks that can use those backends. Returns their exit
// code: 0, 1, 2, 3, or kInterrupted if this process got SIGINT, SIGTERM or SIGHUP. Reports the
// failed rank and the reason on stderr, also if the ranks have not connected 3.5 s after the
// timeout.
int supervise(const std::string& name, int argc, char** argv, int world,
              const std::set<std::string>& backends, double timeout_seconds);

// Returns for instance "rank 1 of 2 ended with exit code 3". `end` is of a launch of `world` ranks.
std::string describe_end(const RankExit& end, int world);

// The ranks of a workload, threads or processes.
class Ranks {
 public:
  // Connects to the other processes of this launch over each backend, if there are any. Collective.
  // If `timeout_seconds` is longer than the usual start timeout, it also bounds the wait for the
  // other processes to start.
  Ranks(Place place, const std::set<std::string>& backends, double timeout_seconds = 0);

  bool chief() const { return place_.rank == 0; }
  // True if this process prints the output that concerns all ranks. Processes started by
  // supervise() leave that to it.
  bool speaks() const { return chief() && place_.launcher != "howmany"; }
  const Place& place() const { return place_; }
  // Returns true if this process has a rank of the workload.
  bool take_part(const Workload& work) const;
  // Runs body on every rank of the workload, each bound to its device and kernels. Every process of
  // the launch must call with the same workloads in the same order. After a failure between
  // processes, every later call that needs processes throws.
  using Body = std::function<void(Comm&, Device)>;
  void run(const Workload& work, const Body& body);

 private:
  void run_over_processes(const Workload& work, const Body& body);
  Comm* group_for(const Workload& work);

  Place place_;
  std::map<std::string, std::unique_ptr<Comm>> worlds_;  // by backend name
  std::unique_ptr<Comm> group_;                          // group of the last workload
  std::string group_of_, failure_;
};

}  // namespace howmany::benches
