// SPDX-License-Identifier: Apache-2.0
#include "core/nn/layers.h"
#include "core/nn/models/options.h"

namespace howmany::models {

ModelSpec mlp(const ModelOptions& options) {
  allow("mlp", options, {"sizes"});
  const std::vector<int64_t> widths = sizes(options, "sizes", "1024-4096-4096-1000");
  std::vector<LayerPtr> layers;
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    const bool last = i + 2 == widths.size();
    layers.push_back(
        layers::linear(widths[i], widths[i + 1], last ? Activation::none : Activation::relu));
  }
  return {.name = "mlp",
          .layer = layers::sequential(std::move(layers)),
          .sample = {widths.front()},
          .classes = widths.back()};
}

}  // namespace howmany::models
