// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <regex>
#include <set>

#include "core/base/text/files.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "reports/results/device_kind.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

const std::vector<std::string> kOneProcess = {"data_parallel", "model"};  // of early versions

constexpr const char* kPlanSchema = "howmany.plan/1";
constexpr int64_t kMaxDevices = 4096, kMaxPlanRounds = 1000, kMaxPlanBatch = int64_t{1} << 40;

constexpr int kMaxPlanned = 1 << 16;  // devices; times 9,999 it is still an int

// The numbers of devices on which the mode can run. If there is none, its steps may still be
// computed on more; else all, and the bench says why they are refused.
std::vector<int> counts_of(const Request& request, const std::string& mode) {
  std::vector<int> counts;
  const int least = devices_of_a_model(mode);
  std::ranges::copy_if(request.counts, std::back_inserter(counts),
                       [&](int count) { return count % least == 0; });
  return counts.empty() && request.beyond.cluster.empty() ? request.counts : counts;
}

void add_mode(std::vector<Configuration>& all, const Request& request, const Workload& workload,
              const std::string& mode) {
  const std::vector<std::string> local = {"local"};
  const auto& alone = request.one_process;
  const bool over_ranks = std::find(alone.begin(), alone.end(), mode) == alone.end();
  for (const std::string& backend : over_ranks ? request.backends : local) {
    for (const int count : counts_of(request, mode)) {
      const Configuration next{workload.model, mode, backend, count, workload.batch, over_ranks};
      if (mode.substr(0, mode.find(':')) == "single" && count > 1) continue;
      if (std::find(all.begin(), all.end(), next) == all.end()) all.push_back(next);
    }
  }
}

void refuse_if(bool bad, const std::string& what) {
  if (bad) throw InputError(what);
}

void refuse_repeats(const Request& request) {
  std::set<std::string> seen;
  for (const std::string& device : request.devices) {
    const bool is_gpu = device_kind(device) == DeviceKind::kGpu;
    if (seen.insert(device).second || (is_gpu && request.oversubscribe)) continue;
    throw InputError(fmt::format("--devices names {} twice{}", device,
                                 is_gpu ? "; with --oversubscribe its ranks share it, and no "
                                          "speedup is to be trusted"
                                        : ""));
  }
}

// A plan of an older version lacks newer options. They count as not given.
ForwardedOptions forwarded_from(const JsonNode& root) {
  ForwardedOptions forwarded;
  for (const ForwardedOption& option : forwarded_options())
    if (const auto word = root.find(option.name())) forwarded.set(option.name(), word->string());
  return forwarded;
}

double non_negative(const JsonNode& node) {
  const double value = node.number();
  if (value < 0) node.fail("is negative");
  return value;
}

std::vector<Workload> workloads_from(const JsonNode& node) {
  std::vector<Workload> workloads;
  for (const JsonNode& item : node.items()) {
    workloads.push_back(
        {item.at("model").string(), item.at("batch").integer_between(0, kMaxPlanBatch)});
  }
  return workloads;
}

std::vector<int> counts_from(const JsonNode& node) {
  std::vector<int> counts;
  for (const JsonNode& item : node.items()) {
    counts.push_back(static_cast<int>(item.integer_between(1, kMaxDevices)));
  }
  return counts;
}

Script read_script(const JsonNode& node) {
  Script script;
  script.name = node.at("name").string();
  script.samples_per_step = node.at("samples-per-step").integer_between(0, kMaxPlanBatch);
  script.alone = node.at("alone").boolean();
  script.try_ddp = node.at("try-ddp").boolean();
  if (const auto tries = node.find("try")) script.tries = tries->boolean();
  if (const auto copy = node.find("in-copy")) script.in_copy = copy->boolean();
  if (const auto keep = node.find("private")) script.keep_private = keep->boolean();
  if (const auto words = node.find("words")) script.words = words->strings();
  if (const auto one = node.find("one")) script.one = one->strings();
  if (const auto rank = node.find("one-rank")) script.one_rank = rank->boolean();
  if (const auto own = node.find("own-ranks"))
    script.own_ranks = static_cast<int>(own->integer_between(0, kMaxDevices));
  if (const auto why = node.find("why-alone")) script.why_alone = why->string();
  if (const auto group = node.find("has-group")) script.has_group = group->boolean();
  if (const auto across = node.find("across")) script.across = across->strings();
  if (const auto why = node.find("why-one-node")) script.why_one_node = why->string();
  if (const auto rate = node.find("rate")) script.rate = rate->string();
  return script;
}

NodesPlan read_nodes(const JsonNode& node) {
  NodesPlan plan;
  plan.nodes.names = node.at("names").strings();
  plan.nodes.launcher = node.at("launcher").string();
  plan.nodes.source = node.at("source").string();
  plan.environment = node.at("environment").strings();
  return plan;
}

