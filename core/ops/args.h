// What operations take beside tensors. Values only; not tied to any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "core/tensor/tensor.h"

namespace howmany {

enum class Activation { none, relu, gelu, tanh };  // gelu: the exact (erf) form, torch.nn.GELU()
std::string_view name_of(Activation act);

// A parameter gradient being written: overwritten, or added to when `accumulate`. May be absent (no
// bias).
struct GradOut {
  Tensor value;
  bool accumulate = false;
};

struct Window {  // square kernels, as every model here uses them
  int64_t size = 1, stride = 1, padding = 0;
};

struct Heads {
  int64_t count = 1;
  bool causal = true;  // row t looks at rows 0..t, not at those after it
};

// Adds up an f64 tensor over the replicas of a model, in place, where their activations are.
// Collective; asked for again by each launch of a graph, so it lives as long as the model.
using SumOverReplicas = std::function<void(Tensor)>;

struct BatchNormState {
  Tensor running_mean{}, running_var{};  // [C], updated in training
  double momentum = 0.1, epsilon = 1e-5;
};

// What the backward of batch norm starts from; dz is dy past the activation.
struct BatchNormBackward {
  const Tensor &x, &scale, &shift, &y, &dy, &mean, &inv_std;
  Activation act;
};

// Element e is dropped when Rng(drawn(), stream).bits(first_element + e) < p 2^32, on every
// backend.
struct DropoutKey {
  uint64_t seed = 0, stream = 0;
  int64_t first_element = 0;
  // Beside x, what counts instead of seed: for a step that a GPU is asked for again as a whole.
  const uint64_t* seed_at = nullptr;

  constexpr uint64_t drawn() const { return seed_at != nullptr ? *seed_at : seed; }
};

}  // namespace howmany
