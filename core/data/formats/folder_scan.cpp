// SPDX-License-Identifier: Apache-2.0
#include "core/data/formats/folder_scan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include "core/base/error.h"
#include "core/base/text/format.h"
#include "core/base/text/table.h"
#include "core/data/formats.h"
#include "core/data/formats/image_list.h"
#include "core/data/formats/text_values.h"

namespace howmany {
namespace {

namespace fs = std::filesystem;

constexpr size_t kReportEvery = 4096;  // files
// Folders of these names, and with a year (COCO's train2017), hold parts of a data set.
constexpr std::array<std::string_view, 8> kParts = {"train", "training", "val",  "valid",
                                                    "test",  "testing",  "eval", "validation"};
constexpr std::array<std::string_view, 5> kReadAlone = {".npy", ".csv", ".bin", ".u16", ".u32"};

// True for ".DS_Store" and "._x.jpg", which macOS adds to a folder.
bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

bool is_part(const std::string& folder) {
  const std::string name = lower(folder);
  const std::string word = name.substr(0, name.find_last_not_of("0123456789-_") + 1);
  return std::ranges::count(kParts, word) > 0;
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
    if (scan_.items.empty())
      take_loose();
    else if (!loose_.empty())
      note(number(std::ssize(loose_), "image") + " outside of the class folders left out");
    join_parts();
    if (unread_ > 0)
      note(number(unread_, "file") + " of a format that is not read: " + describe(extensions_));
    if (links_ > 0) note(number(links_, "link") + " to folders that are read anyway left out");
  }

  // Returns the reason for a folder without images, and what to do.
  std::string remedy() const {
    const std::string found = fmt::format("{}", fmt::join(scan_.notes, "; "));
    for (const auto& [extension, count] : extensions_)
      if (is_other_image(extension))
        return found +
               ". Convert images to .png; howmany workers --worker-type pytorch reads them by "
               "Pillow";
    for (const std::string& path : scan_.ignored)
      if (!is_hidden(path) && std::ranges::count(kReadAlone, extension_of(path)) > 0 &&
          path.find(".labels.") == path.npos)
        return fmt::format(
            "give a file, such as --data {}{}", path,
            extension_of(path) == ".npy" ? ", or name samples and labels x.npy and y.npy" : "");
    return (found.empty() ? "it has no files" : found) +
           ". Expected CLASS/FILE.jpg, FILE.jpg without classes (or .png, .webp), *.tar, or x.npy "
           "with y.npy";
  }

 private:
  // Returns the class folders, sorted by name.
  std::vector<fs::path> class_folders() {
    std::vector<fs::path> folders;
    std::error_code error;
    try {
      for (const auto& entry : fs::directory_iterator(scan_.root)) {
        const bool hidden = is_hidden(entry.path());
        if (!hidden && entry.is_directory(error))
          folders.push_back(entry.path());
        else if (!hidden && named_as_image(entry.path().string()))
          loose_.push_back(entry.path().filename().string());
        else
          leave_out(entry.path());
        report();
      }
    } catch (const fs::filesystem_error& e) {
      throw Error(fmt::format("[image_folder] {}: {}", scan_.root, e.code().message()));
    }
    std::ranges::sort(folders, {}, [](const fs::path& path) { return path.filename().string(); });
    std::ranges::sort(scan_.ignored);
    return folders;
  }

  void report() {
    if (progress_ && ++seen_ % kReportEvery == 0) progress_("listed", static_cast<int64_t>(seen_));
  }

  void note(std::string text) { scan_.notes.push_back(std::move(text)); }

  void leave_out(const fs::path& path) {
    scan_.ignored.push_back(path.string());
    if (is_hidden(path)) return;
    ++unread_;
    ++extensions_[extension_of(path.string())];
  }

  // The images of the root itself have no classes.
  void take_loose() {
    if (loose_.empty()) return;
    scan_.classes.clear();
    std::ranges::sort(loose_);
    for (std::string& file : loose_) scan_.items.push_back({std::move(file), -1});
  }

  // "train/cat/1.jpg": train is no class.
  void join_parts() {
    std::set<int64_t> used;
    for (const FolderScan::Item& item : scan_.items) used.insert(item.label);
    const auto folder = [&](int64_t label) { return scan_.classes[static_cast<size_t>(label)]; };
    if (scan_.classes.empty() || used.empty() ||
        !std::ranges::all_of(used, [&](int64_t label) { return is_part(folder(label)); }))
      return;
    for (FolderScan::Item& item : scan_.items) item = {folder(item.label) + "/" + item.file, -1};
    std::vector<std::string> parts;
    parts.reserve(used.size());
    for (const int64_t label : used) parts.push_back(printable(folder(label)));
    note(fmt::format("read together, without classes: {} (one alone: --data {})",
                     fmt::join(parts, ", "),
                     printable((fs::path(scan_.root) / folder(*used.begin())).string())));
    scan_.classes.clear();
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
        else if (named_as_image(entry.path().string()))
          scan_.items.push_back({inside + name, label});
        else
          leave_out(entry.path());
        report();
      }
    } catch (const fs::filesystem_error& e) {
      scan_.bad.push_back({folder.string(), e.code().message()});
    }
  }

  void list_folder(const fs::directory_entry& entry, const std::string& inside) {
    std::error_code error;
    const std::string path = fs::canonical(entry.path(), error).string();
    if (!error && visited_.insert(path).second) return list_below(entry.path(), inside);
    ++links_;
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
  std::vector<std::string> loose_;  // images in the root
  Extensions extensions_;           // of files that are not read
  size_t seen_ = 0;
  int64_t unread_ = 0, links_ = 0;
};

}  // namespace

void FolderScan::path_of(const Item& item, std::string& path) const {
  path.assign(root).append("/");
  if (item.label >= 0) path.append(classes[static_cast<size_t>(item.label)]).append("/");
  path.append(item.file);
}

FolderScan scan_folder(const std::string& root, const ImageFolderOptions& options) {
  FolderScan scan;
  scan.root = root;
  FolderLister lister(scan, options.progress);
  lister.list_root();
  scan.listed = static_cast<int64_t>(scan.items.size());
  thin_out(scan.items, options);
  const auto check = [&](size_t i, image::FileCheck& check_file) {
    thread_local std::string path;
    scan.path_of(scan.items[i], path);
    check_file(path);
  };
  const auto name_of = [&](const FolderScan::Item& item) {
    std::string path;
    scan.path_of(item, path);
    return path;
  };
  move_bad(scan.items, check_images(scan.items.size(), options, check), name_of, scan.bad);
  require_usable(root, scan.items.size(), scan.bad, options, lister.remedy());
  return scan;
}

}  // namespace howmany
