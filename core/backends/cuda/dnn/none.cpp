// SPDX-License-Identifier: Apache-2.0
// Built without cuDNN's header.
#include <atomic>

#include "core/backends/cuda/dnn/dnn.h"
#include "core/gpu/fallbacks.h"

namespace howmany::cuda {
namespace {

std::atomic<bool> dnn_was_asked = false;

bool without_dnn() {
  dnn_was_asked = true;
  return false;
}

}  // namespace

bool dnn_forward(const Convolution&, const Tensor&, const Tensor&, const float*, Tensor&,
                 const OnDevice&) {
  return without_dnn();
}
bool dnn_backward_data(const Convolution&, const Tensor&, const Tensor&, Tensor&, const OnDevice&) {
  return without_dnn();
}
bool dnn_backward_filter(const Convolution&, const Tensor&, const Tensor&, Tensor&,
                         const OnDevice&) {
  return without_dnn();
}

bool dnn_attention(const Attention&, const Tensor&, Tensor&, Tensor&, const OnDevice&) {
  return without_dnn();
}
bool dnn_attention_backward(const Attention&, const Tensor&, const Tensor&, const Tensor&,
                            const Tensor&, Tensor&, const OnDevice&) {
  return without_dnn();
}

void dnn_use_tuning() {}
bool dnn_is_opened() { return false; }
std::string dnn_version() { return "built without cuDNN"; }

}  // namespace howmany::cuda

namespace howmany::gpu {

std::vector<Fallback> fallbacks() {
  if (!cuda::dnn_was_asked) return {};
  return {{"convolutions and attention", "built without cuDNN"}};
}

std::vector<EngineChoice> engines() { return {}; }

}  // namespace howmany::gpu
