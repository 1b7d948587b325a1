// SPDX-License-Identifier: Apache-2.0
// Scans a folder of class folders: the usable images, and every other entry with the reason.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/image_folder.h"

namespace howmany {

struct FolderScan {
  struct Item {
    std::string file;  // below the class folder: "x.jpg", "part/x.jpg"
    int64_t label;
  };

  std::string root;
  std::vector<std::string> classes, ignored;
  std::vector<Item> items;  // by class, then file
  std::vector<BadImage> bad;
  int64_t listed = 0;  // files named as images

  // Sets `path` to root/class/file. A reused string does not allocate.
  void path_of(const Item& item, std::string& path) const;
};

// Checks files by several threads, which hides the latency of network file systems. Names are
// listed one by one, so that a folder of millions needs only the memory of its names and reports
// `progress`. If `most` is above 0, checks and keeps only that many files, spaced evenly. Throws
// Error if root cannot be listed or has no class folder.
FolderScan scan_folder(const std::string& root, int64_t max_pixels, int64_t most = 0,
                       const FileProgress& progress = {});

}  // namespace howmany
