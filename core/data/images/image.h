// Decoding JPEG and PNG files held in memory to 8-bit RGB. Only the part of the image that is asked
// for is reconstructed, JPEGs at a fraction of their size when that is enough: most of the cost of
// a training sample is here. A decoder keeps its buffers between images and serves one thread.
// Grey, palette and alpha images become RGB (alpha is dropped, 16 bits lose the low 8) and EXIF
// orientation is not applied, as in torchvision's default loader; CMYK and YCCK are refused.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/error.h"

namespace howmany::image {

struct Size {
  int64_t width = 0, height = 0;
};

struct Region {
  int64_t x = 0, y = 0, width = 0, height = 0;
};

// Rows of interleaved RGB in the decoder's memory, good until its next call.
struct Pixels {
  const uint8_t* data = nullptr;  // of pixel (region.x, region.y)
  int64_t stride = 0;             // bytes from a row to the next
  Region region;
};

// The bytes end before the image does.
class Truncated : public Error {
 public:
  using Error::Error;
};

// Sizes a reused buffer, giving back what one unusually large image had needed.
void fit(std::vector<uint8_t>& buffer, int64_t bytes);

// Whether the last bytes of a file hold the mark that ends an image.
bool ends_as_image(std::span<const uint8_t> bytes);

// Every failure is an Error whose text is the reason alone ("CMYK JPEG is not supported").
class Decoder {
 public:
  virtual ~Decoder() = default;
  // Reads the header; `bytes` must stay until decode() is done, and may end after the header when
  // there is none.
  virtual Size open(std::span<const uint8_t> bytes) = 0;
  // Pixels covering at least `wanted` of the opened image reduced by `shrink`: 1, or 2, 4, 8 up to
  // max_shrink(). `wanted` lies within ceil(size / shrink). Once per open().
  virtual Pixels decode(int shrink, const Region& wanted) = 0;
  virtual int max_shrink() const = 0;
  // What is open is a baseline JPEG of 8 bits, YCbCr or grey: what every decoder of JPEGs takes.
  virtual bool plain_jpeg() const { return false; }
};

std::unique_ptr<Decoder> make_jpeg_decoder();
std::unique_ptr<Decoder> make_png_decoder();

// One of each, chosen by the first bytes of the file: its name may say otherwise.
class AnyDecoder {
 public:
  // Throws as open() does, and Error when the bytes are neither or hold more than max_pixels.
  Size open(std::span<const uint8_t> bytes, int64_t max_pixels);
  Pixels decode(int shrink, const Region& wanted) { return opened_->decode(shrink, wanted); }
  int max_shrink() const { return opened_->max_shrink(); }
  bool plain_jpeg() const { return opened_->plain_jpeg(); }

 private:
  std::unique_ptr<Decoder> jpeg_ = make_jpeg_decoder(), png_ = make_png_decoder();
  Decoder* opened_ = nullptr;
};

}  // namespace howmany::image
