// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "core/data/image_folder.h"
#include "core/data/images/image.h"
#include "core/data/images/transform.h"
#include "tests/support/fuzz_driver.h"
#include "tests/support/image_files.h"

namespace {

using namespace howmany::image;
using howmany::testing_support::Rgb;

constexpr int64_t kMaxPixels = 1 << 18;  // keeps one input fast
constexpr int64_t kSize = 12;

Rgb busy(int x, int y) {
  const auto mix = [&](int a, int b) { return static_cast<uint8_t>((x * a) ^ (y * b)); };
  return {mix(3, 5), mix(2, 9), mix(11, 1)};
}

void require(bool claim) {
  if (!claim) std::abort();
}

// Does what image_folder does with a file. The size of the file determines the scaling and the
// crop.
void sample(AnyDecoder& decoder, std::span<const uint8_t> bytes) {
  const Size size = decoder.open(bytes, kMaxPixels);
  require(size.width > 0 && size.height > 0 && size.width * size.height <= kMaxPixels);
  const auto window = bytes.size() % 3 == 0 ? resized_centre_crop(size, kSize)
                                            : random_resized_crop(size, howmany::Rng(bytes.size()));
  int shrink = shrink_for(window, kSize, decoder.max_shrink());
  if (bytes.size() % 2 == 0) shrink = decoder.max_shrink();
  Resampler resampler;
  const Region wanted = resampler.plan(window, kSize, shrink);
  const Pixels pixels = decoder.decode(shrink, wanted);
  const Region& got = pixels.region;
  require(got.x <= wanted.x && got.x + got.width >= wanted.x + wanted.width);
  require(got.y <= wanted.y && got.y + got.height >= wanted.y + wanted.height);
  float out[kSize * kSize * 3];
  resampler.run(pixels, false, out);
  for (float v : out) require(v >= -1e-4f && v <= 1 + 1e-4f);
}

// The header read from the first half of a file equals that of the whole file.
void open_part(AnyDecoder& decoder, std::span<const uint8_t> bytes) {
  const Size size = decoder.open(bytes.first(bytes.size() / 2), kMaxPixels);
  const Size whole = decoder.open(bytes, kMaxPixels);
  require(size.width == whole.width && size.height == whole.height);
}

void tolerate(void (*use)(AnyDecoder&, std::span<const uint8_t>), std::span<const uint8_t> bytes) {
  // Reused for all inputs, as a worker reuses its decoder.
  static AnyDecoder decoder;
  try {
    use(decoder, bytes);
  } catch (const howmany::Error&) {
  }
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  using howmany::testing_support::jpeg_file, howmany::testing_support::png_file,
      howmany::testing_support::webp_file;
  return {jpeg_file(48, 40, busy),
          jpeg_file(61, 33, busy, {.subsampling = 2}),
          jpeg_file(48, 40, busy, {.progressive = true}),
          jpeg_file(61, 33, busy, {.subsampling = 2, .progressive = true}),
          jpeg_file(40, 40, busy, {.colors = JCS_GRAYSCALE}),
          jpeg_file(16, 16, busy, {.colors = JCS_CMYK}),
          webp_file(24, 20, busy),
          webp_file(24, 20, busy, false),
          png_file(24, 20, busy),
          png_file(24, 20, busy, {.depth = 16}),
          png_file(24, 20, busy, {.interlaced = true}),
          png_file(24, 20, busy, {.color = PNG_COLOR_TYPE_GRAY}),
          png_file(24, 20, busy, {.color = PNG_COLOR_TYPE_PALETTE}),
          png_file(24, 20, busy, {.color = PNG_COLOR_TYPE_RGB_ALPHA})};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string file(reinterpret_cast<const char*>(data), size);
  if (size % 4 != 0)
    howmany::testing_support::repair_png(file);  // else the checksum stops every mutation
  const std::span bytes(reinterpret_cast<const uint8_t*>(file.data()), file.size());
  tolerate(sample, bytes);
  tolerate(open_part, bytes);
  return 0;
}
