// SPDX-License-Identifier: Apache-2.0
// Built without cuDNN's header.
#include "core/backends/cuda/dnn/dnn.h"

namespace howmany::cuda {

bool dnn_forward(const Convolution&, const Tensor&, const Tensor&, const float*, Tensor&,
                 const OnDevice&) {
  return false;
}
bool dnn_backward_data(const Convolution&, const Tensor&, const Tensor&, Tensor&, const OnDevice&) {
  return false;
}
bool dnn_backward_filter(const Convolution&, const Tensor&, const Tensor&, Tensor&,
                         const OnDevice&) {
  return false;
}

bool dnn_attention(const Attention&, const Tensor&, Tensor&, Tensor&, const OnDevice&) {
  return false;
}
bool dnn_attention_backward(const Attention&, const Tensor&, const Tensor&, const Tensor&,
                            const Tensor&, Tensor&, const OnDevice&) {
  return false;
}

void dnn_use_tuning() {}
bool dnn_is_opened() { return false; }
std::string dnn_version() { return "built without cuDNN"; }

}  // namespace howmany::cuda
