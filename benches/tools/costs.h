// SPDX-License-Identifier: Apache-2.0
// The FLOP and the gradients of the units of a model (core/nn/units.h), without a device.
// The function is pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace howmany::benches {

// Returns {"model", "work", "units": [{"name", "forward_flop", "gradient_bytes"}]}. The FLOP are
// those of one sample; multiply and add count as two. Gradients are f32. `work` is "convolutions"
// if the model has any, else "recurrences" if it has any, else "products" (of matrices). Throws
// std::invalid_argument if `model` is not one.
nlohmann::json model_costs(const std::string& model);

}  // namespace howmany::benches
