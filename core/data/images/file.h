// Reading image files: whole for decoding, or only enough to tell whether they are usable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/images/image.h"

namespace howmany::image {

// Fills `bytes`. Throws Error with the reason alone ("Permission denied", "is a directory").
void read_file(const std::string& path, int64_t max_pixels, std::vector<uint8_t>& bytes);

// The same of a part of a file: one that an archive holds.
void read_part(const std::string& path, int64_t offset, int64_t size, std::vector<uint8_t>& bytes);

// Checks a file without decoding it: a readable regular file, an image by its header, within
// max_pixels, whole by its end. When the end looks wrong it is decoded after all, since some
// writers append data of their own. Throws Error with the reason alone. Keeps buffers: one thread.
class FileCheck {
 public:
  explicit FileCheck(int64_t max_pixels) : max_pixels_(max_pixels) {}
  void operator()(const std::string& path);

 private:
  int64_t max_pixels_;
  AnyDecoder decoder_;
  std::vector<uint8_t> bytes_;
};

}  // namespace howmany::image
