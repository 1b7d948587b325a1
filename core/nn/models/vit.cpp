// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/nn/models/options.h"
#include "core/nn/models/transformer.h"

// Dosovitskiy et al., "An image is worth 16x16 words": patches of the image are tokens, and the
// class is read from a token of its own. Structure and number of parameters are those of
// torchvision's vit_b_16, without dropout. Differences: the names in the blocks, and the initial
// weights, which are drawn from N(0, 0.02^2) except those of the first convolution (torchvision's
// head starts at 0).
namespace howmany::models {
namespace {

constexpr double kDeviation = 0.02, kEpsilon = 1e-6;

LayerPtr patches(int64_t width, int64_t patch) {
  LayerPtr layer = layers::conv2d(3, width, {.size = patch, .stride = patch, .padding = 0});
  const double fan_in = static_cast<double>(3 * patch * patch);
  layer->own_params()[0].init = {Init::normal, 1 / std::sqrt(fan_in)};
  layer->own_params()[1].init = {};
  return layer;
}

}  // namespace

ModelSpec vit_b_16(const ModelOptions& options) {
  allow("vit_b_16", options, {"image", "patch", "classes", "width", "layers", "heads"});
  const int64_t image = positive(options, "image", 224);
  const int64_t patch = positive(options, "patch", 16);
  const int64_t classes = positive(options, "classes", 1000);
  const int64_t width = positive(options, "width", 768);
  const int64_t count = positive(options, "layers", 12);
  const int64_t heads = positive(options, "heads", 12);
  HM_REQUIRE(image <= 1 << 12 && classes <= 1 << 30 && width <= 1 << 16 && count <= 1 << 10,
             "[model] vit_b_16 of image {}, classes {}, width {}, layers {} is out of bounds",
             image, classes, width, count);
  HM_REQUIRE(image % patch == 0, "[model] vit_b_16: image {} is no multiple of patch {}", image,
             patch);
  const int64_t tokens = 1 + (image / patch) * (image / patch);
  std::vector<layers::Named> parts;
  parts.push_back({"conv_proj", patches(width, patch)});
  parts.push_back({"class_token", layers::class_token(width)});
  parts.push_back({"pos_embedding", layers::position(tokens, width, kDeviation)});
  parts.push_back({"encoder", transformer_blocks("vit_b_16", {.count = count,
                                                              .width = width,
                                                              .heads = heads,
                                                              .causal = false,
                                                              .deviation = kDeviation,
                                                              .epsilon = kEpsilon})});
  parts.push_back({"ln", layers::layernorm(width, kEpsilon)});
  parts.push_back({"first", layers::first_token()});
  parts.push_back({"head", layers::linear(width, classes, Activation::none, true, kDeviation)});
  return {.name = "vit_b_16",
          .layer = layers::sequential(std::move(parts)),
          .sample = {image, image, 3},
          .classes = classes};
}

}  // namespace howmany::models
