// SPDX-License-Identifier: Apache-2.0
#include "core/data/formats/folder_scan.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>

#include "core/base/error.h"
#include "core/data/images/file.h"

namespace howmany {
namespace {

namespace fs = std::filesystem;

constexpr size_t kCheckers = 16;
constexpr size_t kFilesPerChecker = 32;  // fewer do not justify a thread
constexpr size_t kTellEvery = 4096;      // files

bool named_as_image(const fs::path& path) {
  const std::string extension = path.extension().string();
  return !extension.empty() && image::is_image_extension(extension.substr(1));
}

// Lists the names, before any file is opened.
class FolderLister {
 public:
  FolderLister(FolderScan& scan, const FileProgress& progress) : scan_(scan), progress_(progress) {}

  void list_root() {
    std::error_code error;
    HM_ENSURE(fs::exists(scan_.root, error), "[image_folder] {} does not exist", scan_.root);
    HM_ENSURE(fs::is_directory(scan_.root, error), "[image_folder] {} is not a folder", scan_.root);
    root_ = fs::canonical(scan_.root, error).string();
    for (const fs::path& folder : class_folders()) list_class(folder);
    HM_ENSURE(!scan_.classes.empty(),
              "[image_folder] {} has no class folders: expected {}/CLASS/FILE.jpg", scan_.root,
              scan_.root);
  }

 private:
  // Returns the class folders, sorted by name.
  std::vector<fs::path> class_folders() {
    std::vector<fs::path> folders;
    std::error_code error;
    try {
      for (const auto& entry : fs::directory_iterator(scan_.root)) {
        if (entry.path().filename().string().front() != '.' && entry.is_directory(error))
          folders.push_back(entry.path());
        else
          scan_.ignored.push_back(entry.path().string());
        tell();
      }
    } catch (const fs::filesystem_error& e) {
      throw Error(fmt::format("[image_folder] {}: {}", scan_.root, e.code().message()));
    }
    std::ranges::sort(folders, {}, [](const fs::path& path) { return path.filename().string(); });
    std::ranges::sort(scan_.ignored);
    return folders;
  }

  void tell() {
    if (progress_ && ++seen_ % kTellEvery == 0) progress_("listed", static_cast<int64_t>(seen_));
  }

  void list_class(const fs::path& folder) {
    scan_.classes.push_back(folder.filename().string());
    const size_t images = scan_.items.size(), others = scan_.ignored.size();
    std::error_code error;
    visited_ = {root_, fs::canonical(folder, error).string()};
    list_below(folder, "");
    std::sort(scan_.items.begin() + static_cast<std::ptrdiff_t>(images), scan_.items.end(),
              by_folder_then_name);
    std::sort(scan_.ignored.begin() + static_cast<std::ptrdiff_t>(others), scan_.ignored.end());
  }

  // Lists all levels, as torchvision does. `inside` is the path below the class folder, with '/' at
  // its end. A link to a folder that was visited is ignored, because it may be a loop.
  void list_below(const fs::path& folder, const std::string& inside) {
    const auto label = static_cast<int64_t>(scan_.classes.size()) - 1;
    try {
      for (const auto& entry : fs::directory_iterator(folder)) {
        const std::string name = entry.path().filename().string();
        std::error_code error;
        if (entry.is_directory(error))
          list_folder(entry, inside + name + "/");
        else if (named_as_image(entry.path()))
          scan_.items.push_back({inside + name, label});
        else
          scan_.ignored.push_back(entry.path().string());
        tell();
      }
    } catch (const fs::filesystem_error& e) {
      scan_.bad.push_back({folder.string(), e.code().message()});
    }
  }

  void list_folder(const fs::directory_entry& entry, const std::string& inside) {
    std::error_code error;
    const std::string path = fs::canonical(entry.path(), error).string();
    if (!error && visited_.insert(path).second)
      list_below(entry.path(), inside);
    else
      scan_.ignored.push_back(entry.path().string());
  }

  // The order of torchvision: by folder, then by name.
  static bool by_folder_then_name(const FolderScan::Item& x, const FolderScan::Item& y) {
    const auto parts = [](const std::string& file) {
      const size_t slash = file.rfind('/');
      const std::string_view all = file;
      return slash == std::string::npos ? std::pair(std::string_view(), all)
                                        : std::pair(all.substr(0, slash), all.substr(slash + 1));
    };
    return parts(x.file) < parts(y.file);
  }

  std::string root_;               // canonical
  std::set<std::string> visited_;  // canonical folders of the current class, and root_
  FolderScan& scan_;
  const FileProgress& progress_;
  size_t seen_ = 0;
};

// Keeps `most` of the items, spaced evenly.
void thin_out(std::vector<FolderScan::Item>& items, int64_t most) {
  const auto all = static_cast<int64_t>(items.size());
  if (most < 1 || most >= all) return;
  for (int64_t i = 0; i < most; ++i)
    std::swap(items[static_cast<size_t>(i)], items[static_cast<size_t>(i * all / most)]);
  items.resize(static_cast<size_t>(most));
}

// Returns the reason for each bad item, "" for a good one.
std::vector<std::string> check_images(const FolderScan& scan, int64_t max_pixels,
                                      const FileProgress& progress) {
  std::vector<std::string> reasons(scan.items.size());
  std::atomic<size_t> next = 0;
  const auto work = [&](const FileProgress& tell) {
    image::FileCheck check_file(max_pixels);
    std::string path;
    size_t reported = 0;
    for (size_t i = next++; i < reasons.size(); i = next++) {
      scan.path_of(scan.items[i], path);
      try {
        check_file(path);
      } catch (const std::exception& e) {
        reasons[i] = e.what();
      }
      if (!tell || i / kTellEvery == reported) continue;
      reported = i / kTellEvery;
      tell("checked", static_cast<int64_t>(i));
    }
  };
  {
    std::vector<std::jthread> helpers;
    try {
      const size_t wanted = std::min(kCheckers, reasons.size() / kFilesPerChecker);
      while (helpers.size() < wanted) helpers.emplace_back(work, FileProgress());
    } catch (const std::system_error&) {
      // No more threads are available: the existing ones do the work.
    }
    work(progress);
  }
  return reasons;
}

}  // namespace

void FolderScan::path_of(const Item& item, std::string& path) const {
  path.assign(root).append("/").append(classes[static_cast<size_t>(item.label)]);
  path.append("/").append(item.file);
}

FolderScan scan_folder(const std::string& root, int64_t max_pixels, int64_t most,
                       const FileProgress& progress) {
  FolderScan scan{.root = root, .classes = {}, .ignored = {}, .items = {}, .bad = {}};
  FolderLister(scan, progress).list_root();
  scan.listed = static_cast<int64_t>(scan.items.size());
  thin_out(scan.items, most);
  std::vector<std::string> reasons = check_images(scan, max_pixels, progress);
  std::vector<FolderScan::Item> usable;
  for (size_t i = 0; i < reasons.size(); ++i) {
    if (reasons[i].empty()) {
      usable.push_back(std::move(scan.items[i]));
      continue;
    }
    auto& [path, why] = scan.bad.emplace_back();
    scan.path_of(scan.items[i], path);
    why = std::move(reasons[i]);
  }
  scan.items = std::move(usable);
  std::ranges::sort(scan.bad, {}, &BadImage::path);
  return scan;
}

}  // namespace howmany
