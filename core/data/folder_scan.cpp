#include "core/data/folder_scan.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <filesystem>
#include <system_error>
#include <thread>

#include "core/data/image_file.h"
#include "core/error.h"

namespace howmany {
namespace {

namespace fs = std::filesystem;

constexpr size_t kCheckers = 16;
constexpr size_t kFilesPerChecker = 32;  // fewer are not worth a thread

// Entries of a folder, sorted by name.
std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  for (const auto& entry : fs::directory_iterator(folder)) entries.push_back(entry);
  std::ranges::sort(entries, {}, [](const auto& e) { return e.path().filename().string(); });
  return entries;
}

bool named_as_image(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

void list_class(const fs::path& folder, FolderScan& scan) {
  const auto label = static_cast<int64_t>(scan.classes.size());
  scan.classes.push_back(folder.filename().string());
  try {
    for (const auto& entry : entries_of(folder)) {
      if (named_as_image(entry.path()))
        scan.items.push_back({entry.path().filename().string(), label});
      else
        scan.ignored.push_back(entry.path().string());
    }
  } catch (const fs::filesystem_error& e) {
    scan.bad.push_back({folder.string(), e.code().message()});
  }
}

void list_root(FolderScan& scan) {
  std::error_code error;
  HM_ENSURE(fs::exists(scan.root, error), "[image_folder] {} does not exist", scan.root);
  HM_ENSURE(fs::is_directory(scan.root, error), "[image_folder] {} is not a folder", scan.root);
  try {
    for (const auto& entry : entries_of(scan.root)) {
      if (entry.path().filename().string().front() == '.' || !entry.is_directory(error))
        scan.ignored.push_back(entry.path().string());
      else
        list_class(entry.path(), scan);
    }
  } catch (const fs::filesystem_error& e) {
    throw Error(fmt::format("[image_folder] {}: {}", scan.root, e.code().message()));
  }
  HM_ENSURE(!scan.classes.empty(),
            "[image_folder] {} has no class folders: expected {}/CLASS/FILE.jpg", scan.root,
            scan.root);
}

// Keeps `most` of the items, as far apart as can be.
void thin_out(std::vector<FolderScan::Item>& items, int64_t most) {
  const auto all = static_cast<int64_t>(items.size());
  if (most < 1 || most >= all) return;
  for (int64_t i = 0; i < most; ++i)
    std::swap(items[static_cast<size_t>(i)], items[static_cast<size_t>(i * all / most)]);
  items.resize(static_cast<size_t>(most));
}

// Why each item is bad; empty when it is not.
std::vector<std::string> check(const FolderScan& scan, int64_t max_pixels) {
  std::vector<std::string> reasons(scan.items.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    image::FileCheck check_file(max_pixels);
    std::string path;
    for (size_t i = next++; i < reasons.size(); i = next++) {
      scan.path_of(scan.items[i], path);
      try {
        check_file(path);
      } catch (const std::exception& e) {
        reasons[i] = e.what();
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    try {
      const size_t wanted = std::min(kCheckers, reasons.size() / kFilesPerChecker);
      while (helpers.size() < wanted) helpers.emplace_back(work);
    } catch (const std::system_error&) {
      // No more threads to be had: those that there are do the work.
    }
    work();
  }
  return reasons;
}

}  // namespace

void FolderScan::path_of(const Item& item, std::string& path) const {
  path.assign(root).append("/").append(classes[static_cast<size_t>(item.label)]);
  path.append("/").append(item.file);
}

FolderScan scan_folder(const std::string& root, int64_t max_pixels, int64_t most) {
  FolderScan scan{.root = root, .classes = {}, .ignored = {}, .items = {}, .bad = {}};
  list_root(scan);
  scan.listed = static_cast<int64_t>(scan.items.size());
  thin_out(scan.items, most);
  std::vector<std::string> reasons = check(scan, max_pixels);
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
