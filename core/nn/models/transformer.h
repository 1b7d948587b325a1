// SPDX-License-Identifier: Apache-2.0
// The blocks of transformers, shared by models. Values only; not tied to any thread.
#pragma once

#include <cstdint>

#include "core/nn/layer.h"

namespace howmany::models {

struct TransformerBlocks {
  int64_t count = 1, width = 1, heads = 1;
  bool causal = false;
  double deviation = 0.02;  // of the initial weights
  double epsilon = 1e-5;    // of the layer norms
};

// Returns a chain of pre-norm blocks: x + proj(attention(qkv(ln(x)))), then x +
// proj(gelu(fc(ln(x)))), where fc is four times as wide. The weights of both proj are smaller by
// sqrt(2 * count) (Radford et al. 2019). Paths: 0.attn.ln, 0.attn.qkv, 0.attn.proj, 0.mlp.ln,
// 0.mlp.fc, 0.mlp.proj, 1.attn.ln,
// ... Throws std::invalid_argument if the width is no multiple of the heads; `model` is for the
// message.
LayerPtr transformer_blocks(const char* model, const TransformerBlocks& how);

}  // namespace howmany::models
