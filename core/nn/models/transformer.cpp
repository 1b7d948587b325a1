// SPDX-License-Identifier: Apache-2.0
#include "core/nn/models/transformer.h"

#include <cmath>

#include "core/base/error.h"
#include "core/nn/layers.h"

namespace howmany::models {
namespace {

LayerPtr projection(int64_t in, int64_t out, double deviation) {
  return layers::linear(in, out, Activation::none, true, deviation);
}

LayerPtr added(std::vector<layers::Named> main) {
  return layers::residual(layers::sequential(std::move(main)), nullptr, Activation::none);
}

double deviation_of_proj(const TransformerBlocks& how) {
  return how.deviation / std::sqrt(2 * static_cast<double>(how.count));
}

LayerPtr attention(const TransformerBlocks& how) {
  const int64_t width = how.width;
  std::vector<layers::Named> parts;
  parts.push_back({"ln", layers::layernorm(width, how.epsilon)});
  parts.push_back({"qkv", projection(width, 3 * width, how.deviation)});
  parts.push_back({"attention", layers::attention({.count = how.heads, .causal = how.causal})});
  parts.push_back({"proj", projection(width, width, deviation_of_proj(how))});
  return added(std::move(parts));
}

LayerPtr mlp_of(const TransformerBlocks& how) {
  const int64_t width = how.width;
  std::vector<layers::Named> parts;
  parts.push_back({"ln", layers::layernorm(width, how.epsilon)});
  parts.push_back({"fc", layers::linear(width, 4 * width, Activation::gelu, true, how.deviation)});
  parts.push_back({"proj", projection(4 * width, width, deviation_of_proj(how))});
  return added(std::move(parts));
}

}  // namespace

LayerPtr transformer_blocks(const char* model, const TransformerBlocks& how) {
  HM_REQUIRE(how.width % how.heads == 0, "[model] {}: width {} is no multiple of {} heads", model,
             how.width, how.heads);
  std::vector<LayerPtr> list;
  for (int64_t i = 0; i < how.count; ++i) {
    std::vector<layers::Named> block;
    block.push_back({"attn", attention(how)});
    block.push_back({"mlp", mlp_of(how)});
    list.push_back(layers::sequential(std::move(block)));
  }
  return layers::sequential(std::move(list));
}

}  // namespace howmany::models
