// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/model_runs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "core/base/private_folder.h"
#include "core/base/process.h"
#include "core/base/schema/flags.h"
#include "core/base/text/files.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "core/base/text/options.h"
#include "reports/results/machine.h"

namespace howmany::reports {
namespace {

constexpr double kSecondsOfProgram = 120;
constexpr int64_t kMicroBatchesOfPeak = 3;  // further ones need no more memory

// The JSON that the program prints. Throws InputError with its last line if it refuses.
nlohmann::json run_for_json(const char* program, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), find_program(program));
  const ProcessResult ended =
      run_command({.argv = arguments, .timeout_seconds = kSecondsOfProgram});
  if (ended.how == ProcessResult::How::kExited && ended.code == 2)
    throw InputError(ended.last_line());
  if (!ended.ok()) throw InputError(fmt::format("{} {}", program, ended.describe()));
  return parse_json(ended.out, program);
}

const std::string& precision_or_bf16(const std::string& precision) {
  static const std::string kUsual = "bf16";
  return precision.empty() ? kUsual : precision;
}

// The rows of howmany-memory. `largest_gb`: also the largest batch that fits as much, by a search.
nlohmann::json memory_of(const std::string& model, const std::string& precision,
                         const std::string& mode, int64_t samples, const std::vector<int>& counts,
                         std::optional<double> largest_gb = {}) {
  std::vector<std::string> words = {flag::kModel,
                                    model,
                                    flag::kMode,
                                    mode,
                                    flag::kDeviceCount,
                                    fmt::format("{}", fmt::join(counts, ",")),
                                    flag::kBatchPerDevice,
                                    std::to_string(samples),
                                    flag::kOptimizer,
                                    "adamw",
                                    flag::kPrecision,
                                    precision_or_bf16(precision),
                                    flag::kJson};
  if (largest_gb)
    words.insert(words.end(), {flag::kDeviceMemory, fmt::format("{:.0f}", *largest_gb * 1e9)});
  return run_for_json("howmany-memory", std::move(words));
}

std::string too_much(double needed_gb, const Preset& p) {
  return fmt::format(
      "by an estimate, a step with adamw holds {:.3g} GB, and the {} of {} has {:g} GB", needed_gb,
      p.cluster.device, p.cluster.name, *p.cluster.memory_gb);
}

void refuse_what_does_not_fit(const nlohmann::json& memory, const Preset& p,
                              std::map<int, ModeStep>& steps) {
  const JsonNode root(memory, "howmany-memory");
  for (const JsonNode& row : root.at("rows").items()) {
    ModeStep& step = steps[static_cast<int>(row.at("devices").integer_between(1, kMaxPredicted))];
    const auto peak = row.find("peak_bytes");
    if (!step.why.empty() || !peak || !p.cluster.memory_gb) continue;
    if (peak->number() / 1e9 > *p.cluster.memory_gb) step.why = too_much(peak->number() / 1e9, p);
  }
}

// The share of each GPU in a step of p.mode, in the micro-batches of strong scaling, but at most
// `most`, if the mode leaves their number open. Pipelines have micro-batches of their own.
ShareOfDevice share_on(const Preset& p, int devices, int64_t most) {
  const Portion each = portion_on(p, devices);
  NamedOptions mode = parse_named("mode", p.mode);
  if (each.micro_batches == 1 || mode.name == "pipeline" || mode.name == "hybrid" ||
      mode.options.contains("accumulate"))
    return {p.mode, each.micro_batches * each.samples};
  const int64_t count = std::min(each.micro_batches, most);
  mode.options["accumulate"] = std::to_string(count);
  return {text_of(mode), count * each.samples};
}

nlohmann::json run_computed(const nlohmann::ordered_json& file) {
  catch_interrupts();
  const PrivateFolder folder;
  const std::string path = folder.path() + "/steps.json";
  write_text(path, dump_json(file));
  return run_for_json("howmany-devices", {flag::kComputed, path});
}

Range seconds_of(const JsonNode& row) {
  const std::vector<JsonNode> seconds = row.at("s").items();
  if (seconds.size() != 3) row.fail("expected the seconds of three steps");
  return {seconds[0].number(), seconds[1].number(), seconds[2].number()};
}

