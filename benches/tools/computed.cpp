// SPDX-License-Identifier: Apache-2.0
#include "benches/tools/computed.h"

#include <nlohmann/json.hpp>

#include "benches/common/computed_step.h"
#include "benches/common/step_log.h"
#include "core/base/cli/number_check.h"
#include "core/base/error.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"
#include "core/tensor/precision.h"

namespace howmany::benches {
namespace {

constexpr double kLeastSeconds = 1e-9, kMostSeconds = 1e6;

nlohmann::json step_on(Workload work, int64_t batch, const CostTable& costs, double per_flop) {
  work.devices.assign(static_cast<size_t>(costs.world), Device{});
  work.global_batch = batch * costs.world;
  try {
    check_model(work.mode, make_model(work.model), costs.world);
    return {{"devices", costs.world}, {"s", computed_step_seconds(work, costs, per_flop)}};
  } catch (const std::invalid_argument& e) {
    return {{"devices", costs.world}, {"why", e.what()}};
  }
}

}  // namespace

nlohmann::json computed_steps(const std::string& path) try {
  const nlohmann::json parsed = parse_json(read_text(path), path);
  const JsonNode root(parsed, path);
  Workload work;
  work.model = root.at("model").string();
  work.mode = root.at("mode").string();
  mode_traits(work.mode);  // throws if it is unknown
  work.precision = precision_named(root.at("precision").string());
  const int64_t batch = root.at("batch_per_device").integer_between(1, kMostBatch);
  const JsonNode seconds = root.at("seconds");
  if (seconds.number() < kLeastSeconds || seconds.number() > kMostSeconds)
    seconds.fail("expected the seconds of a step");
  const double per_flop = seconds.number() / flop_of_step(work, batch);
  nlohmann::json all = nlohmann::json::array();
  for (const JsonNode& table : root.at("tables").items())
    all.push_back(step_on(work, batch, cost_table_from(table), per_flop));
  return all;
} catch (const InputError& e) {
  throw std::invalid_argument(e.what());
}

}  // namespace howmany::benches
