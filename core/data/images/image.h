// SPDX-License-Identifier: Apache-2.0
// Decodes image files in memory to 8-bit RGB.
//
// Cost. Decoding dominates the cost of a training sample. So a decoder reconstructs only the
//   requested region, and JPEGs at a fraction of their size if that suffices.
// Formats. Grey, palette and alpha images become RGB. Alpha is dropped; 16 bits lose the low 8.
//   EXIF orientation is ignored, as in torchvision's default loader. CMYK becomes RGB as in Pillow.
// Thread safety. A decoder reuses its buffers and serves one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace howmany::image {

struct Size {
  int64_t width = 0, height = 0;
};

struct Region {
  int64_t x = 0, y = 0, width = 0, height = 0;
};

// Rows of interleaved RGB in the decoder's memory, valid until its next call.
struct Pixels {
  const uint8_t* data = nullptr;  // of pixel (region.x, region.y)
  int64_t stride = 0;             // bytes between rows
  Region region;
};

// Thrown if the bytes end before the image does.
class Truncated : public Error {
 public:
  using Error::Error;
};

// Resizes a reused buffer. Frees the excess memory of an unusually large image.
void fit(std::vector<uint8_t>& buffer, int64_t bytes);

// Returns true if the last bytes of a file contain the end marker of an image.
bool ends_as_image(std::span<const uint8_t> bytes);

// All failures throw Error with only the reason ("truncated JPEG").
class Decoder {
 public:
  virtual ~Decoder() = default;
  // Reads the header. `bytes` must stay valid until decode() returns. If decode() is not called,
  // they may end after the header.
  virtual Size open(std::span<const uint8_t> bytes) = 0;
  // Returns pixels that cover at least `wanted`, in coordinates of the image reduced by `shrink`.
  // `shrink` is 1, 2, 4 or 8, at most max_shrink(). `wanted` must be within ceil(size / shrink).
  // Call it once per open().
  virtual Pixels decode(int shrink, const Region& wanted) = 0;
  virtual int max_shrink() const = 0;
  // After open(): returns the size of the whole file, if the header states it.
  virtual std::optional<int64_t> file_bytes() const { return {}; }
};

// One line per format: X(name, "extensions"). A format is a line here and a file that defines
// is_<name>(), which looks at the first bytes, and make_<name>_decoder().
#define HM_IMAGE_FORMATS(X) \
  X(jpeg, "jpg jpeg")       \
  X(png, "png")             \
  X(webp, "webp")

#define X(name, extensions)                       \
  bool is_##name(std::span<const uint8_t> bytes); \
  std::unique_ptr<Decoder> make_##name##_decoder();
HM_IMAGE_FORMATS(X)
#undef X

// Returns true for an extension, without its dot and in any case, of one of the formats.
bool is_image_extension(std::string_view extension);
// Returns true if `bytes` holds `text` at that offset.
bool has(std::span<const uint8_t> bytes, size_t offset, std::string_view text);

// Chooses the decoder by the first bytes of the file, not by its name.
class AnyDecoder {
 public:
  // Throws as Decoder::open(). Also throws Error if the format is unknown, or the image has more
  // than max_pixels.
  Size open(std::span<const uint8_t> bytes, int64_t max_pixels);
  Pixels decode(int shrink, const Region& wanted) { return opened_->decode(shrink, wanted); }
  int max_shrink() const { return opened_->max_shrink(); }
  std::optional<int64_t> file_bytes() const { return opened_->file_bytes(); }

 private:
#define X(name, extensions) std::unique_ptr<Decoder> name##_ = make_##name##_decoder();
  HM_IMAGE_FORMATS(X)
#undef X
  Decoder* opened_ = nullptr;
};

}  // namespace howmany::image
