// SPDX-License-Identifier: Apache-2.0
// Scans a folder of images: the usable ones, and every other entry with the reason.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/image_folder.h"

namespace howmany {

struct FolderScan {
  struct Item {
    std::string file;  // below the class folder, or below the root: "x.jpg", "part/x.jpg"
    int64_t label;     // -1: without a class
  };

  std::string root;
  std::vector<std::string> classes;  // empty: images without classes
  std::vector<std::string> ignored, notes;
  std::vector<Item> items;  // by class, then file
  std::vector<BadImage> bad;
  int64_t listed = 0;  // files named as images

  // Sets `path` to root/class/file. A reused string does not allocate.
  void path_of(const Item& item, std::string& path) const;
};

// Names are listed one by one, so that a folder of millions needs only the memory of its names and
// reports options.progress. Checks and keeps only options.most files, spaced evenly, if it is above
// 0. Throws Error if root cannot be listed, or as require_usable().
FolderScan scan_folder(const std::string& root, const ImageFolderOptions& options);

}  // namespace howmany
