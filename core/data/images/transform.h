// SPDX-License-Identifier: Apache-2.0
// Transforms a decoded image to a training sample: crops it, resamples it with the antialiased
// bilinear filter of Pillow and torchvision, normalizes it and writes [size,size,3] f32. One
// Resampler per thread; the functions are pure.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/data/images/image.h"
#include "core/tensor/rng.h"

namespace howmany::image {

// The rectangle of an image that becomes the whole sample.
struct Window {
  double x = 0, y = 0, width = 0, height = 0;  // in pixels of the image
  Region readable;  // the filter reads only this: the crop or the whole image
  bool flip = false;
};

// torchvision's RandomResizedCrop(scale 0.08 to 1, ratio 3/4 to 4/3) and RandomHorizontalFlip.
Window random_resized_crop(const Size& image, const Rng& rng);
// torchvision's Resize(size * 256 / 224) and CenterCrop(size).
Window resized_centre_crop(const Size& image, int64_t size);

// Returns the largest reduction during decoding for which the window still covers `size` pixels.
int shrink_for(const Window& window, int64_t size, int max_shrink);

// Filter taps of one axis: output i is the sum of weight[k] * input[first + k].
struct Taps {
  std::vector<int64_t> first, count;
  std::vector<float> weights;  // `stride` per output
  int64_t stride = 0;
  int64_t begin = 0, end = 0;  // inputs read by any output

  // Plans `size` outputs over [from, from + extent) of an axis. Reads only [low, high).
  void plan(double from, double extent, int64_t low, int64_t high, int64_t size);
};

class Resampler {
 public:
  // Returns the pixels that run() will read, in the image reduced by `shrink`.
  Region plan(const Window& window, int64_t size, int shrink);
  // Writes out [size,size,3]. If `normalize` is true, scales to ImageNet's mean 0 and deviation 1,
  // else to [0, 1].
  void run(const Pixels& pixels, bool normalize, float* out);

 private:
  void blend_rows(const Pixels& pixels, int64_t row);

  Taps across_, down_;
  bool flip_ = false;
  std::vector<float> line_;  // one output row before the horizontal pass, RGB
};

}  // namespace howmany::image
