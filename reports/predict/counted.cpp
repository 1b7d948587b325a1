// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/counted.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "core/base/text/json.h"
#include "core/base/text/table.h"
#include "reports/predict/ladder.h"

namespace howmany::reports {
namespace {

constexpr size_t kMaxKinds = 200'000, kMaxPlaces = 5'000'000;
constexpr double kMaxOpBytes = 1e15, kMaxOpFlop = 1e21, kMaxOpSamples = 1e12;
constexpr int kMaxMicroBatches = 1 << 20;

constexpr std::pair<const char*, OpWork> kOpWorks[] = {{"product", OpWork::kProduct},
                                                       {"convolution", OpWork::kConvolution},
                                                       {"attention", OpWork::kAttention},
                                                       {"memory", OpWork::kMemory},
                                                       {"unknown", OpWork::kUnknown}};
constexpr std::pair<const char*, OpPhase> kOpPhases[] = {{"forward", OpPhase::kForward},
                                                         {"backward", OpPhase::kBackward},
                                                         {"optimizer", OpPhase::kOptimizer}};

double not_above(const JsonNode& node, double most) {
  const double value = node.number();
  if (value < 0 || value > most) node.fail(fmt::format("expected a number from 0 to {:g}", most));
  return value;
}

double bytes_at(const JsonNode& node, const char* key) {
  return not_above(node.at(key), kMaxOpBytes);
}

template <typename T, size_t N>
T named(const JsonNode& node, const std::pair<const char*, T> (&names)[N]) {
  const std::string text = node.string();
  for (const auto& [name, value] : names)
    if (text == name) return value;
  node.fail("unknown word");
}

std::vector<JsonNode> at_most(const JsonNode& node, size_t most) {
  if (node.value().size() > most) node.fail(fmt::format("has more than {} members", most));
  return node.items();
}

CountedOp op_from(const JsonNode& node) {
  CountedOp one;
  one.op = printable(node.at("op").string());
  one.work = named(node.at("work"), kOpWorks);
  one.dtype = printable(node.at("dtype").string());
  one.flop = not_above(node.at("flop"), kMaxOpFlop);
  one.read = bytes_at(node, "read");
  one.written = bytes_at(node, "written");
  one.phase = named(node.at("phase"), kOpPhases);
  return one;
}

// Sets step.refused if no cluster has times for it.
CountedCollective counted_collective(const JsonNode& node, CountedStep& step) {
  CountedCollective one;
  const std::string op = node.at("op").string();
  const auto* const found =
      std::ranges::find_if(kCollectives, [&](const auto& known) { return op == known.first; });
  if (found != std::end(kCollectives))
    one.kind = found->second;
  else if (step.refused.empty())
    step.refused = fmt::format("it calls {}, and no cluster has times for that", printable(op));
  one.bytes = bytes_at(node, "bytes");
  one.ranks = static_cast<int>(node.at("ranks").integer_between(1, kMaxPredicted));
  if (const auto stride = node.find("stride"))
    one.stride = static_cast<int>(stride->integer_between(1, kMaxPredicted));
  if (const auto waited = node.find("waited"))
    one.waited =
        static_cast<size_t>(waited->integer_between(0, static_cast<int64_t>(step.order.size())));
  return one;
}

// Each collective is called once.
void take_order(const JsonNode& root, CountedStep& step) {
  const auto kinds = static_cast<int64_t>(step.kinds.size());
  const auto collectives = static_cast<int64_t>(root.at("collectives").value().size());
  std::vector<bool> called(static_cast<size_t>(collectives));
  for (const JsonNode& place : at_most(root.at("order"), kMaxPlaces)) {
    const int64_t at = place.integer_between(-collectives, kinds - 1);
    step.order.push_back(static_cast<int>(at));
    if (at >= 0) continue;
    const auto index = static_cast<size_t>(-1 - at);
    if (called[index]) place.fail("calls a collective again");
    called[index] = true;
  }
  if (step.operations() == 0) root.at("order").fail("has no operation");
  if (std::ranges::count(called, false) > 0) root.at("order").fail("a collective is not called");
}

ReadyGradient gradient_from(const JsonNode& node, size_t places) {
  const std::vector<JsonNode> pair = node.items();
  if (pair.size() != 2) node.fail("expected a place and bytes");
  return {static_cast<size_t>(pair[0].integer_between(0, static_cast<int64_t>(places))),
          not_above(pair[1], kMaxOpBytes)};
}

CountedMemory memory_from(const JsonNode& node) {
  return {bytes_at(node, "parameters"), bytes_at(node, "gradients"), bytes_at(node, "optimizer"),
          bytes_at(node, "peak"), bytes_at(node, "reserved")};
}

CountedLoader loader_from(const JsonNode& node) {
  return {not_above(node.at("core_s_per_batch"), 1e6), not_above(node.at("samples"), kMaxOpSamples),
          static_cast<int>(node.at("workers").integer_between(0, 1 << 20))};
}

void take_lists(const JsonNode& root, CountedStep& step) {
  for (const JsonNode& one : at_most(root.at("kinds"), kMaxKinds))
    step.kinds.push_back(op_from(one));
  take_order(root, step);
  for (const JsonNode& one : at_most(root.at("collectives"), kMaxPlaces))
    step.collectives.push_back(counted_collective(one, step));
  for (const JsonNode& one : at_most(root.at("gradients"), kMaxPlaces))
    step.gradients.push_back(gradient_from(one, step.order.size()));
}

}  // namespace

double CountedStep::flop() const {
  double sum = 0;
  for (const int place : order)
    if (place >= 0) sum += kinds[static_cast<size_t>(place)].flop;
  return sum;
}

std::span<const ReadyGradient> CountedStep::last_gradients() const {
  const std::span<const ReadyGradient> all = gradients;
  const auto passes = static_cast<size_t>(std::max(micro_batches, 1));
  const size_t each = all.size() / passes;
  if (all.size() % passes != 0) return all;
  const auto last = all.last(each);
  for (size_t at = 0; at < all.size(); ++at)
    if (all[at].bytes != last[at % each].bytes) return all;
  return last;
}

double CountedStep::gradient_bytes() const {
  double sum = 0;
  for (const ReadyGradient& one : last_gradients()) sum += one.bytes;
  return sum;
}

size_t CountedStep::operations() const {
  return static_cast<size_t>(std::ranges::count_if(order, [](int place) { return place >= 0; }));
}

CountedStep counted_from(const nlohmann::json& json, const std::string& source) {
  const JsonNode root(json, source);
  CountedStep step;
  if (const auto refused = root.find("refused")) {
    step.refused = printable(refused->string());
    if (step.refused.empty()) refused->fail("is empty");
    return step;
  }
  step.way = root.at("way").string();
  if (step.way != "shapes" && step.way != "real") root.at("way").fail("unknown word");
  step.device = printable(root.at("device").string());
  step.parallel = printable(root.at("parallel").string());
  step.world = static_cast<int>(root.at("world").integer_between(1, kMaxPredicted));
  step.samples = not_above(root.at("samples"), kMaxOpSamples);
  step.micro_batches =
      static_cast<int>(root.at("micro_batches").integer_between(1, kMaxMicroBatches));
  step.compiled = root.at("compiled").boolean();
  take_lists(root, step);
  step.host_ops = not_above(root.at("host_ops"), 1e9);
  step.memory = memory_from(root.at("memory"));
  if (const auto loader = root.find("loader")) step.loader = loader_from(*loader);
  if (const auto answered = root.find("answered"))
    for (const auto& [name, times] : answered->members())
      step.answered[printable(name)] = times.integer_between(0, 1'000'000'000);
  return step;
}

}  // namespace howmany::reports
