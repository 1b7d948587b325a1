// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/nn/models/options.h"

// Touvron et al., "LLaMA" (2023), and Llama 3.2 (Meta, 2024): pre-norm blocks of causal attention
// with rotary positions and grouped heads, and a SwiGLU; RMS norms, no biases. Structure and number
// of parameters are those of Hugging Face's LlamaForCausalLM, with two differences: q, k and v are
// one layer, as are gate and up, and Llama 3.2's rotary angles are not scaled for long contexts.
// All weights are drawn from N(0, deviation^2).
namespace howmany::models {
namespace {

struct LlamaSizes {
  int64_t width = 256, layers = 4, heads = 4, kv_heads = 4, hidden = 688, length = 128,
          vocabulary = 1000;
  double base = 10000, epsilon = 1e-6;
  bool tied = false;
};

// 160m: JackFram/llama-160m. 1b and 3b: Llama 3.2. 7b and 13b: Llama 2. 8b and 70b: Llama 3.
LlamaSizes llama_sizes(const ModelOptions& options) {
  struct Published {
    std::string_view name;
    LlamaSizes sizes;
  };
  static constexpr Published kSizes[] = {
      {"160m", {768, 12, 12, 12, 3072, 1024, 32000, 10000, 1e-6, false}},
      {"1b", {2048, 16, 32, 8, 8192, 1024, 128256, 500000, 1e-5, true}},
      {"3b", {3072, 28, 24, 8, 8192, 1024, 128256, 500000, 1e-5, true}},
      {"7b", {4096, 32, 32, 32, 11008, 1024, 32000, 10000, 1e-5, false}},
      {"8b", {4096, 32, 32, 8, 14336, 1024, 128256, 500000, 1e-5, false}},
      {"13b", {5120, 40, 40, 40, 13824, 1024, 32000, 10000, 1e-5, false}},
      {"70b", {8192, 80, 64, 8, 28672, 1024, 128256, 500000, 1e-5, false}},
      {"mistral_7b", {4096, 32, 32, 8, 14336, 1024, 32000, 10000, 1e-5, false}}};
  const auto given = options.find("size");
  if (given == options.end()) return {};
  const auto* const found = std::ranges::find(kSizes, given->second, &Published::name);
  if (found != std::end(kSizes)) return found->sizes;
  std::vector<std::string_view> names;
  for (const Published& one : kSizes) names.push_back(one.name);
  throw std::invalid_argument(
      fmt::format("[model] size={}: expected one of {}", given->second, fmt::join(names, ", ")));
}

LlamaSizes read_llama(const ModelOptions& options) {
  allow("llama", options,
        {"width", "layers", "heads", "kv_heads", "hidden", "length", "vocabulary", "base",
         "deviation", "tied", "size"});
  LlamaSizes s = llama_sizes(options);
  s.width = positive(options, "width", s.width);
  s.layers = positive(options, "layers", s.layers);
  const bool grouped = s.kv_heads != s.heads;
  s.heads = positive(options, "heads", s.heads);
  s.kv_heads = positive(options, "kv_heads", grouped ? s.kv_heads : s.heads);
  s.hidden = positive(options, "hidden", s.hidden);
  s.length = positive(options, "length", s.length);
  s.vocabulary = positive(options, "vocabulary", s.vocabulary);
  s.base = number(options, "base", s.base);
  s.tied = yes_or_no(options, "tied", s.tied);
  HM_REQUIRE(s.width <= 1 << 16 && s.layers <= 1 << 10 && s.hidden <= 1 << 20 &&
                 s.length <= 1 << 20 && s.vocabulary <= 1 << 30,
             "[model] llama of width {}, layers {}, hidden {}, length {}, vocabulary {} is out of "
             "bounds",
             s.width, s.layers, s.hidden, s.length, s.vocabulary);
  HM_REQUIRE(s.width % (2 * s.heads) == 0,
             "[model] llama: width {} is no multiple of {} heads of an even size", s.width,
             s.heads);
  HM_REQUIRE(s.heads % s.kv_heads == 0, "[model] llama: {} heads are no multiple of kv_heads={}",
             s.heads, s.kv_heads);
  HM_REQUIRE(s.base > 1, "[model] llama: base={} is not above 1", s.base);
  return s;
}

class LlamaBlocks {
 public:
  LlamaBlocks(const LlamaSizes& sizes, double deviation) : s_(sizes), deviation_(deviation) {}

  LayerPtr all() const {
    std::vector<LayerPtr> list;
    for (int64_t i = 0; i < s_.layers; ++i) {
      std::vector<layers::Named> block;
      block.push_back({"attn", attention()});
      block.push_back({"mlp", mlp()});
      list.push_back(layers::sequential(std::move(block)));
    }
    return layers::sequential(std::move(list));
  }

  LayerPtr linear(int64_t in, int64_t out) const {
    return layers::linear(in, out, Activation::none, false, deviation_);
  }
  LayerPtr norm() const { return layers::rmsnorm(s_.width, s_.epsilon); }

 private:
  static LayerPtr added(std::vector<layers::Named> main) {
    return layers::residual(layers::sequential(std::move(main)), nullptr, Activation::none);
  }
  LayerPtr attention() const {
    const int64_t of_kv = s_.width / s_.heads * s_.kv_heads;
    std::vector<layers::Named> parts;
    parts.push_back({"norm", norm()});
    parts.push_back({"qkv", linear(s_.width, s_.width + 2 * of_kv)});
    parts.push_back({"rotary", layers::rotary({s_.heads, s_.kv_heads}, s_.base)});
    parts.push_back({"attention", layers::attention({.count = s_.heads, .causal = true})});
    parts.push_back({"proj", linear(s_.width, s_.width)});
    return added(std::move(parts));
  }
  LayerPtr mlp() const {
    std::vector<layers::Named> parts;
    parts.push_back({"norm", norm()});
    parts.push_back({"gate_up", linear(s_.width, 2 * s_.hidden)});
    parts.push_back({"swiglu", layers::swiglu()});
    parts.push_back({"down", linear(s_.hidden, s_.width)});
    return added(std::move(parts));
  }

  const LlamaSizes& s_;
  double deviation_;
};

}  // namespace

ModelSpec llama(const ModelOptions& options) {
  const LlamaSizes s = read_llama(options);
  const double deviation = number(options, "deviation", 0.02);
  const LlamaBlocks blocks(s, deviation);
  std::vector<layers::Named> parts;
  parts.push_back({"embed", layers::embedding(s.vocabulary, s.width, deviation)});
  parts.push_back({"layers", blocks.all()});
  parts.push_back({"norm", blocks.norm()});
  if (!s.tied) parts.push_back({"head", blocks.linear(s.width, s.vocabulary)});
  LayerPtr model = layers::sequential(std::move(parts));
  return {.name = "llama",
          .layer = s.tied ? layers::tied_head(std::move(model)) : std::move(model),
          .sample = {s.length},
          .input = Dtype::i64,
          .vocabulary = s.vocabulary,
          .classes = s.vocabulary,
          .labels = {s.length}};
}

}  // namespace howmany::models
