// SPDX-License-Identifier: Apache-2.0
#include <png.h>

#include <algorithm>
#include <cstring>

#include "core/data/images/image.h"

namespace howmany::image {
namespace {

class PngDecoder final : public Decoder {
 public:
  PngDecoder() = default;
  ~PngDecoder() override { close(); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  int max_shrink() const override { return 1; }

  Size open(std::span<const uint8_t> bytes) override {
    close();
    rest_ = bytes;
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    info_ = png_ != nullptr ? png_create_info_struct(png_) : nullptr;
    HM_ENSURE(info_ != nullptr, "out of memory");
    guarded([&] { read_info(); });
    return {png_get_image_width(png_, info_), png_get_image_height(png_, info_)};
  }

  Pixels decode(int, const Region& wanted) override {
    int passes = 0;
    guarded([&] { passes = start(); });
    const auto stride = static_cast<int64_t>(png_get_rowbytes(png_, info_));
    const auto height = static_cast<int64_t>(png_get_image_height(png_, info_));
    // An interlaced image is complete only after its last pass.
    const Region kept = passes > 1 ? Region{0, 0, stride / 3, height}
                                   : Region{0, wanted.y, stride / 3, wanted.height};
    fit(pixels_, stride * kept.height);
    guarded([&] { read(passes, stride, kept, height); });
    read_end();
    close();
    return {pixels_.data(), stride, kept};
  }

 private:
  static void on_error(png_structp png, png_const_charp text) {
    auto& self = *static_cast<PngDecoder*>(png_get_error_ptr(png));
    std::snprintf(self.text_, sizeof self.text_, "%s", text);
    png_longjmp(png, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}

  static void on_read(png_structp png, png_bytep out, size_t count) {
    auto& self = *static_cast<PngDecoder*>(png_get_io_ptr(png));
    if (count > self.rest_.size()) {
      self.truncated_ = true;
      png_error(png, "truncated PNG");
    }
    std::memcpy(out, self.rest_.data(), count);
    self.rest_ = self.rest_.subspan(count);
  }

  // libpng reports errors by longjmp, so `body` must not have objects with destructors.
  template <typename F>
  void guarded(F body) {
    truncated_ = false;
    if (setjmp(png_jmpbuf(png_)) == 0) {
      body();
      return;
    }
    close();
    if (truncated_) throw Truncated(text_);
    throw Error(text_);
  }

  void read_info() {
    png_set_read_fn(png_, this, on_read);
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // the caller limits pixels
    // Skips colour profiles, gamma and comments, which are not used.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_read_info(png_, info_);
  }

  int start() {
    png_set_expand(png_);
    png_set_strip_16(png_);
    png_set_gray_to_rgb(png_);
    png_set_strip_alpha(png_);
    const int passes = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return passes;
  }

  // Other rows than `kept` are read too: the checksum that reveals damage is behind the last row.
  void read(int passes, int64_t stride, const Region& kept, int64_t height) {
    for (int pass = 0; pass < passes; ++pass)
      for (int64_t y = 0; y < height; ++y) {
        const bool wanted = y >= kept.y && y < kept.y + kept.height;
        png_read_row(png_, wanted ? pixels_.data() + (y - kept.y) * stride : nullptr, nullptr);
      }
  }

  // The pixels are complete even if the file ends here, as in Pillow.
  void read_end() {
    try {
      guarded([&] { png_read_end(png_, nullptr); });
    } catch (const Truncated&) {
    }
  }

  void close() { png_destroy_read_struct(&png_, &info_, nullptr); }

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::span<const uint8_t> rest_;
  std::vector<uint8_t> pixels_;
  bool truncated_ = false;
  char text_[128] = {};
};

}  // namespace

bool is_png(std::span<const uint8_t> bytes) { return has(bytes, 0, "\x89PNG\r\n\x1a\n"); }
std::unique_ptr<Decoder> make_png_decoder() { return std::make_unique<PngDecoder>(); }

}  // namespace howmany::image
