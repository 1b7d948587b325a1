// SPDX-License-Identifier: Apache-2.0
// Arguments of operations other than tensors. Plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "core/tensor/tensor.h"

namespace howmany {

enum class Activation { none, relu, gelu, tanh };  // gelu: the exact (erf) form, torch.nn.GELU()
std::string_view name_of(Activation act);

// The target of a parameter gradient: added to if `accumulate`, else overwritten. Empty if there is
// no such parameter (no bias).
struct GradOut {
  Tensor value;
  bool accumulate = false;
};

struct Window {  // square, as in every model here
  int64_t size = 1, stride = 1, padding = 0;
};

struct Heads {
  int64_t count = 1;
  bool causal = true;  // query t attends to keys 0..t only
};

// Queries that share keys and values (Ainslie et al. 2023): each of `kv` heads of keys and values
// serves count / kv heads of queries.
struct GroupedHeads {
  int64_t count = 1, kv = 1;
};

// Sums an f64 tensor over the replicas of a model, in place, on the device of their activations.
// Collective. Each launch of a CUDA graph calls it again, so it must live as long as the model.
using SumOverReplicas = std::function<void(Tensor)>;

struct BatchNormState {
  Tensor running_mean{}, running_var{};  // [C], updated in training
  double momentum = 0.1, epsilon = 1e-5;
};

// The inputs of batch norm's backward. Below, dz is the gradient of the activation's input.
struct BatchNormBackward {
  const Tensor &x, &scale, &shift, &y, &dy, &mean, &inv_std;
  Activation act;
};

// Element e is dropped if Rng(drawn(), stream).bits(first_element + e) < p 2^32, on every backend.
struct DropoutKey {
  uint64_t seed = 0, stream = 0;
  int64_t first_element = 0;
  // If not null: memory of x's device that replaces `seed`, for a step that is captured as a CUDA
  // graph.
  const uint64_t* seed_at = nullptr;

  constexpr uint64_t drawn() const { return seed_at != nullptr ? *seed_at : seed; }
};

}  // namespace howmany
