// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <stdexcept>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/nn/models/options.h"
#include "core/nn/models/transformer.h"

// Radford et al., "Language models are unsupervised multitask learners": pre-norm blocks of causal
// attention and an MLP, each a residual branch. Initial values are those of the paper's code:
// weights from N(0, 0.02^2), those of the last layer of a branch scaled by 1 / sqrt(2 * layers),
// biases 0. Differences: the head has the embedding's weights only with tied=yes, gelu is exact,
// and there is no dropout. Without tied=yes, every branch is a unit, so the model may also be cut
// inside a block: wte, wpe, h.0.attn, h.0.mlp, h.1.attn, ... The published sizes have tied=yes.
namespace howmany::models {
namespace {

struct Gpt2Defaults {
  int64_t width = 256, layers = 4, heads = 4, length = 128, vocabulary = 1000;
  bool tied = false;
};

// Returns the sizes of a published model, or of a small one.
Gpt2Defaults defaults_of(const ModelOptions& options) {
  struct Published {
    const char* name;
    int64_t width, layers, heads;
  };
  constexpr Published kSizes[] = {{"small", 768, 12, 12},
                                  {"medium", 1024, 24, 16},
                                  {"large", 1280, 36, 20},
                                  {"xl", 1600, 48, 25}};
  const auto given = options.find("size");
  if (given == options.end()) return {};
  for (const Published& one : kSizes)
    if (given->second == one.name) return {one.width, one.layers, one.heads, 1024, 50257, true};
  throw std::invalid_argument(
      fmt::format("[model] size={}: expected small, medium, large or xl", given->second));
}

}  // namespace

// gpt2:width=1024,layers=8,heads=16,length=1024 is the model of the GPU step-time comparisons.
ModelSpec gpt2(const ModelOptions& options) {
  allow("gpt2", options,
        {"width", "layers", "heads", "length", "vocabulary", "deviation", "tied", "size"});
  const Gpt2Defaults usual = defaults_of(options);
  const int64_t width = positive(options, "width", usual.width);
  const int64_t count = positive(options, "layers", usual.layers);
  const int64_t heads = positive(options, "heads", usual.heads);
  const int64_t length = positive(options, "length", usual.length);
  const int64_t vocabulary = positive(options, "vocabulary", usual.vocabulary);
  const bool tied = yes_or_no(options, "tied", usual.tied);
  const double deviation = number(options, "deviation", 0.02);
  HM_REQUIRE(width <= 1 << 16 && count <= 1 << 10 && length <= 1 << 20 && vocabulary <= 1 << 30,
             "[model] gpt2 of width {}, layers {}, length {}, vocabulary {} is out of bounds",
             width, count, length, vocabulary);
  std::vector<layers::Named> parts;
  parts.push_back({"wte", layers::embedding(vocabulary, width, deviation)});
  parts.push_back({"wpe", layers::position(length, width, deviation)});
  parts.push_back({"h", transformer_blocks("gpt2", {.count = count,
                                                    .width = width,
                                                    .heads = heads,
                                                    .causal = true,
                                                    .deviation = deviation})});
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
