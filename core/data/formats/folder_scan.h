// What a folder of class folders holds: the usable images, and every other entry with its reason.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/dataset.h"

namespace howmany {

struct FolderScan {
  struct Item {
    std::string file;
    int64_t label;
  };

  std::string root;
  std::vector<std::string> classes, ignored;
  std::vector<Item> items;  // by class, then file
  std::vector<BadImage> bad;
  int64_t listed = 0;  // files named as images

  // Writes root/class/file over `path`, so that a reused string allocates nothing.
  void path_of(const Item& item, std::string& path) const;
};

// Checks files by several threads: over a network it is waiting for each that takes the time.
// Names are taken as the system lists them, one by one, so that a folder of millions needs the
// memory of its names and `progress` hears of it. With `most` above 0 only so many, evenly drawn,
// are looked at and kept. Throws Error when root cannot be listed or has no class folder.
FolderScan scan_folder(const std::string& root, int64_t max_pixels, int64_t most = 0,
                       const FileProgress& progress = {});

}  // namespace howmany
