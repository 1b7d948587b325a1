// SPDX-License-Identifier: Apache-2.0
// Models. Each is a function that maps options to a ModelSpec: a layer and its input format. A
// model is one file in core/nn/models plus its line here.
//
//   ModelSpec m = make_model("mlp:sizes=64-32-10");
//   materialize(*m.layer, {.device = {}, .seed = 1});
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/text/names.h"
#include "core/base/text/options.h"
#include "core/nn/layer.h"
#include "core/nn/loss.h"

namespace howmany {

// One line per model: X(name, "description; options with defaults").
#define HM_MODELS(X)                                                                               \
  X(simple_net, "Linear 10->2: the smallest model that trains")                                    \
  X(mlp, "linear and relu layers; sizes=1024-4096-4096-1000")                                      \
  X(resnet18, "ResNet-18 (He et al. 2015); image=224, classes=1000, width=64")                     \
  X(resnet34, "ResNet-34; image=224, classes=1000, width=64")                                      \
  X(resnet50, "ResNet-50 (v1.5); image=224, classes=1000, width=64, depth=50, 101, 152")           \
  X(vgg16, "VGG-16 (Simonyan 2014); image=224, classes=1000, width=64, dropout=0.5, batchnorm=no") \
  X(vit_b_16,                                                                                      \
    "ViT-B/16 (Dosovitskiy 2020); image=224, patch=16, classes=1000, width=768, layers=12, "       \
    "heads=12")                                                                                    \
  X(bert_base,                                                                                     \
    "BERT that classifies texts (Devlin 2018); width=768, layers=12, heads=12, length=128, "       \
    "vocabulary=30522, classes=2")                                                                 \
  X(bert_large, "the same; width=1024, layers=24, heads=16")                                       \
  X(llama,                                                                                         \
    "tokens to the next ones (Llama); width=256, layers=4, heads=4, kv_heads=heads, hidden=688, "  \
    "length=128, vocabulary=1000, base=10000 (of rotary angles), deviation=0.02, tied=no; or a "   \
    "published size=160m, 1b, 3b (Llama 3.2), 7b, 13b (2), 8b, 70b (3), mistral_7b")               \
  X(embedding_rnn, "words to a class; vocabulary, length, width, hidden, classes")                 \
  X(gpt2,                                                                                          \
    "tokens to the next ones (GPT-2); width=256, layers=4, heads=4, length=128, vocabulary=1000, " \
    "deviation=0.02 (of initial weights), tied=no (head and embedding); or a published "           \
    "size=small, medium, large, xl")

struct ModelSpec {
  std::string name;
  LayerPtr layer{};
  Shape sample{};  // of one input, without the batch extent: [1024], [224,224,3]
  Dtype input = Dtype::f32;
  int64_t vocabulary = 0;  // i64 inputs are ids in [0, vocabulary)
  int64_t classes = 0;     // outputs per sample, or per label if a sample has several
  Shape labels = {};       // of one sample: [] for one class, [1024] for one label per token
  Loss loss = Loss::softmax_cross_entropy;
};

using ModelOptions = Options;

std::vector<std::string_view> model_names();
// Parses "name" or "name:key=value,key=value". Case, "-" and "_" do not matter in the name. Other
// names: resnet101, resnet152, vgg16_bn, vit_l_16, mistral, gpt2_SIZE and llama_SIZE. Throws
// std::invalid_argument if the name (the nearest is suggested) or a key is unknown.
ModelSpec make_model(std::string_view text);

namespace models {
#define X(name, what) ModelSpec name(const ModelOptions& options);
HM_MODELS(X)
#undef X
}  // namespace models

}  // namespace howmany
