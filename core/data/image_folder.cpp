#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include "core/data/dataset.h"
#include "core/data/image_file.h"
#include "core/data/transform.h"
#include "core/error.h"

namespace howmany {
namespace {

namespace fs = std::filesystem;

constexpr size_t kNamed = 5;  // bad images that a message names

struct Item {
  std::string file;
  int64_t label;
};

// What a thread reuses from sample to sample.
struct Scratch {
  std::string path;
  std::vector<uint8_t> bytes;
  image::AnyDecoder decoder;
  image::Resampler resampler;
};

class FolderDataset final : public ImageDataset {
 public:
  FolderDataset(std::string root, std::vector<std::string> classes, std::vector<Item> items,
                const ImageFolderOptions& options)
      : root_(std::move(root)),
        classes_(std::move(classes)),
        items_(std::move(items)),
        options_(options) {}

  int64_t size() const override { return static_cast<int64_t>(items_.size()); }

  SampleSpec spec() const override { return {.x = {options_.size, options_.size, 3}}; }

  std::string describe() const override {
    return fmt::format("{} images of {} classes in {}", size(), classes_.size(), root_);
  }

  void get(int64_t index, uint64_t key, void* x, void* y) const override {
    HM_REQUIRE(index >= 0 && index < size(), "[image_folder] sample {} of {}", index, size());
    const Rng rng(key, static_cast<uint64_t>(index));
    for (int64_t tried = 0; tried < size(); ++tried) {
      const Item& item = items_[static_cast<size_t>((index + tried) % size())];
      if (!load(item, rng, static_cast<float*>(x))) continue;
      std::memcpy(y, &item.label, sizeof item.label);
      return;
    }
    throw Error(fmt::format("[image_folder] no image of {} can be decoded", root_));
  }

  std::vector<BadImage> replaced() const override {
    std::lock_guard lock(mutex_);
    std::vector<BadImage> list;
    for (const auto& [path, why] : replaced_) list.push_back({path, why});
    return list;
  }

 private:
  bool load(const Item& item, const Rng& rng, float* x) const {
    thread_local Scratch scratch;
    auto& [path, bytes, decoder, resampler] = scratch;
    path.assign(root_).append("/").append(classes_[static_cast<size_t>(item.label)]);
    path.append("/").append(item.file);
    try {
      image::read_file(path, options_.max_pixels, bytes);
      const image::Size size = decoder.open(bytes, options_.max_pixels);
      const auto window = options_.train ? image::random_resized_crop(size, rng)
                                         : image::resized_centre_crop(size, options_.size);
      const int shrink = image::shrink_for(window, options_.size, decoder.max_shrink());
      const auto wanted = resampler.plan(window, options_.size, shrink);
      resampler.run(decoder.decode(shrink, wanted), options_.normalize, x);
      return true;
    } catch (const Error& error) {
      if (options_.on_bad == OnBadImage::refuse)
        throw Error(fmt::format("[image_folder] {}: {}", path, error.what()));
      std::lock_guard lock(mutex_);
      replaced_.emplace(path, error.what());
      return false;
    }
  }

  std::string root_;
  std::vector<std::string> classes_;
  std::vector<Item> items_;
  ImageFolderOptions options_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::string> replaced_;
};

// Names in a folder, sorted.
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

class Scan {
 public:
  explicit Scan(int64_t max_pixels) : check_(max_pixels) {}

  void root(const fs::path& root) {
    std::error_code error;
    HM_ENSURE(fs::exists(root, error), "[image_folder] {} does not exist", root.string());
    HM_ENSURE(fs::is_directory(root, error), "[image_folder] {} is not a folder", root.string());
    try {
      for (const auto& entry : entries_of(root)) {
        const std::string name = entry.path().filename().string();
        if (name.front() == '.' || !entry.is_directory(error))
          ignored.push_back(entry.path().string());
        else
          class_folder(entry.path(), name);
      }
    } catch (const fs::filesystem_error& e) {
      throw Error(fmt::format("[image_folder] {}: {}", root.string(), e.code().message()));
    }
    HM_ENSURE(!classes.empty(),
              "[image_folder] {} has no class folders: expected {}/CLASS/FILE.jpg", root.string(),
              root.string());
  }

  std::vector<std::string> classes, ignored;
  std::vector<Item> items;
  std::vector<BadImage> bad;

 private:
  void class_folder(const fs::path& folder, const std::string& name) {
    classes.push_back(name);
    const auto label = static_cast<int64_t>(classes.size()) - 1;
    try {
      for (const auto& entry : entries_of(folder)) file(entry.path(), label);
    } catch (const fs::filesystem_error& e) {
      bad.push_back({folder.string(), e.code().message()});
    }
  }

  void file(const fs::path& path, int64_t label) {
    if (!named_as_image(path)) {
      ignored.push_back(path.string());
      return;
    }
    try {
      check_(path.string());
      items.push_back({path.filename().string(), label});
    } catch (const Error& e) {
      bad.push_back({path.string(), e.what()});
    }
  }

  image::FileCheck check_;
};

std::string first_of(const std::vector<BadImage>& bad) {
  std::string text;
  for (size_t i = 0; i < std::min(bad.size(), kNamed); ++i)
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", bad[i].path, bad[i].why);
  if (bad.size() > kNamed) text += fmt::format(" and {} more", bad.size() - kNamed);
  return text;
}

}  // namespace

ImageFolder image_folder(const std::string& root, const ImageFolderOptions& options) {
  HM_REQUIRE(options.size >= 1 && options.size <= 8192, "[image_folder] image size {}",
             options.size);
  HM_REQUIRE(options.max_pixels >= 1, "[image_folder] max_pixels {}", options.max_pixels);
  Scan scan(options.max_pixels);
  scan.root(root);
  const size_t found = scan.items.size() + scan.bad.size();
  HM_ENSURE(scan.bad.empty() || options.on_bad == OnBadImage::skip,
            "[image_folder] {} of {} images are bad: {}", scan.bad.size(), found,
            first_of(scan.bad));
  HM_ENSURE(!scan.items.empty(), "[image_folder] no usable image in {}{}{}", root,
            scan.bad.empty() ? "" : ": ", first_of(scan.bad));
  auto dataset =
      std::make_unique<FolderDataset>(root, scan.classes, std::move(scan.items), options);
  return {std::move(dataset), std::move(scan.classes), std::move(scan.bad),
          std::move(scan.ignored)};
}

}  // namespace howmany
