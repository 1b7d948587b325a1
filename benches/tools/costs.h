// SPDX-License-Identifier: Apache-2.0
// The FLOP and the gradients of the units of a model (core/nn/units.h), without a device.
// The function is pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace howmany::benches {

// Returns {"model", "work", "units": [{"name", "forward_flop", "gradient_bytes": [of each
// parameter]}]}. The FLOP are those of one sample; multiply and add count as two. Gradients are
// f32. `work` is "recurrences" if the model has any, else "convolutions" or "products" (of
// matrices): the one with more FLOP. Throws std::invalid_argument if `model` is not one.
nlohmann::json model_costs(const std::string& model);

}  // namespace howmany::benches
