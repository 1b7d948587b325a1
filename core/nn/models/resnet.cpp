// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/nn/models/options.h"

// He et al., "Deep residual learning for image recognition", with torchvision's structure, names
// and initialization (kaiming normal over fan_out). So checkpoints and results are comparable.
namespace howmany::models {
namespace {

LayerPtr conv(int64_t in, int64_t out, Window window) {
  LayerPtr layer = layers::conv2d(in, out, window, /*bias=*/false);
  const double fan_out = static_cast<double>(out * window.size * window.size);
  layer->own_params()[0].init = {Init::normal, std::sqrt(2 / fan_out)};
  return layer;
}

std::vector<layers::Named> basic_main(int64_t in, int64_t out, int64_t stride) {
  std::vector<layers::Named> main;
  main.push_back({"conv1", conv(in, out, {3, stride, 1})});
  main.push_back({"bn1", layers::batchnorm(out, Activation::relu)});
  main.push_back({"conv2", conv(out, out, {3, 1, 1})});
  main.push_back({"bn2", layers::batchnorm(out)});
  return main;
}

LayerPtr projection(int64_t in, int64_t out, int64_t stride) {
  std::vector<LayerPtr> parts;
  parts.push_back(conv(in, out, {1, stride, 0}));
  parts.push_back(layers::batchnorm(out));
  return layers::sequential(std::move(parts));
}

LayerPtr basic_block(int64_t in, int64_t out, int64_t stride) {
  const bool same = in == out && stride == 1;
  return layers::residual(layers::sequential(basic_main(in, out, stride)),
                          same ? nullptr : projection(in, out, stride), Activation::relu);
}

LayerPtr stage(int64_t in, int64_t out, int64_t stride) {
  std::vector<LayerPtr> blocks;
  blocks.push_back(basic_block(in, out, stride));
  blocks.push_back(basic_block(out, out, 1));
  return layers::sequential(std::move(blocks));
}

}  // namespace

ModelSpec resnet18(const ModelOptions& options) {
  allow("resnet18", options, {"image", "classes", "width"});
  const int64_t image = positive(options, "image", 224);
  const int64_t classes = positive(options, "classes", 1000);
  const int64_t width = positive(options, "width", 64);
  HM_REQUIRE(width <= 1 << 16 && image <= 1 << 16 && classes <= 1 << 30,
             "[model] resnet18 of image {}, classes {}, width {} is out of bounds", image, classes,
             width);
  std::vector<layers::Named> parts;
  parts.push_back({"conv1", conv(3, width, {7, 2, 3})});
  parts.push_back({"bn1", layers::batchnorm(width, Activation::relu)});
  parts.push_back({"maxpool", layers::max_pool({3, 2, 1})});
  parts.push_back({"layer1", stage(width, width, 1)});
  parts.push_back({"layer2", stage(width, 2 * width, 2)});
  parts.push_back({"layer3", stage(2 * width, 4 * width, 2)});
  parts.push_back({"layer4", stage(4 * width, 8 * width, 2)});
  parts.push_back({"avgpool", layers::global_avg_pool()});
  parts.push_back({"fc", layers::linear(8 * width, classes)});
  return {.name = "resnet18",
          .layer = layers::sequential(std::move(parts)),
          .sample = {image, image, 3},
          .classes = classes};
}

}  // namespace howmany::models
