// SPDX-License-Identifier: Apache-2.0
// Uses the libjpeg API of libjpeg-turbo instead of TurboJPEG, because it can decode a part of an
// image: rows above the crop are only entropy-decoded, rows below are skipped.
#include <csetjmp>
#include <cstdio>
// jpeglib.h needs size_t and FILE declared before it.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <array>

#include "core/data/images/image.h"

namespace howmany::image {
namespace {

constexpr int kMaxScans = 500;  // a progressive file with many empty scans could take hours
constexpr JDIMENSION kRowsPerCall = 16;
// Chroma is interpolated from neighbouring columns, so the crop must include them.
constexpr int64_t kUpsamplingReach = 2;

struct ErrorManager {
  jpeg_error_mgr base;  // first member: libjpeg passes a pointer to it
  std::jmp_buf jump;
  bool truncated;
};

ErrorManager& manager_of(j_common_ptr info) { return *reinterpret_cast<ErrorManager*>(info->err); }

[[noreturn]] void fail(j_common_ptr info) { std::longjmp(manager_of(info).jump, 1); }

// Returns true for warnings after which libjpeg invents pixels. Other warnings (stray bytes between
// segments, an odd JFIF version) are common in sound data.
bool damaged(int code) {
  constexpr std::array kDamage = {JWRN_JPEG_EOF, JWRN_HIT_MARKER, JWRN_HUFF_BAD_CODE,
                                  JWRN_MUST_RESYNC};
  return std::ranges::find(kDamage, code) != kDamage.end();
}

void on_message(j_common_ptr info, int level) {
  if (level >= 0 || !damaged(info->err->msg_code)) return;
  manager_of(info).truncated = info->err->msg_code == JWRN_JPEG_EOF;
  fail(info);
}

void on_progress(j_common_ptr info) {
  if (info->is_decompressor &&
      reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > kMaxScans)
    ERREXIT(info, JERR_BAD_PROGRESSION);
}

// Returns a * b / 255, rounded.
int scaled(int a, int b) {
  const int product = a * b + 128;
  return (product + (product >> 8)) >> 8;
}

// CMYK JPEGs store inverted inks, as Adobe's programs write them. The arithmetic is Pillow's.
void to_rgb(const uint8_t* inks, uint8_t* rgb) {
  const int light = inks[3];
  for (int c = 0; c < 3; ++c)
    rgb[c] = static_cast<uint8_t>(std::max(0, light - scaled(255 - inks[c], light)));
}

class JpegDecoder final : public Decoder {
 public:
  JpegDecoder() {
    info_.err = jpeg_std_error(&error_.base);
    error_.base.error_exit = fail;
    error_.base.emit_message = on_message;
    guarded([&] { jpeg_create_decompress(&info_); });
    progress_.progress_monitor = on_progress;
    info_.progress = &progress_;
  }
  ~JpegDecoder() override { jpeg_destroy_decompress(&info_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  int max_shrink() const override { return 8; }

  Size open(std::span<const uint8_t> bytes) override {
    jpeg_abort_decompress(&info_);
    guarded([&] {
      jpeg_mem_src(&info_, bytes.data(), bytes.size());
      jpeg_read_header(&info_, TRUE);
    });
    return {info_.image_width, info_.image_height};
  }

  Pixels decode(int shrink, const Region& wanted) override {
    JDIMENSION left = 0, width = 0;
    guarded([&] { start(shrink, wanted, left, width); });
    const int64_t stride = int64_t{3} * width;
    fit(pixels_, stride * wanted.height);
    if (has_inks()) fit(inks_, int64_t{4} * width * kRowsPerCall);
    guarded([&] { read(width, wanted); });
    return {pixels_.data(), stride, {left, wanted.y, width, wanted.height}};
  }

 private:
  bool has_inks() const {
    return info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
  }

  // libjpeg reports errors by longjmp, so `body` must not have objects with destructors.
  template <typename F>
  void guarded(F body) {
    error_.truncated = false;
    if (setjmp(error_.jump) == 0) {
      body();
      return;
    }
    char text[JMSG_LENGTH_MAX];
    error_.base.format_message(reinterpret_cast<j_common_ptr>(&info_), text);
    jpeg_abort_decompress(&info_);
    if (error_.truncated) throw Truncated("truncated JPEG");
    throw Error(text);
  }

  void start(int shrink, const Region& wanted, JDIMENSION& left, JDIMENSION& width) {
    info_.out_color_space = has_inks() ? JCS_CMYK : JCS_RGB;
    info_.scale_num = static_cast<unsigned>(8 / shrink);
    info_.scale_denom = 8;
    info_.do_block_smoothing = FALSE;
    jpeg_start_decompress(&info_);
    const int64_t begin = std::max<int64_t>(wanted.x - kUpsamplingReach, 0);
    const int64_t end =
        std::min<int64_t>(wanted.x + wanted.width + kUpsamplingReach, info_.output_width);
    left = static_cast<JDIMENSION>(begin);
    width = static_cast<JDIMENSION>(end - begin);
    jpeg_crop_scanline(&info_, &left, &width);
    if (wanted.y > 0) jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(wanted.y));
  }

  void read(JDIMENSION width, const Region& wanted) {
    const auto end = static_cast<JDIMENSION>(wanted.y + wanted.height);
    const size_t stride = size_t{3} * width, ink_stride = size_t{4} * width;
    while (info_.output_scanline < end) {
      const JDIMENSION first = info_.output_scanline, count = std::min(kRowsPerCall, end - first);
      uint8_t* const to = pixels_.data() + (first - static_cast<size_t>(wanted.y)) * stride;
      JSAMPROW rows[kRowsPerCall];
      for (size_t i = 0; i < count; ++i)
        rows[i] = has_inks() ? inks_.data() + i * ink_stride : to + i * stride;
      const size_t pixels = size_t{width} * jpeg_read_scanlines(&info_, rows, count);
      for (size_t i = 0; has_inks() && i < pixels; ++i) to_rgb(inks_.data() + 4 * i, to + 3 * i);
    }
    jpeg_abort_decompress(&info_);
  }

  jpeg_decompress_struct info_{};
  jpeg_progress_mgr progress_{};
  ErrorManager error_{};
  std::vector<uint8_t> pixels_;
  std::vector<uint8_t> inks_;  // some rows of CMYK
};

}  // namespace

bool is_jpeg(std::span<const uint8_t> bytes) { return has(bytes, 0, "\xff\xd8\xff"); }
std::unique_ptr<Decoder> make_jpeg_decoder() { return std::make_unique<JpegDecoder>(); }

}  // namespace howmany::image
