// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
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

using Named = layers::Named;

std::vector<Named> basic_main(int64_t in, int64_t width, int64_t stride) {
  std::vector<Named> main;
  main.push_back({"conv1", conv(in, width, {3, stride, 1})});
  main.push_back({"bn1", layers::batchnorm(width, Activation::relu)});
  main.push_back({"conv2", conv(width, width, {3, 1, 1})});
  main.push_back({"bn2", layers::batchnorm(width)});
  return main;
}

// The stride is in the 3x3 convolution, as in torchvision ("ResNet v1.5").
std::vector<Named> bottleneck_main(int64_t in, int64_t width, int64_t stride) {
  std::vector<Named> main;
  main.push_back({"conv1", conv(in, width, {1, 1, 0})});
  main.push_back({"bn1", layers::batchnorm(width, Activation::relu)});
  main.push_back({"conv2", conv(width, width, {3, stride, 1})});
  main.push_back({"bn2", layers::batchnorm(width, Activation::relu)});
  main.push_back({"conv3", conv(width, 4 * width, {1, 1, 0})});
  main.push_back({"bn3", layers::batchnorm(4 * width)});
  return main;
}

// A kind of ResNet: its blocks, how many times as many channels as `width` one has at its end, and
// the number of blocks of each stage.
struct Depth {
  const char* name;
  std::vector<Named> (*main)(int64_t in, int64_t width, int64_t stride);
  int64_t expansion;
  std::array<int, 4> blocks;
};
constexpr Depth kResnet18 = {"resnet18", basic_main, 1, {2, 2, 2, 2}};
constexpr Depth kResnet34 = {"resnet34", basic_main, 1, {3, 4, 6, 3}};
constexpr Depth kResnet50 = {"resnet50", bottleneck_main, 4, {3, 4, 6, 3}};
constexpr Depth kResnet101 = {"resnet101", bottleneck_main, 4, {3, 4, 23, 3}};
constexpr Depth kResnet152 = {"resnet152", bottleneck_main, 4, {3, 8, 36, 3}};

LayerPtr projection(int64_t in, int64_t out, int64_t stride) {
  return layers::sequential(conv(in, out, {1, stride, 0}), layers::batchnorm(out));
}

LayerPtr block(const Depth& depth, int64_t in, int64_t width, int64_t stride) {
  const int64_t out = depth.expansion * width;
  return layers::residual(layers::sequential(depth.main(in, width, stride)),
                          in == out && stride == 1 ? nullptr : projection(in, out, stride),
                          Activation::relu);
}

ModelSpec resnet(const Depth& depth, const ModelOptions& options) {
  allow(depth.name, options, {"image", "classes", "width", "depth"});
  const int64_t image = positive(options, "image", 224);
  const int64_t classes = positive(options, "classes", 1000);
  const int64_t width = positive(options, "width", 64);
  HM_REQUIRE(width <= 1 << 16 && image <= 1 << 16 && classes <= 1 << 30,
             "[model] {} of image {}, classes {}, width {} is out of bounds", depth.name, image,
             classes, width);
  std::vector<Named> parts;
  parts.push_back({"conv1", conv(3, width, {7, 2, 3})});
  parts.push_back({"bn1", layers::batchnorm(width, Activation::relu)});
  parts.push_back({"maxpool", layers::max_pool({3, 2, 1})});
  int64_t channels = width;
  for (size_t stage = 0; stage < depth.blocks.size(); ++stage) {
    std::vector<LayerPtr> blocks;
    for (int i = 0; i < depth.blocks[stage]; ++i) {
      blocks.push_back(block(depth, channels, width << stage, i == 0 && stage > 0 ? 2 : 1));
      channels = depth.expansion * (width << stage);
    }
    parts.push_back({fmt::format("layer{}", stage + 1), layers::sequential(std::move(blocks))});
  }
  parts.push_back({"avgpool", layers::global_avg_pool()});
  parts.push_back({"fc", layers::linear(channels, classes)});
  return {.name = depth.name,
          .layer = layers::sequential(std::move(parts)),
          .sample = {image, image, 3},
          .classes = classes};
}

}  // namespace

ModelSpec resnet18(const ModelOptions& options) {
  allow("resnet18", options, {"image", "classes", "width"});
  return resnet(kResnet18, options);
}
ModelSpec resnet34(const ModelOptions& options) {
  allow("resnet34", options, {"image", "classes", "width"});
  return resnet(kResnet34, options);
}
ModelSpec resnet50(const ModelOptions& options) {
  const int64_t layers = positive(options, "depth", 50);
  HM_REQUIRE(layers == 50 || layers == 101 || layers == 152,
             "[model] resnet50: depth={}: expected 50, 101 or 152", layers);
  return resnet(layers == 50 ? kResnet50 : layers == 101 ? kResnet101 : kResnet152, options);
}

}  // namespace howmany::models
