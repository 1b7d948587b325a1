#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/nn/models/options.h"

// Radford et al., "Language models are unsupervised multitask learners": pre-norm blocks of causal
// attention and an MLP, each a residual branch. Differences: layers are initialized as in torch.nn,
// the head is not tied to the embedding, gelu is exact, and there is no dropout. Every branch is a
// unit, so the model may also be cut inside a block: wte, wpe, h.0.attn, h.0.mlp, h.1.attn, ...
namespace howmany::models {
namespace {

LayerPtr added(std::vector<layers::Named> main) {
  return layers::residual(layers::sequential(std::move(main)), nullptr, Activation::none);
}

LayerPtr attention(int64_t width, int64_t heads) {
  std::vector<layers::Named> parts;
  parts.push_back({"ln", layers::layernorm(width)});
  parts.push_back({"qkv", layers::linear(width, 3 * width)});
  parts.push_back({"attention", layers::attention({.count = heads, .causal = true})});
  parts.push_back({"proj", layers::linear(width, width)});
  return added(std::move(parts));
}

LayerPtr mlp_of(int64_t width) {
  std::vector<layers::Named> parts;
  parts.push_back({"ln", layers::layernorm(width)});
  parts.push_back({"fc", layers::linear(width, 4 * width, Activation::gelu)});
  parts.push_back({"proj", layers::linear(4 * width, width)});
  return added(std::move(parts));
}

LayerPtr blocks(int64_t count, int64_t width, int64_t heads) {
  std::vector<LayerPtr> list;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<layers::Named> block;
    block.push_back({"attn", attention(width, heads)});
    block.push_back({"mlp", mlp_of(width)});
    list.push_back(layers::sequential(std::move(block)));
  }
  return layers::sequential(std::move(list));
}

}  // namespace

// gpt2:width=1024,layers=8,heads=16,length=1024 is the model of the GPU step-time comparisons.
ModelSpec gpt2(const ModelOptions& options) {
  allow("gpt2", options, {"width", "layers", "heads", "length", "vocabulary"});
  const int64_t width = positive(options, "width", 256);
  const int64_t count = positive(options, "layers", 4);
  const int64_t heads = positive(options, "heads", 4);
  const int64_t length = positive(options, "length", 128);
  const int64_t vocabulary = positive(options, "vocabulary", 1000);
  HM_REQUIRE(width <= 1 << 16 && count <= 1 << 10 && length <= 1 << 20 && vocabulary <= 1 << 30,
             "[model] gpt2 of width {}, layers {}, length {}, vocabulary {} is out of bounds",
             width, count, length, vocabulary);
  HM_REQUIRE(width % heads == 0, "[model] gpt2: width {} is no multiple of {} heads", width, heads);
  std::vector<layers::Named> parts;
  parts.push_back({"wte", layers::embedding(vocabulary, width)});
  parts.push_back({"wpe", layers::position(length, width)});
  parts.push_back({"h", blocks(count, width, heads)});
  parts.push_back({"ln_f", layers::layernorm(width)});
  parts.push_back({"lm_head", layers::linear(width, vocabulary, Activation::none, false)});
  return {.name = "gpt2",
          .layer = layers::sequential(std::move(parts)),
          .sample = {length},
          .input = Dtype::i64,
          .vocabulary = vocabulary,
          .classes = vocabulary,
          .labels = {length}};
}

}  // namespace howmany::models
