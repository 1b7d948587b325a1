// What the programs here share as programs: one line on stderr and an exit code for whatever goes
// wrong, and the ranks they run on: threads of this process, or processes that one of them started
// and watches. Call from the main thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "benches/common/workload.h"
#include "parallel/launch.h"

namespace CLI {
class App;
}

namespace howmany::benches {

// Runs body; what it throws becomes one line on stderr and the result: 2 for a mistake in the flags
// or the input, 3 when the world failed. --help is 0.
int run_program(const std::string& name, const std::function<int()>& body);

// Parses the flags of `app` and returns what it does not know of the form --benchmark_..., for
// Google Benchmark. Throws std::invalid_argument for any other leftover (the nearest flag
// suggested).
std::vector<std::string> parse(CLI::App& app, int argc, char** argv);

constexpr int kInterrupted = 130;  // exit code of a program that Ctrl-C ended, as shells have it

// Starts `world` copies of this program as ranks that can use those backends, and returns their
// exit code: 0, 1, 2, 3 or kInterrupted. Says which rank died of what.
int supervise(const std::string& name, int argc, char** argv, int world,
              const std::set<std::string>& backends);

// The ranks a workload runs on, whichever way they come.
class Ranks {
 public:
  // Joins the other processes of this launch over each backend when there are any: collective. Who
  // waits longer than usual for the others in an exchange also waits longer for them to start.
  Ranks(Place place, const std::set<std::string>& backends, double timeout_seconds = 0);

  bool chief() const { return place_.rank == 0; }
  // Whether this process tells what concerns all: what supervise() started has been spoken for.
  bool speaks() const { return chief() && place_.launcher != "howmany"; }
  const Place& place() const { return place_; }
  // Whether this process has a part in the workload.
  bool take_part(const Workload& work) const;
  // Runs body on every rank of the workload, each bound to its device and kernels. Every process of
  // the launch calls with the same workloads in the same order. After a failure between processes
  // every further call that needs them throws.
  using Body = std::function<void(Comm&, Device)>;
  void run(const Workload& work, const Body& body);

 private:
  void run_over_processes(const Workload& work, const Body& body);
  Comm* group_for(const Workload& work);

  Place place_;
  std::map<std::string, std::unique_ptr<Comm>> worlds_;  // by backend
  std::unique_ptr<Comm> group_;                          // the last workload's
  std::string group_of_, failure_;
};

}  // namespace howmany::benches
