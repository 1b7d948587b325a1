// SPDX-License-Identifier: Apache-2.0
// Draws a part of a list of images, and removes the bad ones before any is decoded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/data/image_folder.h"
#include "core/data/images/file.h"

namespace howmany {

// Numbers of files by extension.
using Extensions = std::map<std::string, int64_t, std::less<>>;
// Returns ".bmp", or "20 .bmp, 4 without extension".
std::string describe(const Extensions& extensions);
// Returns true for "a/x.jpg", and not for "a/._x.jpg", which macOS adds.
bool named_as_image(const std::string& path);
// Returns true for ".bmp" and other images that are not read here.
bool is_other_image(std::string_view extension);

// Checks image i, or throws Error with only the reason.
using CheckImage = std::function<void(size_t i, image::FileCheck& check)>;

// Checks `count` images by several threads, which hides the latency of network file systems.
// Returns the reason for each bad one, "" for a good one.
std::vector<std::string> check_images(size_t count, const ImageFolderOptions& options,
                                      const CheckImage& check);

// Throws Error if there is no usable image, or if there are bad ones and options.on_bad is refuse.
void require_usable(const std::string& root, size_t usable, const std::vector<BadImage>& bad,
                    const ImageFolderOptions& options, const std::string& remedy);

// Keeps options.most items, spaced evenly.
template <class Item>
void thin_out(std::vector<Item>& items, const ImageFolderOptions& options) {
  const auto all = static_cast<int64_t>(items.size());
  if (options.most < 1 || options.most >= all) return;
  for (int64_t i = 0; i < options.most; ++i)
    std::swap(items[static_cast<size_t>(i)], items[static_cast<size_t>(i * all / options.most)]);
  items.resize(static_cast<size_t>(options.most));
}

// Moves the items that have a reason to `bad`, under their names.
template <class Item, class NameOf>
void move_bad(std::vector<Item>& items, std::vector<std::string> reasons, const NameOf& name_of,
              std::vector<BadImage>& bad) {
  std::vector<Item> usable;
  for (size_t i = 0; i < items.size(); ++i)
    if (reasons[i].empty())
      usable.push_back(std::move(items[i]));
    else
      bad.push_back({name_of(items[i]), std::move(reasons[i])});
  items = std::move(usable);
  std::ranges::sort(bad, {}, &BadImage::path);
}

}  // namespace howmany
