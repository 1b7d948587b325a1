// SPDX-License-Identifier: Apache-2.0
#include "benches/tools/computed.h"

#include <fmt/core.h>

#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "benches/common/computed_step.h"
#include "benches/common/step_log.h"
#include "core/base/cli/number_check.h"
#include "core/base/error.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"
#include "core/nn/model.h"
#include "core/nn/units.h"
#include "core/tensor/precision.h"

namespace howmany::benches {
namespace {

constexpr double kMinSeconds = 1e-9, kMaxSeconds = 1e6;

using Times = std::vector<OperationSeconds>;

const char* work_of(const Layer& layer) {
  const std::string text = layer.describe();
  if (text.find("conv2d(") != std::string::npos) return "convolutions";
  return text.find("rnn(") != std::string::npos ? "recurrences" : "products";
}

nlohmann::json work_of(const std::string& model) {
  const ModelSpec spec = make_model(model);
  std::map<std::string, double> flop;  // of each kind of work
  double all = 0;
  Shape x = with_rows_in_front(1, spec.sample);
  for (const Unit& unit : units(*spec.layer)) {
    const double forward = unit.layer->forward_flop(x);
    flop[work_of(*unit.layer)] += forward;
    all += forward;
    x = unit.layer->output_shape(x);
  }
  const char* const larger = flop["convolutions"] > flop["products"] ? "convolutions" : "products";
  const char* const work = flop.contains("recurrences") ? "recurrences" : larger;
  return {{"work", work}, {"forward_flop", all}, {"steps", nlohmann::json::array()}};
}

nlohmann::json step_on(Workload work, const CostTable& costs, const Times& times) {
  try {
    check_model(work.mode, make_model(work.model), costs.world);
    nlohmann::json seconds = nlohmann::json::array();
    for (const OperationSeconds& one : times)
      seconds.push_back(computed_step_seconds(work, costs, one));
    return {{"devices", costs.world}, {"s", seconds}};
  } catch (const std::invalid_argument& e) {
    return {{"devices", costs.world}, {"why", e.what()}};
  }
}

nlohmann::json step_of(const JsonNode& step, Workload work, const Times& times) {
  work.mode = step.at("mode").string();
  mode_traits(work.mode);  // throws if it is unknown
  const CostTable costs = cost_table_from(step.at("table"));
  work.devices.assign(static_cast<size_t>(costs.world), Device{});
  work.global_batch = step.at("batch_per_device").integer_between(1, kMaxBatch) * costs.world;
  return step_on(work, costs, times);
}

double seconds_between(const JsonNode& node, double least, double most) {
  const double value = node.number();
  if (!(value >= least && value <= most))
    node.fail(fmt::format("expected seconds from {:g} to {:g}", least, most));
  return value;
}

Times times_of(const JsonNode& root, const Workload& work) {
  const int64_t samples = root.at("samples").integer_between(1, kMaxBatch);
  const double seconds = seconds_between(root.at("seconds"), kMinSeconds, kMaxSeconds);
  const StepWork step = step_work(work, samples);
  Times times;
  for (const JsonNode& fixed : root.at("fixed_seconds").items())
    times.push_back(operation_seconds(step, seconds, seconds_between(fixed, 0, seconds)));
  return times;
}

}  // namespace

nlohmann::json computed_steps(const std::string& path) try {
  const nlohmann::json parsed = parse_json(read_text(path), path);
  const JsonNode root(parsed, path);
  Workload work;
  work.model = root.at("model").string();
  nlohmann::json answer = work_of(work.model);
  const auto steps = root.find("steps");
  if (!steps) return answer;
  work.precision = precision_named(root.at("precision").string());
  const Times times = times_of(root, work);
  for (const JsonNode& step : steps->items()) answer["steps"].push_back(step_of(step, work, times));
  return answer;
} catch (const InputError& e) {
  throw std::invalid_argument(e.what());
}

}  // namespace howmany::benches
