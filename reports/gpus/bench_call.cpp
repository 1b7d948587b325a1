// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/bench_call.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/base/process.h"
#include "core/base/schema/flags.h"
#include "core/base/schema/parameters.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"
#include "reports/predict/computed.h"
#include "reports/results/bench_file.h"
#include "reports/results/machine.h"

namespace howmany::reports {
namespace {

void refuse_if_refused(const Command& command, const char* program) {
  const ProcessResult ended = run_command(command);
  if (ended.how == ProcessResult::How::kExited && ended.code == 2)
    throw InputError(ended.last_line());
  if (!ended.ok()) throw InputError(fmt::format("{} {}", program, ended.describe()));
}

void check_script(const Request& request) {
  if (request.script.rate.empty()) return;
  std::vector<std::string> argv = {find_program("script_bench"), "--benchmark_list_tests"};
  for (const std::string& word : flags_of(request.script)) argv.push_back(word);
  argv.insert(argv.end(), {"--", request.script.words[0]});
  refuse_if_refused({.argv = argv, .timeout_seconds = 60}, "script_bench");
}

// The first `devices`, or all if those are of several nodes.
std::string devices_on_a_node(const Request& request, int devices) {
  const auto here = static_cast<int>(request.devices.size());
  return fmt::format("{}", fmt::join(request.devices.begin(),
                                     request.devices.begin() + std::min(devices, here), ","));
}

// The words and devices of one run of a script.
std::vector<std::string> script_words_of(const Request& request, const Words& words, int devices,
                                         double seconds, double timeout,
                                         const BenchScratch& scratch) {
  std::vector<std::string> argv = bench_words(request.script, seconds, timeout, scratch);
  argv.insert(argv.end(), {flag::kDevices, devices_on_a_node(request, devices),
                           flag::kCoresPerDevice, std::to_string(request.cores_per_device),
                           flag::kNodes, std::to_string(nodes_of(request, devices)), "--"});
  argv.insert(argv.end(), words.begin(), words.end());
  return argv;
}

}  // namespace

std::vector<std::string> bench_arguments(const Request& request, const Configuration& c) {
  const bool weak = request.scaling == Scaling::kWeak;
  const int nodes = nodes_of(request, c.devices);
  std::vector<std::string> argv;
  if (nodes > 1)
    argv = start_on(request.across.nodes, nodes, static_cast<int>(request.devices.size()));
  argv.push_back(find_program("speedup_bench"));
  auto add = [&](const Flag& flag, const std::string& value) {
    if (!value.empty()) argv.insert(argv.end(), {flag, value});
  };
  add(flag::kModel, c.model);
  add(flag::kMode, c.mode);
  add(flag::kBackend, c.backend);
  add(flag::kDevices, devices_on_a_node(request, c.devices));
  add(flag::kCoresPerDevice, std::to_string(request.cores_per_device));
  add(weak ? flag::kBatchPerDevice : flag::kGlobalBatch, std::to_string(c.batch));
  add(flag::kSeed, std::to_string(request.seed));
  for (const auto& [name, word] : request.forwarded.given())
    argv.insert(argv.end(), {"--" + name, word});
  add(flag::kWorkers, request.workers < 0 ? "" : std::to_string(request.workers));
  if (request.sync_batchnorm) argv.emplace_back(flag::kSyncBatchnorm);
  if (request.oversubscribe) argv.emplace_back(flag::kOversubscribe);
  return argv;
}

int rehearsing_ranks(const Request& request, int world) {
  return std::min({request.counts.back(), static_cast<int>(request.devices.size()), world - 1});
}

std::vector<std::string> rehearse_flag(const Request& request, int world,
                                       const BenchScratch& scratch) {
  write_text(scratch.costs, dump_json(cost_table_with_groups(cluster_of(request.beyond), world)));
  return {flag::kRehearse.name, scratch.costs};
}

std::vector<std::string> script_arguments(const Request& request, const Configuration& c,
                                          double seconds, double timeout,
                                          const BenchScratch& scratch) {
  const Script& script = request.script;
  const bool one = c.mode == "single" && !script.one.empty();
  const Nodes& nodes = request.across.nodes;
  const int count = nodes_of(request, c.devices);
  const Words words = count > 1 ? on_nodes(script, nodes, count, c.devices)
                                : filled(one ? script.one : script.words, nodes, 1, c.devices);
  return script_words_of(request, words, c.devices, seconds, timeout, scratch);
}

std::vector<std::string> rehearsal_arguments(const Request& request, int world, double seconds,
                                             double timeout, const BenchScratch& scratch) {
  const int ranks = rehearsing_ranks(request, world);
  const Words words = filled(request.script.words, request.across.nodes, 1, ranks);
  std::vector<std::string> argv = script_words_of(request, words, ranks, seconds, timeout, scratch);
  const std::vector<std::string> rehearse = rehearse_flag(request, world, scratch);
  argv.insert(std::ranges::find(argv, "--"), rehearse.begin(), rehearse.end());
  return argv;
}

void check_with_bench(const Request& request) {
  if (request.script.given()) return check_script(request);
  std::map<std::tuple<std::string, std::string, std::string>, Configuration> largest;
  for (const Configuration& c : configurations(request)) {
    Configuration& most = largest[{c.model, c.mode, c.backend}];
    if (c.devices >= most.devices) most = c;
  }
  for (const auto& [key, configuration] : largest) {
    Command command{.argv = bench_arguments(request, configuration), .timeout_seconds = 60};
    command.argv.emplace_back(flag::kList);
    refuse_if_refused(command, "speedup_bench");
  }
  if (const BeyondPlan& beyond = request.beyond; !beyond.cluster.empty())
    check_computable(request.workloads[0].model, request.forwarded["precision"], request.modes[0],
                     request.workloads[0].batch, request.scaling == Scaling::kStrong,
                     cluster_of(beyond), beyond.up_to);
}

std::vector<std::string> leave_out_refused(Request& request) {
  std::vector<std::string> reasons;
  for (const std::string& mode : std::vector(request.modes)) {
    Request one = request;
    one.modes = {mode};
    try {
      check_with_bench(one);
    } catch (const InputError& error) {
      if (request.modes.size() == 1) throw;
      std::erase(request.modes, mode);
      std::erase(request.one_process, mode);
      reasons.push_back(fmt::format("{}: {}", mode, error.what()));
    }
  }
  return reasons;
}

}  // namespace howmany::reports
