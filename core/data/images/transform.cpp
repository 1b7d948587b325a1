// SPDX-License-Identifier: Apache-2.0
#include "core/data/images/transform.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace howmany::image {
namespace {

constexpr int kCropAttempts = 10;
constexpr int64_t kChannels = 3;
constexpr std::array<double, kChannels> kMean = {0.485, 0.456, 0.406};
constexpr std::array<double, kChannels> kDeviation = {0.229, 0.224, 0.225};

// Four floats per operation; a pixel uses three.
using Float4 [[gnu::vector_size(16)]] = float;

Float4 load(const float* from) {
  Float4 v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

Window crop(int64_t x, int64_t y, int64_t width, int64_t height) {
  const auto real = [](int64_t v) { return static_cast<double>(v); };
  return {real(x), real(y), real(width), real(height), {x, y, width, height}, false};
}

// torchvision's fallback if no attempt fits: the largest centred crop of an allowed ratio.
Window fallback_crop(const Size& image) {
  const auto [w, h] = image;
  const double ratio = static_cast<double>(w) / static_cast<double>(h);
  const auto round_to = [](double v) { return std::max<int64_t>(std::llround(v), 1); };
  const int64_t width = ratio > 4.0 / 3 ? round_to(static_cast<double>(h) * 4 / 3) : w;
  const int64_t height = ratio < 3.0 / 4 ? round_to(static_cast<double>(w) * 4 / 3) : h;
  return crop((w - width) / 2, (h - height) / 2, width, height);
}

// dst[i] (+)= weight * src[i]
template <bool kAdd>
void weigh(const uint8_t* src, float weight, int64_t n, float* __restrict dst) {
  for (int64_t i = 0; i < n; ++i)
    dst[i] = (kAdd ? dst[i] : 0) + weight * static_cast<float>(src[i]);
}

}  // namespace

Window random_resized_crop(const Size& image, const Rng& rng) {
  const auto [w, h] = image;
  const double area = static_cast<double>(w) * static_cast<double>(h);
  const double low = std::log(3.0 / 4), high = std::log(4.0 / 3);
  const bool flip = rng.uniform(4 * kCropAttempts) < 0.5;
  Window window = fallback_crop(image);
  for (uint64_t attempt = 0; attempt < kCropAttempts; ++attempt) {
    const uint64_t draw = 4 * attempt;
    const double target = area * (0.08 + 0.92 * rng.uniform(draw));
    const double aspect = std::exp(low + (high - low) * rng.uniform(draw + 1));
    const int64_t width = std::llround(std::sqrt(target * aspect));
    const int64_t height = std::llround(std::sqrt(target / aspect));
    if (width < 1 || width > w || height < 1 || height > h) continue;
    window = crop(rng.below(draw + 3, w - width + 1), rng.below(draw + 2, h - height + 1), width,
                  height);
    break;
  }
  window.flip = flip;
  return window;
}

Window resized_centre_crop(const Size& image, int64_t size) {
  const auto [w, h] = image;
  const int64_t shorter = size * 256 / 224;
  const int64_t resized_w = w <= h ? shorter : shorter * w / h;
  const int64_t resized_h = w <= h ? shorter * h / w : shorter;
  // Rounds half to even, as Python does.
  const double left = std::nearbyint(static_cast<double>(resized_w - size) / 2);
  const double top = std::nearbyint(static_cast<double>(resized_h - size) / 2);
  const double per_x = static_cast<double>(w) / static_cast<double>(resized_w);
  const double per_y = static_cast<double>(h) / static_cast<double>(resized_h);
  const auto side = static_cast<double>(size);
  return {left * per_x, top * per_y, side * per_x, side * per_y, {0, 0, w, h}, false};
}

int shrink_for(const Window& window, int64_t size, int max_shrink) {
  const double ratio = std::min(window.width, window.height) / static_cast<double>(size);
  int shrink = 1;
  while (shrink * 2 <= max_shrink && ratio >= shrink * 2) shrink *= 2;
  return shrink;
}

void Taps::plan(double from, double extent, int64_t low, int64_t high, int64_t size) {
  const double step = extent / static_cast<double>(size);
  const double reach = std::max(step, 1.0);
  stride = static_cast<int64_t>(std::ceil(2 * reach)) + 1;
  const auto outputs = static_cast<size_t>(size);
  first.resize(outputs);
  count.resize(outputs);
  weights.resize(outputs * static_cast<size_t>(stride));
  begin = high;
  end = low;
  for (size_t i = 0; i < outputs; ++i) {
    const double centre = from + (static_cast<double>(i) + 0.5) * step;
    first[i] = std::clamp(static_cast<int64_t>(std::floor(centre - reach + 0.5)), low, high - 1);
    const int64_t last =
        std::clamp(static_cast<int64_t>(std::floor(centre + reach + 0.5)), first[i] + 1, high);
    count[i] = std::min(last - first[i], stride);
    float* const weight = weights.data() + static_cast<int64_t>(i) * stride;
    double sum = 0;
    for (int64_t k = 0; k < count[i]; ++k) {
      const double distance = std::abs(static_cast<double>(first[i] + k) + 0.5 - centre) / reach;
      const double value = std::max(1 - distance, 0.0);
      weight[k] = static_cast<float>(value);
      sum += value;
    }
    if (sum <= 0) weight[0] = 1, count[i] = 1, sum = 1;
    for (int64_t k = 0; k < count[i]; ++k) weight[k] /= static_cast<float>(sum);
    begin = std::min(begin, first[i]);
    end = std::max(end, first[i] + count[i]);
  }
}

Region Resampler::plan(const Window& window, int64_t size, int shrink) {
  const auto& may = window.readable;
  const auto up = [&](int64_t v) { return (v + shrink - 1) / shrink; };
  across_.plan(window.x / shrink, window.width / shrink, may.x / shrink, up(may.x + may.width),
               size);
  down_.plan(window.y / shrink, window.height / shrink, may.y / shrink, up(may.y + may.height),
             size);
  flip_ = window.flip;
  return {across_.begin, down_.begin, across_.end - across_.begin, down_.end - down_.begin};
}

// Blends rows first, because these sums read memory contiguously for any number of taps.
void Resampler::blend_rows(const Pixels& pixels, int64_t row) {
  const auto i = static_cast<size_t>(row);
  const int64_t n = (across_.end - across_.begin) * kChannels;
  const float* const weight = down_.weights.data() + row * down_.stride;
  const uint8_t* source = pixels.data + (down_.first[i] - pixels.region.y) * pixels.stride +
                          (across_.begin - pixels.region.x) * kChannels;
  weigh<false>(source, weight[0], n, line_.data());
  for (int64_t k = 1; k < down_.count[i]; ++k)
    weigh<true>(source + k * pixels.stride, weight[k], n, line_.data());
}

void Resampler::run(const Pixels& pixels, bool normalize, float* out) {
  Float4 scale{}, shift{};
  for (int c = 0; c < kChannels; ++c) {
    scale[c] = static_cast<float>(1 / (255 * (normalize ? kDeviation[c] : 1)));
    shift[c] = static_cast<float>(normalize ? -kMean[c] / kDeviation[c] : 0);
  }
  const auto size = static_cast<int64_t>(across_.first.size());
  line_.resize(static_cast<size_t>((across_.end - across_.begin) * kChannels + 1));
  for (int64_t row = 0; row < size; ++row, out += size * kChannels) {
    blend_rows(pixels, row);
    for (int64_t i = 0; i < size; ++i) {
      const auto column = static_cast<size_t>(flip_ ? size - 1 - i : i);
      const float* const weight =
          across_.weights.data() + static_cast<int64_t>(column) * across_.stride;
      const float* const source =
          line_.data() + (across_.first[column] - across_.begin) * kChannels;
      Float4 sum{};
      for (int64_t k = 0; k < across_.count[column]; ++k)
        sum += weight[k] * load(source + k * kChannels);
      const Float4 pixel = sum * scale + shift;
      std::memcpy(out + i * kChannels, &pixel, kChannels * sizeof(float));
    }
  }
}

}  // namespace howmany::image
