// SPDX-License-Identifier: Apache-2.0
// Reads image files: entirely, to decode them, or in part, to check whether they are usable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/images/image.h"

namespace howmany::image {

// Reads the file into `bytes`. Throws Error with only the reason ("Permission denied").
void read_file(const std::string& path, int64_t max_pixels, std::vector<uint8_t>& bytes);

// Reads a part of a file, such as a member of an archive.
void read_part(const std::string& path, int64_t offset, int64_t size, std::vector<uint8_t>& bytes);

// Checks a file without decoding it. It must be a readable regular file, an image by its header,
// within max_pixels, and complete by its header or its end. If the end looks wrong, decodes the
// image, because some writers append other data. Throws Error with only the reason. Reuses buffers:
// one thread. The second form checks a part of a file, such as a member of an archive.
class FileCheck {
 public:
  explicit FileCheck(int64_t max_pixels) : max_pixels_(max_pixels) {}
  void operator()(const std::string& path);
  void operator()(const std::string& path, int64_t offset, int64_t size);

 private:
  void check(const class File& file, int64_t offset, int64_t total);

  int64_t max_pixels_;
  AnyDecoder decoder_;
  std::vector<uint8_t> bytes_;
};

}  // namespace howmany::image
