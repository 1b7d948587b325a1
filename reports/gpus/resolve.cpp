// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/resolve.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "core/base/process.h"
#include "core/base/schema/defaults.h"
#include "core/base/schema/flags.h"
#include "core/base/text/files.h"
#include "core/base/text/format.h"
#include "core/base/text/names.h"
#include "core/base/text/options.h"
#include "reports/gpus/command.h"
#include "reports/gpus/resolve_devices.h"
#include "reports/predict/model_runs.h"
#include "reports/results/device_kind.h"
#include "reports/results/machine.h"

namespace howmany::reports {
namespace {

constexpr double kScriptBudget = 600, kRehearsalBudget = 30;

Request quick() {
  Request request;
  request.workloads = {{"mlp", default_batch("mlp")},
                       {"resnet18:image=64", default_batch("resnet18")}};
  request.run_seconds = 1.5;
  request.time_budget = 100;
  return request;
}

Request full() {
  Request request;
  request.workloads = {{"mlp", 512}, {"resnet18", 16}};
  request.rounds = 5;
  request.run_seconds = 10;
  return request;
}

Request defaults(const std::optional<std::string>& preset) {
  if (!preset) return {};
  if (*preset == "quick") return quick();
  if (*preset == "full") return full();
  throw InputError(fmt::format("unknown preset \"{}\"{}; there are quick and full", *preset,
                               did_you_mean(*preset, {"quick", "full"})));
}

std::string name_of(const std::string& mode) { return mode.substr(0, mode.find(':')); }

void resolve_modes(const Machine& machine, Request& request) {
  if (request.modes.empty()) request.modes = {"data_parallel", "ddp"};
  if (const auto all = std::find(request.modes.begin(), request.modes.end(), "all");
      all != request.modes.end()) {
    request.modes.erase(all);
    for (const Part& mode : machine.modes) request.modes.push_back(mode.name);
  }
  for (const std::string& mode : request.modes) {
    const bool over_ranks = std::any_of(
        machine.modes.begin(), machine.modes.end(),
        [&](const Part& part) { return part.name == name_of(mode) && part.over_ranks; });
    if (!over_ranks) request.one_process.push_back(mode);
  }
}

std::vector<int> powers_of_two(int most) {
  std::vector<int> all;
  for (int n = 1; n < most; n *= 2) all.push_back(n);
  all.push_back(most);
  return all;
}

// The devices of one node, and then those of whole nodes.
void resolve_counts(const Arguments& a, Request& request) {
  NodesPlan& across = request.across;
  across.nodes = find_nodes(a.hosts);
  const auto here = static_cast<int>(request.devices.size());
  const int most = std::max(1, across.nodes.count());
  std::set<int> counts(a.counts.begin(), a.counts.end());
  for (const int nodes : a.nodes.empty() ? powers_of_two(most) : a.nodes) {
    if (nodes > most)
      throw InputError(fmt::format("{} {}: there {} {}", flag::kNodes.name, nodes,
                                   most == 1 ? "is" : "are", number(most, "node")));
    if (a.counts.empty()) counts.insert(nodes * here);
  }
  if (a.nodes.empty() && a.counts.empty())
    for (const int count : default_counts(here)) counts.insert(count);
  request.counts.assign(counts.begin(), counts.end());
  if (request.counts.back() <= here) across = {};
  if (across.nodes.many() && a.in_copy)
    throw InputError(fmt::format("{} makes a copy on this host only: leave it out, or give {} 1",
                                 flag::kInCopy.name, flag::kNodes.name));
}

struct Choice {
  std::string name, because;
};

// The reason lists the backends that were passed over.
Choice default_comm_backend(const Machine& machine, const Request& request) {
  const auto kind = device_kind(fmt::format("{}", fmt::join(request.devices, ",")));
  const std::set<std::string> different(request.devices.begin(), request.devices.end());
  const bool own_gpus = kind == DeviceKind::kGpu && different.size() == request.devices.size();
  std::vector<std::string> passed;
  if (!own_gpus)
    passed.push_back(kind == DeviceKind::kGpu ? "nccl wants a GPU for each rank"
                                              : "nccl is for GPUs");
  for (const std::string_view name : kBackendsByPreference) {
    if (name == "nccl" && !own_gpus) continue;
    const auto part = std::find_if(machine.comms.begin(), machine.comms.end(),
                                   [&](const Part& p) { return p.name == name; });
    if (part != machine.comms.end() && part->usable)
      return {part->name, fmt::format("{}{}{}", part->why, passed.empty() ? "" : "; ",
                                      fmt::join(passed, "; "))};
    passed.push_back(
        fmt::format("{}: {}", name, part == machine.comms.end() ? "not built" : part->why));
  }
  throw InputError("no backend can be used here");
}

void refuse_unknown(const char* what, const std::string& name, const std::vector<Part>& parts) {
  std::vector<std::string> known;
  for (const Part& part : parts) {
    if (part.name == name && part.usable) return;
    if (part.name == name) {
      throw InputError(fmt::format("{} {} cannot be used here: {}", what, name, part.why));
    }
    known.push_back(part.name);
  }
  throw InputError(fmt::format("unknown {} \"{}\"{} (there are {})", what, name,
                               did_you_mean(name, known), fmt::join(known, ", ")));
}

// Checks names before measuring, because the bench would check each only at its own run.
void refuse_unknown_names(const Machine& machine, const Request& request) {
  for (const Workload& workload : request.workloads) {
    refuse_unknown("model", workload.model.substr(0, workload.model.find(':')), machine.models);
  }
  for (const std::string& mode : request.modes) {
    refuse_unknown("mode", name_of(mode), machine.modes);
  }
  for (const std::string& name : request.backends) refuse_unknown("backend", name, machine.comms);
  const std::string& kernels = request.forwarded["kernels"];
  if (!kernels.empty()) refuse_unknown("kernels", kernels, machine.kernels);
}

void resolve_script(const Arguments& arguments, Request& request,
                    std::vector<std::string>& notices) {
  refuse_options_of_models(arguments);
  std::string notice;
  request.script = script_from(arguments.command, &notice);
  request.script.in_copy = arguments.in_copy;
  if (arguments.keep_private) make_private(request.script);
  if (find_in_path(arguments.command[0]).empty())
    throw InputError(fmt::format("no program \"{}\" in PATH", arguments.command[0]));
  request.script.samples_per_step = arguments.samples_per_step.value_or(0);
  request.script.try_ddp = arguments.try_ddp;
  request.script.tries = arguments.tries;
  request.script.rate = arguments.rate;
  if (arguments.start_timeout) request.script.start_timeout = *arguments.start_timeout;
  if (arguments.run_timeout)
    request.script.start_timeout = std::min(request.script.start_timeout, *arguments.run_timeout);
  request.workloads = {{request.script.name, 0}};
  request.modes = {"script"};
  request.backends = {"local"};
  if (request.time_budget <= 0)
    request.time_budget = kScriptBudget + (arguments.cluster.empty() ? 0 : kRehearsalBudget);
  if (!notice.empty()) notices.push_back(notice);
}

// Steps on CPU cores say nothing about a cluster of GPUs.
void refuse_other_devices(const Cluster& cluster, const Request& request) {
  const bool gpus = device_kind(request.devices.front()) == DeviceKind::kGpu;
  if (gpus == (cluster.device != kCpuDevice)) return;
  throw InputError(
      fmt::format("{} is of {} devices, and the steps would be those of {}: they say nothing about "
                  "it. {}",
                  cluster.name, cluster.device, gpus ? "a GPU" : "CPU cores",
                  gpus || !request.script.rate.empty()
                      ? "Run this on one of its devices"
                      : fmt::format("Without {}, its step is counted", flag::kDevices.name)));
}

// Throws InputError if steps of our own model are not computed as the request has it.
void refuse_uncomputable(const Request& request) {
  if (request.script.given()) return;
  if (request.workloads.size() != 1)
    throw InputError(fmt::format("{} needs one {}", flag::kCluster.name, flag::kModel.name));
  if (request.modes.size() != 1 || !is_computable(request.modes[0]))
    throw InputError(fmt::format("{} is for one {}, with one device in each rank",
                                 flag::kCluster.name, flag::kMode.name));
  const int least = devices_of_a_model(request.modes[0]);
  if (request.beyond.up_to % least != 0)
    throw InputError(fmt::format("{} {}: groups of {} devices do not divide it", flag::kUpTo.name,
                                 request.beyond.up_to, least));
}

void resolve_beyond(const Arguments& a, Request& request) {
  request.beyond = {};
  if (!a.up_to && !a.cluster.empty())
    throw InputError("--cluster needs --up-to, the largest number of devices");
  if (!a.up_to) return;
  request.beyond.up_to = *a.up_to;
  if (a.cluster.empty()) {
    if (device_kind(request.devices.front()) != DeviceKind::kGpu)
      throw InputError(
          "--up-to predicts GPUs, and these are CPU cores: give --cluster, or run on a GPU");
    return;
  }
  if (!request.script.rate.empty())
    throw InputError("--cluster rehearses a PyTorch script, and --rate is for other programs");
  refuse_uncomputable(request);
  const Cluster cluster = find_cluster(a.cluster);
  refuse_other_devices(cluster, request);
  if (const std::string why = cluster.refusal(*a.up_to); !why.empty())
    throw InputError(fmt::format("--up-to {}: {}", *a.up_to, why));
  request.beyond.cluster = cluster.name;
  if (std::filesystem::is_regular_file(a.cluster)) request.beyond.text = read_text(a.cluster);
}

}  // namespace

void refuse_options_of_models(const Arguments& a) {
  std::vector<std::string> given;
  const auto add = [&](bool is_given, const Flag& flag) {
    if (is_given) given.emplace_back(flag.name);
  };
  add(!a.models.empty(), flag::kModel);
  add(!a.modes.empty(), flag::kMode);
  add(!a.backends.empty(), flag::kBackend);
  add(a.batch_per_device.has_value(), flag::kBatchPerDevice);
  add(a.global_batch.has_value(), flag::kGlobalBatch);
  add(a.workers.has_value(), flag::kWorkers);
  add(a.seed.has_value(), flag::kSeed);
  add(a.sync_batchnorm, flag::kSyncBatchnorm);
  add(a.profile, flag::kProfile);
  for (const auto& [name, word] : a.forwarded)
    if (word) given.push_back("--" + name);
  if (given.empty()) return;
  throw InputError(fmt::format("{} cannot be combined with a command after --, which decides that",
                               fmt::join(given, ", ")));
}

void refuse_options_of_scripts(const Arguments& a) {
  const char* const given = a.samples_per_step ? flag::kSamplesPerStep.name
                            : a.try_ddp        ? flag::kTryDdp.name
                            : a.tries          ? flag::kTry.name
                            : !a.rate.empty()  ? flag::kRate.name
                            : a.in_copy        ? flag::kInCopy.name
                            : a.start_timeout  ? flag::kStartTimeout.name
                            : a.keep_private   ? flag::kPrivate.name
                                               : nullptr;
  if (given != nullptr)
    throw InputError(fmt::format("{} is for your own command, which is missing after --", given));
}

void apply(const Arguments& a, Request& request) {
  if (a.batch_per_device && a.global_batch) {
    throw InputError(fmt::format("{} excludes {} where steps are measured",
                                 flag::kBatchPerDevice.name, flag::kGlobalBatch.name));
  }
  if (!a.models.empty()) {
    request.workloads.clear();
    for (const std::string& model : a.models) {
      request.workloads.push_back({model, default_batch(model)});
    }
  }
  if (a.global_batch) request.scaling = Scaling::kStrong;
  if (a.batch_per_device) request.scaling = Scaling::kWeak;
  for (Workload& workload : request.workloads) {
    if (a.batch_per_device) workload.batch = *a.batch_per_device;
    if (a.global_batch) workload.batch = *a.global_batch;
  }
  if (!a.modes.empty()) request.modes = join_options(a.modes);
  if (!a.backends.empty()) request.backends = a.backends;
  if (!a.devices.empty()) request.devices = a.devices;
  if (a.cores_per_device) request.cores_per_device = *a.cores_per_device;
  for (const auto& [name, word] : a.forwarded)
    if (word) request.forwarded.set(name, *word);
  if (a.workers) request.workers = *a.workers;
  if (a.rounds) request.rounds = *a.rounds;
  if (a.time_budget) request.time_budget = *a.time_budget;
  if (a.seed) request.seed = *a.seed;
  if (a.oversubscribe) request.oversubscribe = true;
  if (a.sync_batchnorm) request.sync_batchnorm = true;
  if (a.profile) request.profile = true;
}

Request resolve(const Arguments& arguments, std::vector<std::string>& notices) {
  Request request = defaults(arguments.preset);
  request.tour = arguments.preset.has_value();
  if (!request.tour) request.workloads = {{"mlp", default_batch("mlp")}};
  apply(arguments, request);
  const Machine machine = read_machine();
  if (const std::string notice = resolve_devices(arguments, machine, request); !notice.empty())
    notices.push_back(notice);
  if (!arguments.command.empty()) {
    resolve_script(arguments, request, notices);
    refuse_oversubscription(machine, request);
    resolve_counts(arguments, request);
    resolve_beyond(arguments, request);
    check(request);
    return request;
  }
  refuse_options_of_scripts(arguments);
  if (!arguments.cluster.empty() && request.modes.empty()) request.modes = {"ddp"};
  resolve_modes(machine, request);
  if (request.backends.empty() || request.backends == std::vector<std::string>{"auto"}) {
    const Choice choice = default_comm_backend(machine, request);
    request.backends = {choice.name};
    notices.push_back(fmt::format("backend {}: {}", choice.name, choice.because));
  }
  refuse_unknown_names(machine, request);
  refuse_oversubscription(machine, request);
  resolve_counts(arguments, request);
  resolve_beyond(arguments, request);
  check(request);
  return request;
}

}  // namespace howmany::reports
