// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/nn/models/options.h"

// Devlin et al., "BERT" (2018), with a head that classifies a text: post-norm blocks of attention
// and an MLP, and a pooler, the tanh of a layer over the first token. Structure and number of
// parameters are those of Hugging Face's BertForSequenceClassification for texts of one segment
// without padding. Differences: no dropout, and q, k and v are one layer. Weights are drawn from
// N(0, 0.02^2).
namespace howmany::models {
namespace {

constexpr double kBertDeviation = 0.02, kBertEpsilon = 1e-12;
constexpr int64_t kBertPositions = 512, kBertSegments = 2;

struct BertSizes {
  int64_t width, layers, heads;
};

LayerPtr bert_dense(int64_t in, int64_t out, Activation act = Activation::none) {
  return layers::linear(in, out, act, true, kBertDeviation);
}

// norm(x + main(x))
LayerPtr added_and_normed(std::vector<layers::Named> main, int64_t width) {
  std::vector<layers::Named> parts;
  parts.push_back(
      {"", layers::residual(layers::sequential(std::move(main)), nullptr, Activation::none)});
  parts.push_back({"ln", layers::layernorm(width, kBertEpsilon)});
  return layers::sequential(std::move(parts));
}

LayerPtr bert_block(const BertSizes& s) {
  std::vector<layers::Named> attention;
  attention.push_back({"qkv", bert_dense(s.width, 3 * s.width)});
  attention.push_back({"attention", layers::attention({.count = s.heads, .causal = false})});
  attention.push_back({"proj", bert_dense(s.width, s.width)});
  std::vector<layers::Named> mlp;
  mlp.push_back({"fc", bert_dense(s.width, 4 * s.width, Activation::gelu)});
  mlp.push_back({"proj", bert_dense(4 * s.width, s.width)});
  std::vector<layers::Named> block;
  block.push_back({"attn", added_and_normed(std::move(attention), s.width)});
  block.push_back({"mlp", added_and_normed(std::move(mlp), s.width)});
  return layers::sequential(std::move(block));
}

ModelSpec bert(const char* name, const ModelOptions& options, BertSizes s) {
  allow(name, options, {"width", "layers", "heads", "length", "vocabulary", "classes"});
  s.width = positive(options, "width", s.width);
  s.layers = positive(options, "layers", s.layers);
  s.heads = positive(options, "heads", s.heads);
  const int64_t length = positive(options, "length", 128);
  const int64_t vocabulary = positive(options, "vocabulary", 30522);
  const int64_t classes = positive(options, "classes", 2);
  HM_REQUIRE(
      s.width <= 1 << 16 && s.layers <= 1 << 10 && vocabulary <= 1 << 30 && classes <= 1 << 30,
      "[model] {} of width {}, layers {}, vocabulary {}, classes {} is out of bounds", name,
      s.width, s.layers, vocabulary, classes);
  HM_REQUIRE(s.width % s.heads == 0, "[model] {}: width {} is no multiple of {} heads", name,
             s.width, s.heads);
  HM_REQUIRE(length <= kBertPositions, "[model] {}: length {} is above the {} positions", name,
             length, kBertPositions);
  std::vector<LayerPtr> blocks;
  for (int64_t i = 0; i < s.layers; ++i) blocks.push_back(bert_block(s));
  std::vector<layers::Named> parts;
  parts.push_back({"word", layers::embedding(vocabulary, s.width, kBertDeviation)});
  parts.push_back({"position", layers::position(kBertPositions, s.width, kBertDeviation)});
  parts.push_back({"segment", layers::segment(kBertSegments, s.width, kBertDeviation)});
  parts.push_back({"ln", layers::layernorm(s.width, kBertEpsilon)});
  parts.push_back({"encoder", layers::sequential(std::move(blocks))});
  parts.push_back({"first", layers::first_token()});
  parts.push_back({"pooler", bert_dense(s.width, s.width, Activation::tanh)});
  parts.push_back({"classifier", bert_dense(s.width, classes)});
  return {.name = name,
          .layer = layers::sequential(std::move(parts)),
          .sample = {length},
          .input = Dtype::i64,
          .vocabulary = vocabulary,
          .classes = classes};
}

}  // namespace

ModelSpec bert_base(const ModelOptions& options) {
  return bert("bert_base", options, {.width = 768, .layers = 12, .heads = 12});
}

ModelSpec bert_large(const ModelOptions& options) {
  return bert("bert_large", options, {.width = 1024, .layers = 24, .heads = 16});
}

}  // namespace howmany::models
