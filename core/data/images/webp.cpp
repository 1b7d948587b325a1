// SPDX-License-Identifier: Apache-2.0
#include <webp/decode.h>

#include <algorithm>
#include <utility>

#include "core/data/images/image.h"

namespace howmany::image {
namespace {

constexpr size_t kHeader = 12;  // "RIFF", 4 bytes of size, "WEBP"

int64_t riff_size(std::span<const uint8_t> bytes) {
  int64_t size = 0;
  for (size_t i = 8; i-- > 4;) size = size << 8 | bytes[i];
  return size + 8;
}

void check(VP8StatusCode status) {
  if (status == VP8_STATUS_OK) return;
  if (status == VP8_STATUS_NOT_ENOUGH_DATA || status == VP8_STATUS_SUSPENDED)
    throw Truncated("truncated WebP");
  if (status == VP8_STATUS_OUT_OF_MEMORY) throw Error("out of memory");
  throw Error("damaged WebP");
}

// libwebp crops at even columns and rows, and interpolates chroma from neighbours within the crop.
std::pair<int64_t, int64_t> widened(int64_t begin, int64_t length, int64_t limit) {
  return {std::max<int64_t>(begin - 2, 0) & ~1, std::min(begin + length + 2, limit)};
}

class WebpDecoder final : public Decoder {
 public:
  int max_shrink() const override { return 1; }
  std::optional<int64_t> file_bytes() const override { return riff_size(bytes_); }

  Size open(std::span<const uint8_t> bytes) override {
    bytes_ = bytes;
    WebPBitstreamFeatures features;
    check(WebPGetFeatures(bytes.data(), bytes.size(), &features));
    HM_ENSURE(features.has_animation == 0, "animated WebP is not supported");
    return size_ = {features.width, features.height};
  }

  Pixels decode(int, const Region& wanted) override {
    const auto [left, right] = widened(wanted.x, wanted.width, size_.width);
    const auto [top, bottom] = widened(wanted.y, wanted.height, size_.height);
    const Region kept{left, top, right - left, bottom - top};
    const int64_t stride = 3 * kept.width;
    fit(pixels_, stride * kept.height);
    WebPDecoderConfig config;
    HM_ENSURE(WebPInitDecoderConfig(&config) != 0, "libwebp has another version");
    config.options.use_cropping = 1;
    config.options.crop_left = static_cast<int>(kept.x);
    config.options.crop_top = static_cast<int>(kept.y);
    config.options.crop_width = static_cast<int>(kept.width);
    config.options.crop_height = static_cast<int>(kept.height);
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA = {pixels_.data(), static_cast<int>(stride), pixels_.size()};
    check(WebPDecode(bytes_.data(), bytes_.size(), &config));
    return {pixels_.data(), stride, kept};
  }

 private:
  std::span<const uint8_t> bytes_;
  Size size_;
  std::vector<uint8_t> pixels_;
};

}  // namespace

bool is_webp(std::span<const uint8_t> bytes) {
  return bytes.size() >= kHeader && has(bytes, 0, "RIFF") && has(bytes, 8, "WEBP");
}
std::unique_ptr<Decoder> make_webp_decoder() { return std::make_unique<WebpDecoder>(); }

}  // namespace howmany::image
