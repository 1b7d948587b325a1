// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "core/base/error.h"
#include "core/base/text/format.h"
#include "core/data/dataset.h"
#include "core/data/formats.h"
#include "core/data/formats/folder_scan.h"
#include "core/data/image_folder.h"
#include "core/data/images/file.h"
#include "core/data/images/samples.h"

namespace howmany {
namespace {

class FolderDataset final : public ImageSamples {
 public:
  FolderDataset(FolderScan scan, const ImageFolderOptions& options)
      : ImageSamples(options, !scan.classes.empty()), scan_(std::move(scan)) {}

  int64_t size() const override { return static_cast<int64_t>(scan_.items.size()); }
  std::string describe() const override {
    if (scan_.classes.empty())
      return fmt::format("{} without classes in {}", number(size(), "image"), scan_.root);
    return fmt::format("{} of {} classes in {}", number(size(), "image"), scan_.classes.size(),
                       scan_.root);
  }
  FilePart part_of(int64_t index) const override {
    std::error_code gone;
    const std::string path = name_of(index);
    const auto size = std::filesystem::file_size(path, gone);
    return {path, 0, gone ? 0 : static_cast<int64_t>(size)};
  }
  std::string name_of(int64_t index) const override {
    std::string path;
    scan_.path_of(scan_.items.at(static_cast<size_t>(index)), path);
    return path;
  }

 private:
  void read(int64_t index, std::string& path, std::vector<uint8_t>& bytes) const override {
    scan_.path_of(scan_.items[static_cast<size_t>(index)], path);
    image::read_file(path, options().max_pixels, bytes);
  }
  int64_t label_of(int64_t index) const override {
    return scan_.items[static_cast<size_t>(index)].label;
  }
  std::string origin() const override { return scan_.root; }

  FolderScan scan_;
};

}  // namespace

ImageFolder image_folder(const std::string& root, const ImageFolderOptions& options) {
  check_image_options(options);
  FolderScan scan = scan_folder(root, options);
  ImageFolder folder{
      nullptr,    scan.classes, std::move(scan.bad), std::move(scan.ignored), std::move(scan.notes),
      scan.listed};
  folder.dataset = std::make_unique<FolderDataset>(std::move(scan), options);
  return folder;
}

std::optional<OpenedData> formats::image_folder(const std::string& path,
                                                const DataOptions& options) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return {};
  ImageFolder folder = howmany::image_folder(path, options.images);
  OpenedData opened;
  opened.images = folder.dataset.get();
  opened.classes = static_cast<int64_t>(folder.classes.size());
  opened.listed = folder.listed;
  opened.bad = std::move(folder.bad);
  opened.notes = std::move(folder.notes);
  opened.dataset = std::move(folder.dataset);
  return opened;
}

}  // namespace howmany
