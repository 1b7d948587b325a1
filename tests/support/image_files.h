// SPDX-License-Identifier: Apache-2.0
// JPEG, PNG and WebP files with the pixels of a function, and a temporary folder for them.
#pragma once

#include <cstdio>
// jpeglib.h needs size_t and FILE declared before it.
#include <jpeglib.h>
#include <png.h>
#include <webp/encode.h>
#include <zlib.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "core/base/private_folder.h"

namespace howmany::testing_support {

using Rgb = std::array<uint8_t, 3>;
using Paint = std::function<Rgb(int x, int y)>;

// A smooth image, which JPEG preserves within a few grey levels. Every channel and axis differs.
inline Rgb slope(int x, int y) {
  const auto level = [](int v) { return static_cast<uint8_t>(v); };
  return {level(40 + x / 3), level(200 - y / 2), level(60 + (x + y) / 5)};
}

class TempFolder : public PrivateFolder {
 public:
  std::string operator/(const std::string& name) const { return path() + "/" + name; }
  // Writes a file and creates its folders. Returns its path.
  std::string write(const std::string& name, const std::string& bytes) const {
    const std::filesystem::path file = *this / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << bytes;
    return file.string();
  }
};

struct JpegKind {
  J_COLOR_SPACE colors = JCS_YCbCr;  // also JCS_GRAYSCALE, JCS_CMYK and JCS_YCCK
  int subsampling = 1;               // of chroma: 1 is 4:4:4, 2 is 4:2:0
  bool progressive = false;
  int quality = 95;
};

inline std::string jpeg_file(int width, int height, const Paint& paint = slope,
                             const JpegKind& kind = {}) {
  jpeg_compress_struct info{};
  jpeg_error_mgr error{};
  info.err = jpeg_std_error(&error);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  const bool inks = kind.colors == JCS_CMYK || kind.colors == JCS_YCCK;
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = inks ? 4 : 3;
  info.in_color_space = inks ? JCS_CMYK : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_colorspace(&info, kind.colors);
  jpeg_set_quality(&info, kind.quality, TRUE);
  info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = kind.subsampling;
  if (kind.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  std::vector<uint8_t> row;
  for (int y = 0; y < height; ++y) {
    row.clear();
    for (int x = 0; x < width; ++x) {
      const Rgb pixel = paint(x, y);
      row.insert(row.end(), pixel.begin(), pixel.end());
      if (inks) row.push_back(255);  // no black, in the inverted form of Adobe
    }
    JSAMPROW rows[] = {row.data()};
    jpeg_write_scanlines(&info, rows, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string file(reinterpret_cast<char*>(bytes), size);
  std::free(bytes);
  return file;
}

inline std::string webp_file(int width, int height, const Paint& paint = slope,
                             bool lossless = true) {
  std::vector<uint8_t> rgb;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const Rgb pixel = paint(x, y);
      rgb.insert(rgb.end(), pixel.begin(), pixel.end());
    }
  uint8_t* bytes = nullptr;
  const size_t size = lossless ? WebPEncodeLosslessRGB(rgb.data(), width, height, 3 * width, &bytes)
                               : WebPEncodeRGB(rgb.data(), width, height, 3 * width, 90, &bytes);
  std::string file(reinterpret_cast<char*>(bytes), size);
  WebPFree(bytes);
  return file;
}

struct PngKind {
  int color = PNG_COLOR_TYPE_RGB;  // or _GRAY (the red channel), _RGB_ALPHA, _PALETTE (216 colours)
  int depth = 8;                   // or 16
  bool interlaced = false;
};

// The nearest palette entry below a colour, and its colour.
inline uint8_t palette_index(const Rgb& p) {
  return static_cast<uint8_t>(p[0] / 51 * 36 + p[1] / 51 * 6 + p[2] / 51);
}
inline Rgb palette_color(const Rgb& p) {
  const auto level = [](uint8_t v) { return static_cast<uint8_t>(v / 51 * 51); };
  return {level(p[0]), level(p[1]), level(p[2])};
}

inline std::string png_file(int width, int height, const Paint& paint = slope,
                            const PngKind& kind = {}) {
  std::string file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp p, png_bytep bytes, size_t n) {
        static_cast<std::string*>(png_get_io_ptr(p))->append(reinterpret_cast<char*>(bytes), n);
      },
      nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height),
               kind.depth, kind.color, kind.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (kind.color == PNG_COLOR_TYPE_PALETTE) {
    std::vector<png_color> colors;
    for (int i = 0; i < 216; ++i)
      colors.push_back({static_cast<png_byte>(i / 36 * 51), static_cast<png_byte>(i / 6 % 6 * 51),
                        static_cast<png_byte>(i % 6 * 51)});
    png_set_PLTE(png, info, colors.data(), static_cast<int>(colors.size()));
  }
  png_write_info(png, info);
  std::vector<std::vector<uint8_t>> rows(static_cast<size_t>(height));
  std::vector<png_bytep> pointers;
  for (int y = 0; y < height; ++y) {
    auto& row = rows[static_cast<size_t>(y)];
    const auto put = [&](uint8_t v) {
      row.push_back(v);
      if (kind.depth == 16) row.push_back(0x5a);  // the low byte, which the decoder strips
    };
    for (int x = 0; x < width; ++x) {
      const Rgb p = paint(x, y);
      if (kind.color == PNG_COLOR_TYPE_PALETTE)
        put(palette_index(p));
      else
        for (int c = 0; c < (kind.color == PNG_COLOR_TYPE_GRAY ? 1 : 3); ++c)
          put(p[static_cast<size_t>(c)]);
      if (kind.color == PNG_COLOR_TYPE_RGB_ALPHA) put(static_cast<uint8_t>(x));
    }
    pointers.push_back(row.data());
  }
  png_write_image(png, pointers.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return file;
}

// Corrects the checksum of every complete chunk.
inline void repair_png(std::string& file) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(file.data());
  for (size_t at = 8; at + 12 <= file.size();) {
    const size_t length = size_t{bytes[at]} << 24 | size_t{bytes[at + 1]} << 16 |
                          size_t{bytes[at + 2]} << 8 | bytes[at + 3];
    if (length > file.size() - at - 12) return;
    const uLong crc = crc32(0, bytes + at + 4, static_cast<uInt>(length + 4));
    for (size_t i = 0; i < 4; ++i)
      file[at + 8 + length + i] = static_cast<char>(crc >> (24 - 8 * i));
    at += length + 12;
  }
}

}  // namespace howmany::testing_support
