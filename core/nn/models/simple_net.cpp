// SPDX-License-Identifier: Apache-2.0
#include "core/nn/layers.h"
#include "core/nn/models/options.h"

namespace howmany::models {

ModelSpec simple_net(const ModelOptions& options) {
  allow("simple_net", options, {});
  return {.name = "simple_net", .layer = layers::linear(10, 2), .sample = {10}, .classes = 2};
}

}  // namespace howmany::models
