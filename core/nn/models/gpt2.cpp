// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/nn/models/options.h"

// Radford et al., "Language models are unsupervised multitask learners": pre-norm blocks of causal
// attention and an MLP, each a residual branch. Initial values are those of the paper's code:
// weights from N(0, 0.02^2), those of the last layer of a branch scaled by 1 / sqrt(2 * layers),
// biases 0. Differences: the head has the embedding's weights only with tied=yes, gelu is exact,
// and there is no dropout. Without tied=yes, every branch is a unit, so the model may also be cut
// inside a block: wte, wpe, h.0.attn, h.0.mlp, h.1.attn, ...
namespace howmany::models {
namespace {

LayerPtr projection(int64_t in, int64_t out, double deviation) {
  return layers::linear(in, out, Activation::none, true, deviation);
}

LayerPtr added(std::vector<layers::Named> main) {
  return layers::residual(layers::sequential(std::move(main)), nullptr, Activation::none);
}

// The deviations of the initial weights: of all layers but the last of a branch, and of that.
struct Deviations {
  double first, last;
};

LayerPtr attention(int64_t width, int64_t heads, Deviations d) {
  std::vector<layers::Named> parts;
  parts.push_back({"ln", layers::layernorm(width)});
  parts.push_back({"qkv", projection(width, 3 * width, d.first)});
  parts.push_back({"attention", layers::attention({.count = heads, .causal = true})});
  parts.push_back({"proj", projection(width, width, d.last)});
  return added(std::move(parts));
}

LayerPtr mlp_of(int64_t width, Deviations d) {
  std::vector<layers::Named> parts;
  parts.push_back({"ln", layers::layernorm(width)});
  parts.push_back({"fc", layers::linear(width, 4 * width, Activation::gelu, true, d.first)});
  parts.push_back({"proj", projection(4 * width, width, d.last)});
  return added(std::move(parts));
}

LayerPtr blocks(int64_t count, int64_t width, int64_t heads, double deviation) {
  const Deviations d{deviation, deviation / std::sqrt(2 * static_cast<double>(count))};
  std::vector<LayerPtr> list;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<layers::Named> block;
    block.push_back({"attn", attention(width, heads, d)});
    block.push_back({"mlp", mlp_of(width, d)});
    list.push_back(layers::sequential(std::move(block)));
  }
  return layers::sequential(std::move(list));
}

}  // namespace

// gpt2:width=1024,layers=8,heads=16,length=1024 is the model of the GPU step-time comparisons.
ModelSpec gpt2(const ModelOptions& options) {
  allow("gpt2", options, {"width", "layers", "heads", "length", "vocabulary", "deviation", "tied"});
  const int64_t width = positive(options, "width", 256);
  const int64_t count = positive(options, "layers", 4);
  const int64_t heads = positive(options, "heads", 4);
  const int64_t length = positive(options, "length", 128);
  const int64_t vocabulary = positive(options, "vocabulary", 1000);
  const bool tied = yes_or_no(options, "tied", false);
  const double deviation = number(options, "deviation", 0.02);
  HM_REQUIRE(width <= 1 << 16 && count <= 1 << 10 && length <= 1 << 20 && vocabulary <= 1 << 30,
             "[model] gpt2 of width {}, layers {}, length {}, vocabulary {} is out of bounds",
             width, count, length, vocabulary);
  HM_REQUIRE(width % heads == 0, "[model] gpt2: width {} is no multiple of {} heads", width, heads);
  std::vector<layers::Named> parts;
  parts.push_back({"wte", layers::embedding(vocabulary, width, deviation)});
  parts.push_back({"wpe", layers::position(length, width, deviation)});
  parts.push_back({"h", blocks(count, width, heads, deviation)});
  parts.push_back({"ln_f", layers::layernorm(width)});
  if (!tied)
    parts.push_back(
        {"lm_head", layers::linear(width, vocabulary, Activation::none, false, deviation)});
  LayerPtr model = layers::sequential(std::move(parts));
  return {.name = "gpt2",
          .layer = tied ? layers::tied_head(std::move(model)) : std::move(model),
          .sample = {length},
          .input = Dtype::i64,
          .vocabulary = vocabulary,
          .classes = vocabulary,
          .labels = {length}};
}

}  // namespace howmany::models
