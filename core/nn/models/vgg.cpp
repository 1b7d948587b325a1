// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/nn/models/options.h"

// Simonyan and Zisserman, "Very deep convolutional networks for large-scale image recognition",
// with torchvision's structure, names and initial values: kaiming normal over fan_out, N(0, 0.01^2)
// in the classifier, biases 0. Differences: images are a multiple of 32 wide, and the classifier
// reads all that is left of them, where torchvision averages to 7x7 (the same at 224). Rows are
// [H,W,C], so the columns of classifier.0.weight are in another order.
namespace howmany::models {
namespace {

using Named = layers::Named;

LayerPtr conv(int64_t in, int64_t out) {
  LayerPtr layer = layers::conv2d(in, out, {3, 1, 1});
  layer->own_params()[0].init = {Init::normal, std::sqrt(2 / static_cast<double>(9 * out))};
  layer->own_params()[1].init = {};
  return layer;
}

void add(std::vector<Named>& parts, LayerPtr layer) {
  parts.push_back({fmt::format("{}", parts.size()), std::move(layer)});
}

// Convolutions per stage of configuration D, and the channels of each over those of the first.
struct Stage {
  int convolutions;
  int64_t channels;
};
constexpr Stage kVgg16[] = {{2, 1}, {2, 2}, {3, 4}, {3, 8}, {3, 8}};

LayerPtr features(int64_t width, bool batchnorm) {
  std::vector<Named> parts;
  int64_t channels = 3;
  for (const Stage& stage : kVgg16) {
    for (int i = 0; i < stage.convolutions; ++i) {
      add(parts, conv(channels, width * stage.channels));
      const int64_t out = width * stage.channels;
      add(parts, batchnorm ? layers::batchnorm(out, Activation::relu) : layers::relu());
      channels = out;
    }
    add(parts, layers::max_pool({2, 2, 0}));
  }
  return layers::sequential(std::move(parts));
}

LayerPtr classifier(int64_t in, int64_t hidden, int64_t classes, double dropout) {
  constexpr double kDeviation = 0.01;
  std::vector<Named> parts;
  for (const int64_t width : {in, hidden}) {
    add(parts, layers::linear(width, hidden, Activation::none, true, kDeviation));
    add(parts, layers::relu());
    add(parts, layers::dropout(dropout));
  }
  add(parts, layers::linear(hidden, classes, Activation::none, true, kDeviation));
  return layers::sequential(std::move(parts));
}

}  // namespace

ModelSpec vgg16(const ModelOptions& options) {
  allow("vgg16", options, {"image", "classes", "width", "dropout", "batchnorm"});
  const int64_t image = positive(options, "image", 224);
  const int64_t classes = positive(options, "classes", 1000);
  const int64_t width = positive(options, "width", 64);
  const double dropout = share(options, "dropout", 0.5);
  HM_REQUIRE(width <= 1 << 12 && image <= 1 << 12 && classes <= 1 << 30,
             "[model] vgg16 of image {}, classes {}, width {} is out of bounds", image, classes,
             width);
  HM_REQUIRE(image % 32 == 0, "[model] vgg16: image {} is no multiple of 32", image);
  const int64_t left = (image / 32) * (image / 32) * 8 * width;
  std::vector<Named> parts;
  parts.push_back({"features", features(width, yes_or_no(options, "batchnorm", false))});
  parts.push_back({"flatten", layers::flatten()});
  parts.push_back({"classifier", classifier(left, 64 * width, classes, dropout)});
  return {.name = "vgg16",
          .layer = layers::sequential(std::move(parts)),
          .sample = {image, image, 3},
          .classes = classes};
}

}  // namespace howmany::models