// Why p.mode is not predicted on that many GPUs; empty if it is. docs/RESULTS.md has the published
// runs that it was compared with.
std::string spans_nodes(const Preset& p, int devices) {
  const auto [name, options] = parse_named("mode", p.mode);
  int64_t ways = name == "tensor" ? devices : 1;
  if (const auto given = options.find("ways"); given != options.end())
    ways = parse_positive("mode", given->first, given->second);
  if (ways <= p.cluster.devices_per_node) return "";
  return fmt::format(
      "each layer would be divided over {} GPUs, and a node has {}: published runs across nodes "
      "are "
      "several times slower",
      ways, p.cluster.devices_per_node);
}

}  // namespace

ModelWork read_work(const std::string& model) {
  nlohmann::ordered_json file;
  file["model"] = model;
  const nlohmann::json json = run_computed(file);
  const JsonNode root(json, "howmany-devices");
  return {model, root.at("work").string(), root.at("forward_flop").number()};
}

bool is_computable(const std::string& mode) {
  const std::string name = mode.substr(0, mode.find(':'));
  return name == "ddp" || name == "sharded" || name == "tensor" || name == "pipeline" ||
         (name == "hybrid" && mode.find("across=model") == std::string::npos);
}

std::map<int, ModeStep> computed_steps(const ReferenceStep& step, const Cluster& cluster,
                                       const std::map<int, ShareOfDevice>& shares) {
  nlohmann::ordered_json file = {
      {"model", step.model},
      {"precision", step.precision},
      {"samples", step.samples},
      {"seconds", step.seconds},
      {"fixed_seconds", {step.fixed.value, step.fixed.low, step.fixed.high}},
      {"steps", nlohmann::ordered_json::array()}};
  for (const auto& [devices, share] : shares) {
    nlohmann::ordered_json table = cost_table_with_groups(cluster, devices);
    table["flop_per_byte"] = step.flop_per_byte;
    file["steps"].push_back(
        {{"mode", share.mode}, {"batch_per_device", share.samples}, {"table", table}});
  }
  const nlohmann::json answer = run_computed(file);
  std::map<int, ModeStep> steps;
  for (const JsonNode& row : JsonNode(answer, "howmany-devices").at("steps").items()) {
    const auto devices = static_cast<int>(row.at("devices").integer_between(2, kMaxPredicted));
    if (const auto why = row.find("why"))
      steps[devices].why = why->string();
    else
      steps[devices].seconds = seconds_of(row);
  }
  return steps;
}

std::string memory_sentence(const std::string& model, const std::string& precision,
                            const Preset& p) {
  const std::optional<double>& gb = p.cluster.memory_gb;
  const nlohmann::json json = memory_of(model, precision, kPlainMode, p.batch, {2}, gb);
  const JsonNode row = JsonNode(json, "howmany-memory").at("rows").items().at(0);
  const double needed = row.at("peak_bytes").number() / 1e9;
  if (gb && needed > *gb) {
    const double most = row.at("largest_batch_per_device").number();
    throw InputError(fmt::format(
        "{} with {} per GPU does not fit: {}; {}", model, number(p.batch, "sample"),
        too_much(needed, p),
        most < 1 ? fmt::format("not even one sample fits: {} sharded divides it", flag::kMode.name)
                 : fmt::format("{} {:.0f} fits", flag::kBatchPerDevice.name, most)));
  }
  return fmt::format("By an estimate, its step with adamw holds {:.3g} GB{} (howmany memory).",
                     needed, gb ? fmt::format(" of {:g} GB", *gb) : " of a GPU's memory");
}

std::map<int, ModeStep> steps_of_mode(const std::string& model, const std::string& precision,
                                      const Preset& p, const std::vector<int>& counts) {
  std::vector<int> more;
  std::map<int, ShareOfDevice> shares;
  for (const int n : counts) {
    if (n < 2) continue;
    more.push_back(n);
    shares[n] = share_on(p, n, std::numeric_limits<int64_t>::max());
  }
  std::map<int, ModeStep> steps =
      computed_steps({model, precision_or_bf16(precision), p.batch, p.time.usual_seconds,
                      p.time.fixed, p.flop_per_byte},
                     p.cluster, shares);
  for (auto& [devices, step] : steps)
    if (const std::string spans = spans_nodes(p, devices); step.why.empty() && !spans.empty())
      step.why = spans;
  const auto check_memory = [&](const ShareOfDevice& share, const std::vector<int>& on) {
    refuse_what_does_not_fit(memory_of(model, precision, share.mode, share.samples, on), p, steps);
  };
  if (p.global_batch == 0)
    check_memory({p.mode, p.batch}, more);
  else
    for (const int n : more) check_memory(share_on(p, n, kMicroBatchesOfPeak), {n});
  if (more.size() < counts.size()) check_memory({"single", p.batch}, {1});
  return steps;
}

}  // namespace howmany::reports
