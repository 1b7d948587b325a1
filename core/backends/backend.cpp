// SPDX-License-Identifier: Apache-2.0
#include "core/backends/backend.h"

namespace howmany {

std::string_view name_of(Activation act) {
  switch (act) {
    case Activation::none:
      return "none";
    case Activation::relu:
      return "relu";
    case Activation::gelu:
      return "gelu";
    case Activation::tanh:
      return "tanh";
  }
  return "?";
}

// The default of every operation that a backend does not override.
void Backend::matmul(const Tensor&, bool, const Tensor&, bool, bool, Tensor&) const {
  unsupported("matmul");
}
void Backend::linear(const Tensor&, const Tensor&, const Tensor&, Activation, Tensor&) const {
  unsupported("linear");
}
void Backend::linear_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                              Activation, Tensor&, GradOut&, GradOut&) const {
  unsupported("linear_backward");
}
void Backend::conv2d(const Tensor&, const Tensor&, const Tensor&, Window, Tensor&) const {
  unsupported("conv2d");
}
void Backend::conv2d_backward(const Tensor&, const Tensor&, const Tensor&, Window, Tensor&,
                              GradOut&, GradOut&) const {
  unsupported("conv2d_backward");
}
void Backend::activation(const Tensor&, Activation, Tensor&) const { unsupported("activation"); }
void Backend::activation_backward(const Tensor&, const Tensor&, Activation, Tensor&) const {
  unsupported("activation_backward");
}
void Backend::add(const Tensor&, const Tensor&, Activation, Tensor&) const { unsupported("add"); }
void Backend::layernorm(const Tensor&, const Tensor&, const Tensor&, double, Tensor&, Tensor&,
                        Tensor&) const {
  unsupported("layernorm");
}
void Backend::layernorm_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                 const Tensor&, Tensor&, GradOut&, GradOut&) const {
  unsupported("layernorm_backward");
}
void Backend::groupnorm(const Tensor&, int64_t, const Tensor&, const Tensor&, double, Tensor&,
                        Tensor&, Tensor&) const {
  unsupported("groupnorm");
}
void Backend::groupnorm_backward(const Tensor&, int64_t, const Tensor&, const Tensor&,
                                 const Tensor&, const Tensor&, Tensor&, GradOut&, GradOut&) const {
  unsupported("groupnorm_backward");
}
void Backend::rmsnorm(const Tensor&, const Tensor&, double, Tensor&, Tensor&) const {
  unsupported("rmsnorm");
}
void Backend::rmsnorm_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, Tensor&,
                               GradOut&) const {
  unsupported("rmsnorm_backward");
}
void Backend::swiglu(const Tensor&, Tensor&) const { unsupported("swiglu"); }
void Backend::swiglu_backward(const Tensor&, const Tensor&, Tensor&) const {
  unsupported("swiglu_backward");
}
void Backend::rotary(const Tensor&, const Tensor&, GroupedHeads, Tensor&) const {
  unsupported("rotary");
}
void Backend::rotary_backward(const Tensor&, const Tensor&, GroupedHeads, Tensor&) const {
  unsupported("rotary_backward");
}
void Backend::attention(const Tensor&, Heads, Tensor&, Tensor&) const { unsupported("attention"); }
void Backend::attention_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, Heads,
                                 Tensor&) const {
  unsupported("attention_backward");
}
void Backend::max_pool(const Tensor&, Window, Tensor&, Tensor&) const { unsupported("max_pool"); }
void Backend::max_pool_backward(const Tensor&, const Tensor&, Window, Tensor&) const {
  unsupported("max_pool_backward");
}
void Backend::avg_pool(const Tensor&, Window, Tensor&) const { unsupported("avg_pool"); }
void Backend::avg_pool_backward(const Tensor&, Window, Tensor&) const {
  unsupported("avg_pool_backward");
}
void Backend::embedding(const Tensor&, const Tensor&, int64_t, Tensor&) const {
  unsupported("embedding");
}
void Backend::embedding_backward(const Tensor&, const Tensor&, int64_t, GradOut&) const {
  unsupported("embedding_backward");
}
void Backend::dropout(const Tensor&, double, DropoutKey, Tensor&) const { unsupported("dropout"); }
Tensor Backend::softmax_cross_entropy(const Tensor&, const Tensor&, double, Tensor&) const {
  unsupported("softmax_cross_entropy");
}
void Backend::cross_entropy_part(const Tensor&, const Tensor&, int64_t, Tensor&) const {
  unsupported("cross_entropy_part");
}
Tensor Backend::cross_entropy_of_parts(const Tensor&, const Tensor&, int64_t, const Tensor&, double,
                                       Tensor&) const {
  unsupported("cross_entropy_of_parts");
}
Tensor Backend::mse(const Tensor&, const Tensor&, double, Tensor&) const { unsupported("mse"); }
void Backend::sgd(std::span<SgdParam>, const SgdArgs&) const { unsupported("sgd"); }
void Backend::adam(std::span<AdamParam>, const AdamArgs&) const { unsupported("adam"); }
void Backend::axpy(double, const Tensor&, Tensor&) const { unsupported("axpy"); }

}  // namespace howmany
