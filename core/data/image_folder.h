// SPDX-License-Identifier: Apache-2.0
// A folder of images as a Dataset.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/dataset.h"

namespace howmany {

// Called from time to time by the thread that opens many files. `doing` is "listed" or "checked",
// `files` the number so far.
using FileProgress = std::function<void(std::string_view doing, int64_t files)>;

enum class OnBadImage { skip, refuse };
struct ImageFolderOptions {
  int64_t size = 224;     // output is size x size x 3
  bool train = true;      // random crop and flip; false: resize and centre crop
  bool normalize = true;  // to ImageNet mean and deviation, as torchvision's recipes
  OnBadImage on_bad = OnBadImage::refuse;
  int64_t max_pixels = 100'000'000;  // larger images are bad (decompression bombs)
  int64_t most = 0;  // above 0: the maximum number of files, spaced evenly; opens no others
  FileProgress progress = {};
};

struct BadImage {
  std::string path, why;
};

// Times per stage so far, summed over all threads.
struct StageTimes {
  int64_t samples = 0, file_bytes = 0, pixels = 0;  // pixels as stored
  double read_s = 0, decode_s = 0, transform_s = 0;
};
StageTimes operator-(const StageTimes& after, const StageTimes& before);

struct FilePart {
  std::string path;
  int64_t offset = 0, size = 0;  // in bytes
};

class ImageDataset : public Dataset {
 public:
  virtual FilePart part_of(int64_t index) const = 0;  // the encoded image
  virtual StageTimes stages() const = 0;
  // Returns the files that passed the scan but failed to decode and were replaced
  // (OnBadImage::skip), by path.
  virtual std::vector<BadImage> replaced() const = 0;
};

struct ImageFolder {
  std::unique_ptr<ImageDataset> dataset;
  std::vector<std::string> classes;  // sorted folder names; label = position
  std::vector<BadImage> bad;         // found by the scan, by path
  std::vector<std::string> ignored;  // entries that are neither class folders nor named as images
  std::vector<std::string> notes;    // "24 files of a format that is not read: .bmp"
  int64_t listed = 0;                // files named as images, before the limit `most`
};

// Opens the files {jpg,jpeg,png,webp}, in any case, at any level below root/class, sorted by folder
// and name as in torchvision. Ignores hidden class folders and the files "._NAME" of macOS.
// Without classes. If only the root itself has images, or the class folders are parts of a data set
//   (train, val), the samples have no labels, and `classes` is empty.
// Bad images. Headers and ends of files are checked now, which finds most bad images before
//   training. If a file fails to decode later, get() throws (refuse), or replaces it by the next
//   good one and counts it (skip).
// Errors. Throws Error if root is missing or has no usable image. If on_bad is refuse, also throws
//   if there are bad images, and names the first ones.
ImageFolder image_folder(const std::string& root, const ImageFolderOptions& options);

}  // namespace howmany
