// SPDX-License-Identifier: Apache-2.0
#include "core/data/images/image.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "core/data/images/transform.h"
#include "core/tensor/rng.h"
#include "tests/support/image_files.h"

namespace howmany::image {
namespace {

using ::howmany::testing_support::jpeg_file;
using ::howmany::testing_support::png_file;
using ::howmany::testing_support::Rgb;
using ::howmany::testing_support::slope;
using ::howmany::testing_support::webp_file;

constexpr int64_t kNoLimit = int64_t{1} << 40;

std::span<const uint8_t> bytes_of(const std::string& file) {
  return {reinterpret_cast<const uint8_t*>(file.data()), file.size()};
}

std::string source_file(const std::string& path) {
  const char* const root = std::getenv("HOWMANY_SOURCE");
  std::ifstream file(std::string(root == nullptr ? "." : root) + "/" + path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Rgb busy(int x, int y) {
  const auto mix = [&](int a, int b) {
    return static_cast<uint8_t>((x * a) ^ (y * b) ^ (x * y / 7));
  };
  return {mix(3, 5), mix(2, 9), mix(11, 1)};
}

const uint8_t* at(const Pixels& pixels, int64_t x, int64_t y) {
  return pixels.data + (y - pixels.region.y) * pixels.stride + (x - pixels.region.x) * 3;
}

Region random_part(const Rng& rng, uint64_t& draw, int64_t w, int64_t h) {
  Region part{rng.below(draw, w), rng.below(draw + 1, h), 0, 0};
  part.width = 1 + rng.below(draw + 2, w - part.x);
  part.height = 1 + rng.below(draw + 3, h - part.y);
  draw += 4;
  return part;
}

void expect_same(const Pixels& cut, const Pixels& whole, const Region& part,
                 const std::string& what) {
  for (int64_t y = part.y; y < part.y + part.height; ++y)
    ASSERT_TRUE(
        std::equal(at(cut, part.x, y), at(cut, part.x + part.width, y), at(whole, part.x, y)))
        << what << " part " << part.x << ',' << part.y << ' ' << part.width << 'x' << part.height
        << " row " << y;
}

// The decoder skips rows and columns outside the part. This must not change the rest.
TEST(Jpeg, PartOfAnImageEqualsThatPartOfTheWhole) {
  const Rng rng(3);
  uint64_t draw = 0;
  for (int subsampling : {1, 2})
    for (bool progressive : {false, true})
      for (int shrink : {1, 2, 4, 8}) {
        const int width = 131, height = 97;
        const std::string file = jpeg_file(
            width, height, busy, {.subsampling = subsampling, .progressive = progressive});
        const int64_t w = (width + shrink - 1) / shrink, h = (height + shrink - 1) / shrink;
        AnyDecoder one, other;
        one.open(bytes_of(file), kNoLimit);
        const Pixels whole = one.decode(shrink, {0, 0, w, h});
        for (int trial = 0; trial < 20; ++trial) {
          const Region part = random_part(rng, draw, w, h);
          other.open(bytes_of(file), kNoLimit);
          expect_same(other.decode(shrink, part), whole, part,
                      fmt::format("subsampling {} progressive {} shrink {}", subsampling,
                                  progressive, shrink));
        }
      }
}

TEST(Jpeg, ShrunkDecodingIsTheSamePictureSmaller) {
  const std::string file = jpeg_file(400, 240);
  AnyDecoder decoder;
  for (int shrink : {2, 4, 8}) {
    decoder.open(bytes_of(file), kNoLimit);
    const Pixels pixels = decoder.decode(shrink, {0, 0, 400 / shrink, 240 / shrink});
    for (int y = 1; y < 240 / shrink - 1; ++y)
      for (int x = 1; x < 400 / shrink - 1; ++x)
        for (size_t c = 0; c < 3; ++c)
          ASSERT_NEAR(at(pixels, x, y)[c],
                      slope(x * shrink + shrink / 2, y * shrink + shrink / 2)[c], 4);
  }
}

TEST(Webp, PartOfAnImageEqualsThatPartOfTheWhole) {
  const Rng rng(4);
  uint64_t draw = 0;
  const int64_t width = 131, height = 97;
  for (const bool lossless : {true, false}) {
    const std::string file = webp_file(width, height, busy, lossless);
    AnyDecoder one, other;
    EXPECT_EQ(one.open(bytes_of(file), kNoLimit).width, width);
    EXPECT_EQ(one.file_bytes(), static_cast<int64_t>(file.size()));
    const Pixels whole = one.decode(1, {0, 0, width, height});
    for (int y = 0; lossless && y < height; ++y)
      for (int x = 0; x < width; ++x)
        ASSERT_TRUE(std::equal(at(whole, x, y), at(whole, x, y) + 3, busy(x, y).begin()));
    for (int trial = 0; trial < 60; ++trial) {
      const Region part = random_part(rng, draw, width, height);
      other.open(bytes_of(file), kNoLimit);
      expect_same(other.decode(1, part), whole, part, lossless ? "lossless" : "lossy");
    }
  }
}

// Made by tests/data/images/make.py with Pillow.
TEST(Webp, PixelsAreThoseOfPillow) {
  for (const char* name : {"lossy", "alpha"}) {
    const std::string folder = "tests/data/images/";
    const std::string webp = source_file(folder + name + ".webp");
    const std::string png = source_file(folder + name + ".png");
    AnyDecoder one, other;
    const Size size = one.open(bytes_of(webp), kNoLimit);
    ASSERT_EQ(other.open(bytes_of(png), kNoLimit).width, size.width);
    const Region all{0, 0, size.width, size.height};
    expect_same(one.decode(1, all), other.decode(1, all), all, name);
  }
}

TEST(Webp, TruncatedAndDamagedAreNamed) {
  const std::string file = webp_file(64, 48, busy);
  AnyDecoder decoder;
  EXPECT_THROW(decoder.open(bytes_of(file).first(14), kNoLimit), Truncated);
  decoder.open(bytes_of(file).first(file.size() / 2), kNoLimit);
  EXPECT_THROW(decoder.decode(1, {0, 0, 64, 48}), Truncated);
  std::string damaged = file;
  damaged.replace(12, 4, "ABCD");
  EXPECT_THROW(decoder.open(bytes_of(damaged), kNoLimit), Error);
}

// As in Pillow, whatever part is wanted.
TEST(Png, DamageIsFoundByTheChecksumBehindTheLastRow) {
  std::string file = png_file(60, 50, busy);
  const size_t crc = file.find("IEND") - 8;  // of the last IDAT
  file[crc] = static_cast<char>(file[crc] ^ 1);
  AnyDecoder decoder;
  for (const Region& wanted : {Region{0, 0, 60, 50}, Region{10, 3, 20, 5}}) {
    decoder.open(bytes_of(file), kNoLimit);
    EXPECT_THROW(decoder.decode(1, wanted), Error);
  }
}

TEST(Png, AMissingEndIsNoDamage) {
  const std::string file = png_file(60, 50, busy);
  AnyDecoder decoder;
  decoder.open(bytes_of(file).first(file.find("IEND") - 4), kNoLimit);
  EXPECT_EQ(at(decoder.decode(1, {0, 0, 60, 50}), 59, 49)[0], busy(59, 49)[0]);
}

TEST(AnyDecoder, GoesOnAfterABadImage) {
  const std::string good = jpeg_file(40, 30), busier = jpeg_file(40, 30, busy),
                    cut = busier.substr(0, busier.size() * 3 / 4);
  AnyDecoder decoder;
  for (int round = 0; round < 3; ++round) {
    decoder.open(bytes_of(cut), kNoLimit);
    EXPECT_THROW(decoder.decode(1, {0, 0, 40, 30}), Truncated);
    EXPECT_THROW(decoder.open(bytes_of("nonsense"), kNoLimit), Error);
    decoder.open(bytes_of(good), kNoLimit);
    EXPECT_NEAR(*at(decoder.decode(1, {0, 0, 40, 30}), 20, 10), slope(20, 10)[0], 4);
  }
}

// The filter by its definition: a triangle as wide as the step between outputs, at least one pixel.
double filtered(const Pixels& pixels, const Region& readable, double x, double y, double step_x,
                double step_y, int channel) {
  double sum = 0, weights = 0;
  for (int64_t v = readable.y; v < readable.y + readable.height; ++v)
    for (int64_t u = readable.x; u < readable.x + readable.width; ++u) {
      const auto part = [](double distance, double step) {
        return std::max(0.0, 1 - std::abs(distance) / std::max(step, 1.0));
      };
      const double weight = part(static_cast<double>(u) + 0.5 - x, step_x) *
                            part(static_cast<double>(v) + 0.5 - y, step_y);
      sum += weight * at(pixels, u, v)[channel];
      weights += weight;
    }
  return sum / weights;
}

TEST(Resampler, MatchesTheDefinitionOfTheFilter) {
  const std::string file = png_file(90, 70, busy);
  AnyDecoder decoder;
  decoder.open(bytes_of(file), kNoLimit);
  const Pixels whole = decoder.decode(1, {0, 0, 90, 70});
  const int64_t size = 16;
  std::vector<float> out(static_cast<size_t>(size * size * 3));
  Resampler resampler;
  for (uint64_t key = 0; key < 24; ++key) {
    const Window window = key % 2 ? random_resized_crop({90, 70}, Rng(key))
                                  : resized_centre_crop({90, 70}, size + static_cast<int64_t>(key));
    resampler.plan(window, size, 1);
    resampler.run(whole, false, out.data());
    const double step_x = window.width / size, step_y = window.height / size;
    for (int row = 0; row < size; ++row)
      for (int column = 0; column < size; ++column) {
        const double x = window.x + (window.flip ? size - column - 0.5 : column + 0.5) * step_x;
        const double y = window.y + (row + 0.5) * step_y;
        const auto i = static_cast<size_t>((row * size + column) * 3);
        for (int c = 0; c < 3; ++c)
          ASSERT_NEAR(out[i + static_cast<size_t>(c)] * 255,
                      filtered(whole, window.readable, x, y, step_x, step_y, c), 1e-3)
              << "key " << key << " at " << column << ',' << row;
      }
  }
}

TEST(Resampler, AsksOnlyForPixelsOfTheImage) {
  for (int64_t w : {1, 7, 300, 4001})
    for (int64_t h : {1, 16, 225, 3000})
      for (uint64_t key = 0; key < 16; ++key)
        for (int shrink : {1, 2, 4, 8})
          for (const Window& window :
               {random_resized_crop({w, h}, Rng(key)), resized_centre_crop({w, h}, 24)}) {
            Resampler resampler;
            const Region part = resampler.plan(window, 24, shrink);
            ASSERT_GE(part.x, 0);
            ASSERT_GE(part.y, 0);
            ASSERT_GT(part.width, 0);
            ASSERT_GT(part.height, 0);
            ASSERT_LE(part.x + part.width, (w + shrink - 1) / shrink)
                << w << 'x' << h << '/' << shrink;
            ASSERT_LE(part.y + part.height, (h + shrink - 1) / shrink)
                << w << 'x' << h << '/' << shrink;
          }
}

TEST(Windows, RandomCropsAreAsTorchvisionDrawsThem) {
  double area = 0;
  int flips = 0;
  constexpr int kDraws = 2000;
  for (uint64_t key = 0; key < kDraws; ++key) {
    const Window w = random_resized_crop({500, 400}, Rng(11, key));
    const double part = w.width * w.height / (500 * 400), ratio = w.width / w.height;
    ASSERT_GE(w.x, 0);
    ASSERT_GE(w.y, 0);
    ASSERT_LE(w.x + w.width, 500);
    ASSERT_LE(w.y + w.height, 400);
    ASSERT_GT(part, 0.078);
    ASSERT_LE(part, 1);
    ASSERT_GT(ratio, 0.74);
    ASSERT_LT(ratio, 1.35);
    area += part / kDraws;
    flips += w.flip;
  }
  EXPECT_NEAR(area, 0.49, 0.05);  // below 0.54, because the largest windows do not always fit
  EXPECT_NEAR(flips, kDraws / 2, 150);
}

TEST(Windows, CropsThatNeverFitFallBackToTheCentre) {
  const Window wide = random_resized_crop({1000, 30}, Rng(1));
  EXPECT_EQ(wide.height, 30);
  EXPECT_EQ(wide.width, 40);
  EXPECT_EQ(wide.x, 480);
  const Window tall = random_resized_crop({30, 1000}, Rng(1));
  EXPECT_EQ(tall.width, 30);
  EXPECT_EQ(tall.height, 40);
}

TEST(Windows, CentreCropIsThatOfResizeThenCrop) {
  // 500x375 -> 341x256 -> the central 224 of each: columns from 58 (58.5 rounds to even), rows from
  // 16.
  const Window w = resized_centre_crop({500, 375}, 224);
  EXPECT_DOUBLE_EQ(w.x, 58 * 500.0 / 341);
  EXPECT_DOUBLE_EQ(w.y, 16 * 375.0 / 256);
  EXPECT_DOUBLE_EQ(w.width, 224 * 500.0 / 341);
  EXPECT_DOUBLE_EQ(w.height, 224 * 375.0 / 256);
}

TEST(Windows, ShrinkNeverLeavesFewerPixelsThanTheSample) {
  const auto shrink = [](double width, double height) {
    return shrink_for({0, 0, width, height, {}, false}, 224, 8);
  };
  EXPECT_EQ(shrink(447, 900), 1);
  EXPECT_EQ(shrink(448, 448), 2);
  EXPECT_EQ(shrink(900, 895), 2);
  EXPECT_EQ(shrink(896, 896), 4);
  EXPECT_EQ(shrink(9000, 9000), 8);
  EXPECT_EQ(shrink_for({0, 0, 9000, 9000, {}, false}, 224, 1), 1);
}

}  // namespace
}  // namespace howmany::image
