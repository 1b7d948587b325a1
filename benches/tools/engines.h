// SPDX-License-Identifier: Apache-2.0
// Which library computes each operation of a model on the first GPU. Call it from one thread.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace howmany::benches {

// Trains two steps of each model, in bf16 and f32. Returns {"libraries": their versions,
// "operations": [{"model", "precision", "operation", "engine"}], "fallbacks": [{"operation",
// "why"}]}: convolutions and attention, and the ones that howmany's own kernels compute because
// cuDNN has no engine. Products of matrices are cuBLASLt's. Throws std::invalid_argument if there
// is no GPU, or a model is unknown.
nlohmann::json engines_of(const std::vector<std::string>& models, int64_t batch);

}  // namespace howmany::benches