BeyondPlan read_beyond(const JsonNode& node) {
  BeyondPlan beyond;
  beyond.up_to = static_cast<int>(node.at("up-to").integer_between(2, 16'384));
  beyond.cluster = node.at("cluster").string();
  if (const auto text = node.find("text")) beyond.text = text->string();
  return beyond;
}

Scaling scaling_from(const JsonNode& node) {
  const std::string name = node.string();
  if (name == "weak") return Scaling::kWeak;
  if (name != "strong") node.fail("expected \"weak\" or \"strong\"");
  return Scaling::kStrong;
}

}  // namespace

int devices_of_a_model(const std::string& mode) {
  static const std::regex kOption("[:,](?:ways|stages)=([1-9][0-9]{0,3})(?![0-9])");
  int devices = 1;
  for (std::sregex_iterator found(mode.begin(), mode.end(), kOption), end; found != end; ++found)
    devices = std::min(devices * std::stoi((*found)[1]), kMaxPlanned);  // the bench refuses more
  return devices;
}

Cluster cluster_of(const BeyondPlan& beyond) {
  return beyond.text.empty() ? find_cluster(beyond.cluster)
                             : parse_cluster(beyond.text, beyond.cluster);
}

std::vector<Configuration> configurations(const Request& request) {
  std::vector<Configuration> all;
  for (const Workload& workload : request.workloads) {
    if (request.script.own_ranks == 0)
      all.push_back({workload.model, "single", "local", 1, workload.batch, false});
    if (request.script.given()) {
      if (request.script.one_rank) all.push_back({workload.model, "script", "local", 1, 0, false});
      for (const int count : request.counts)
        if (count > 1) all.push_back({workload.model, "script", "local", count, 0, false});
      if (!request.beyond.cluster.empty() && !request.script.alone)
        all.push_back({workload.model, kRehearsalMode, "local", request.beyond.up_to, 0, false});
      continue;
    }
    for (const std::string& mode : request.modes) add_mode(all, request, workload, mode);
  }
  return all;
}

std::vector<size_t> order_of_round(size_t count, int round) {
  std::vector<size_t> order;
  for (size_t i = 0; i < count; ++i) order.push_back(i);
  if (round % 2 == 1) std::reverse(order.begin(), order.end());
  return order;
}

int nodes_of(const Request& request, int devices) {
  const auto each = static_cast<int>(request.devices.size());
  if (devices <= each) return 1;
  return devices % each == 0 ? devices / each : 0;
}

int64_t global_batch(const Request& request, const Configuration& configuration) {
  return request.scaling == Scaling::kWeak ? configuration.batch * configuration.devices
                                           : configuration.batch;
}

std::string describe(const Configuration& configuration) {
  const std::string mode = configuration.over_ranks
                               ? configuration.mode + " over " + configuration.backend
                               : configuration.mode;
  return fmt::format("{}, {}, {} device{}", configuration.model, mode, configuration.devices,
                     configuration.devices == 1 ? "" : "s");
}

void check(const Request& request) {
  refuse_if(request.workloads.empty(), "no model given");
  refuse_if(request.modes.empty(), "no mode given");
  refuse_if(request.devices.empty(), "no device given");
  refuse_if(request.counts.empty(), "no device count to measure");
  refuse_repeats(request);
  request.forwarded.check(request.devices);
  refuse_if(request.rounds < 1, "--rounds must be at least 1");
  const int most = *std::max_element(request.counts.begin(), request.counts.end());
  refuse_if(request.beyond.up_to > 0 && request.beyond.up_to <= most,
            fmt::format("--up-to {} is not beyond the {} that are measured", request.beyond.up_to,
                        number(most, "device")));
  const int here = static_cast<int>(request.devices.size());
  for (const int count : request.counts)
    refuse_if(
        count > here * std::max(1, request.across.nodes.count()) || nodes_of(request, count) == 0,
        request.across.nodes.many()
            ? fmt::format("{} devices are no whole nodes of {}, or more than {} nodes", count, here,
                          request.across.nodes.count())
            : fmt::format("{} devices were requested, {} given", count, here));
  for (const Workload& workload : request.workloads) {
    const bool strong = request.scaling == Scaling::kStrong;
    if (request.script.given()) continue;
    refuse_if(workload.batch < 1, "the batch must be at least 1");
    refuse_if(strong && workload.batch < most,
              fmt::format("--global-batch {} is smaller than {} devices: some would have nothing "
                          "to do; take a larger batch or fewer devices",
                          workload.batch, most));
  }
}

nlohmann::ordered_json to_json(const Request& request) {
  nlohmann::ordered_json workloads = nlohmann::ordered_json::array();
  for (const Workload& workload : request.workloads) {
    workloads.push_back({{"model", workload.model}, {"batch", workload.batch}});
  }
  nlohmann::ordered_json all = {{"workloads", workloads},
                                {"mode", request.modes},
                                {"one-process", request.one_process},
                                {"backend", request.backends},
                                {"devices", request.devices},
                                {"counts", request.counts},
                                {"scaling", request.scaling == Scaling::kWeak ? "weak" : "strong"},
                                {"cores-per-device", request.cores_per_device},
                                {"workers", request.workers},
                                {"rounds", request.rounds},
                                {"run-seconds", request.run_seconds},
                                {"time-budget", request.time_budget},
                                {"seed", request.seed},
                                {"oversubscribe", request.oversubscribe},
                                {"sync-batchnorm", request.sync_batchnorm},
                                {"profile", request.profile}};
  for (const auto& [name, word] : request.forwarded.given()) all[name] = word;
  if (request.tour) all[kTour] = true;
  if (request.beyond.up_to > 0)
    all["beyond"] = {{"up-to", request.beyond.up_to}, {"cluster", request.beyond.cluster}};
  if (const NodesPlan& across = request.across; across.nodes.many())
    all["nodes"] = {{"names", across.nodes.names},
                    {"launcher", across.nodes.launcher},
                    {"source", across.nodes.source},
                    {"environment", across.environment}};
  if (request.script.given())
    all["script"] = {{"name", request.script.name},
                     {"samples-per-step", request.script.samples_per_step},
                     {"alone", request.script.alone},
                     {"try-ddp", request.script.try_ddp},
                     {"try", request.script.tries},
                     {"in-copy", request.script.in_copy},
                     {"private", request.script.keep_private},
                     {"one-rank", request.script.one_rank},
                     {"own-ranks", request.script.own_ranks},
                     {"why-alone", request.script.why_alone},
                     {"why-one-node", request.script.why_one_node},
                     {"has-group", request.script.has_group}};
  return all;
}

Request request_from_json(const nlohmann::json& json, const std::string& source) {
  const JsonNode root(json, source);
  Request request;
  request.workloads = workloads_from(root.at("workloads"));
  request.modes = root.at("mode").strings();
  // Summaries of early versions lack it.
  const auto one_process = root.find("one-process");
  request.one_process = one_process ? one_process->strings() : kOneProcess;
  request.backends = root.at("backend").strings();
  request.devices = root.at("devices").strings();
  request.counts = counts_from(root.at("counts"));
  request.scaling = scaling_from(root.at("scaling"));
  request.cores_per_device =
      static_cast<int>(root.at("cores-per-device").integer_between(1, kMaxDevices));
  request.forwarded = forwarded_from(root);
  request.workers = static_cast<int>(root.at("workers").integer_between(-1, kMaxDevices));
  request.rounds = static_cast<int>(root.at("rounds").integer_between(1, kMaxPlanRounds));
  request.run_seconds = non_negative(root.at("run-seconds"));
  request.time_budget = non_negative(root.at("time-budget"));
  request.seed = root.at("seed").integer();
  request.oversubscribe = root.at("oversubscribe").boolean();
  request.sync_batchnorm = root.at("sync-batchnorm").boolean();
  request.profile = root.at("profile").boolean();
  if (const auto tour = root.find(kTour)) request.tour = tour->boolean();
  if (const auto script = root.find("script")) request.script = read_script(*script);
  if (const auto nodes = root.find("nodes")) request.across = read_nodes(*nodes);
  if (const auto beyond = root.find("beyond")) request.beyond = read_beyond(*beyond);
  check(request);
  return request;
}

std::vector<int> default_counts(int most) {
  std::set<int> counts;
  for (int n = 1; n <= std::min(4, most); ++n) counts.insert(n);
  for (int n = 8; n <= most; n *= 2) counts.insert(n);
  counts.insert(most);
  return {counts.begin(), counts.end()};
}

void write_plan(const std::string& path, const Plan& plan) {
  nlohmann::ordered_json request = to_json(plan.request);
  if (plan.request.script.given()) {
    request["script"]["words"] = plan.request.script.words;
    request["script"]["one"] = plan.request.script.one;
    request["script"]["across"] = plan.request.script.across;
  }
  if (!plan.request.script.rate.empty()) request["script"]["rate"] = plan.request.script.rate;
  if (!plan.request.beyond.text.empty()) request["beyond"]["text"] = plan.request.beyond.text;
  write_text(path,
             dump_json({{"schema", kPlanSchema}, {"request", request}, {"machine", plan.machine}}));
}

Plan read_plan(const std::string& path) {
  const nlohmann::json json = parse_json(read_text(path), path);
  const JsonNode root(json, path);
  if (root.at("schema").string() != kPlanSchema)
    root.fail(fmt::format("schema is not {}", kPlanSchema));
  root.at("machine").members();
  return {request_from_json(root.at("request").value(), path), json["machine"]};
}

}  // namespace howmany::reports
