// SPDX-License-Identifier: Apache-2.0
#include "benches/tools/costs.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/nn/model.h"
#include "core/nn/units.h"

namespace howmany::benches {
namespace {

const char* work_of(const Layer& layer) {
  const std::string text = layer.describe();
  if (text.find("conv2d(") != std::string::npos) return "convolutions";
  return text.find("rnn(") != std::string::npos ? "recurrences" : "products";
}

}  // namespace

nlohmann::json model_costs(const std::string& model) {
  const ModelSpec spec = make_model(model);
  nlohmann::json list = nlohmann::json::array();
  std::map<std::string, double> flop;  // of each kind of work
  Shape x = with_rows_in_front(1, spec.sample);
  for (const Unit& unit : units(*spec.layer)) {
    const double forward = unit.layer->forward_flop(x);
    std::vector<int64_t> bytes;
    for (const Param* p : trainable_params(*unit.layer)) bytes.push_back(4 * p->shape.numel());
    flop[work_of(*unit.layer)] += forward;
    list.push_back({{"name", unit.path}, {"forward_flop", forward}, {"gradient_bytes", bytes}});
    x = unit.layer->output_shape(x);
  }
  const char* const larger = flop["convolutions"] > flop["products"] ? "convolutions" : "products";
  const char* const work = flop.contains("recurrences") ? "recurrences" : larger;
  return {{"model", model}, {"work", work}, {"units", list}};
}

}  // namespace howmany::benches
