// SPDX-License-Identifier: Apache-2.0
// The memory of attention on meta devices (core/tensor/meta.h). By default that of a fused kernel
// (Dao et al. 2022), which keeps no scores.
#pragma once

#include <vector>

#include "core/ops/ops.h"

namespace howmany {

struct AttentionMemory {
  bool eager = false;    // the probabilities are kept from forward to backward
  bool dropout = false;  // and dropout's mask and result
};

// Sets it for the process. Call it before a model runs.
void set_attention_memory(AttentionMemory how);

// Returns the tensors that eager attention keeps for `qkv`; empty if not eager or not on a meta
// device.
std::vector<Tensor> kept_by_attention(const Tensor& qkv, Heads heads);
// Returns those that its backward pass needs at once besides: gradients of scores and
// probabilities.
std::vector<Tensor> needed_by_attention(const Tensor& qkv, Heads heads);

}  // namespace howmany
