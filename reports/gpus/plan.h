// SPDX-License-Identifier: Apache-2.0
// A Request holds the arguments of `howmany gpus` or `run`, with every default resolved. It
// determines the configurations and their order. plan.json stores the request and the machine, so
// that --resume continues the same plan and refuses another. Values only; not tied to any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/cluster/cluster.h"
#include "reports/gpus/forwarded.h"
#include "reports/nodes/nodes.h"
#include "reports/predict/rehearsed.h"
#include "reports/results/efficiency.h"
#include "reports/script/script.h"

namespace howmany::reports {

struct Workload {
  std::string model;
  int64_t batch = 0;  // per device (weak scaling) or global (strong)
};

// Numbers of devices beyond those that are here (--up-to).
struct BeyondPlan {
  int up_to = 0;        // 0: none
  std::string cluster;  // of which steps are rehearsed or computed; empty: none
  std::string text;     // of its file; empty if it is built in. Only plan.json has it.
};
// Whole nodes, each with as many devices as are measured on the first one.
struct NodesPlan {
  Nodes nodes;
  std::vector<std::string> environment;  // that ranks there need, see check_nodes()
};
// Returns the devices that hold a model together by the options ways=n and stages=n of the mode; 1
// without them. Numbers of devices are multiples of it.
int devices_of_a_model(const std::string& mode);

// Throws InputError if there is no such cluster.
Cluster cluster_of(const BeyondPlan& beyond);

struct Request {
  std::vector<Workload> workloads;
  std::vector<std::string> modes;        // "single" is always measured, as the baseline
  std::vector<std::string> one_process;  // modes that run in one process, without a backend
  std::vector<std::string> backends;     // for the modes that communicate between ranks
  std::vector<std::string> devices;      // in order: n devices are the first n
  std::vector<int> counts;               // of devices; more than `devices` are whole nodes
  NodesPlan across;
  Scaling scaling = Scaling::kWeak;
  int cores_per_device = 1;
  ForwardedOptions forwarded;
  int workers = -1;  // -1: the bench's own default
  int rounds = 3;
  double run_seconds = 3;  // timed iterations of one run
  double time_budget = 0;  // of the whole measurement; 0: none
  int64_t seed = 1;
  bool oversubscribe = false, sync_batchnorm = false;
  bool profile = false;  // also profile steps in the first round
  bool tour = false;     // of `howmany run`
  Script script;         // instead of workloads of howmany, if given()
  BeyondPlan beyond;
};

constexpr const char* kTour = "tour";  // of the JSON of a request

// The mode of a configuration that runs one rank of `devices` of a script (--rehearse).
constexpr const char* kRehearsalMode = kRehearsalSuite;

struct Configuration {
  std::string model, mode, backend;
  int devices = 1;
  int64_t batch = 0;
  bool over_ranks = true;  // false: one process drives all devices
  bool is_rehearsal() const { return mode == kRehearsalMode; }
  bool operator==(const Configuration&) const = default;
};

// Returns the configurations of one round. The first one of a model is its baseline, `single` on
// one device.
std::vector<Configuration> configurations(const Request& request);
// Returns the order within a round. It alternates between forward and backward, so that linear
// drift cancels.
std::vector<size_t> order_of_round(size_t count, int round);

// Returns the number of whole nodes with together `devices` devices; 0 if there is none.
int nodes_of(const Request& request, int devices);
int64_t global_batch(const Request& request, const Configuration& configuration);
std::string describe(const Configuration& configuration);  // "ddp over gloo, mlp, 2 devices"

// Throws InputError if the request cannot be measured: no device, a batch smaller than the number
// of devices, ...
void check(const Request& request);

// Leaves out the words of the script and the pattern of its rate, which may hold secrets. Only
// plan.json has them.
nlohmann::ordered_json to_json(const Request& request);
Request request_from_json(const nlohmann::json& json, const std::string& source);

// Returns 1, 2, 3, 4, then powers of two, and `most` itself.
std::vector<int> default_counts(int most);

struct Plan {
  Request request;
  nlohmann::json machine;  // see machine_fingerprint()
};
void write_plan(const std::string& path, const Plan& plan);
Plan read_plan(const std::string& path);

}  // namespace howmany::reports
