// SPDX-License-Identifier: Apache-2.0
// WebDataset shards: members with the same name up to the first dot form a sample, here KEY.jpg (or
// jpeg, png, webp) and KEY.cls, the class as a number.
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <filesystem>

#include "core/base/error.h"
#include "core/data/formats.h"
#include "core/data/formats/tar_index.h"
#include "core/data/image_folder.h"
#include "core/data/images/file.h"
#include "core/data/images/samples.h"

namespace howmany {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kCompressed = {".gz", ".bz2", ".xz", ".zst"};
constexpr int64_t kMaxLabelBytes = 32;
constexpr int64_t kMaxClasses = 1 << 24;

struct Packed {
  size_t shard;
  int64_t offset, size, label;
  std::string name;
};

struct NameParts {
  std::string_view key, extension;  // "a/b.c.jpg": "a/b" and "c.jpg"
};

NameParts parts_of(std::string_view name) {
  const size_t slash = name.rfind('/');
  const size_t dot = name.find('.', slash == std::string_view::npos ? 0 : slash + 1);
  if (dot == std::string_view::npos) return {name, {}};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

int64_t class_in(const std::string& shard, const TarMember& member) {
  std::vector<uint8_t> bytes;
  HM_ENSURE(member.size <= kMaxLabelBytes, "{}: {} has {} bytes, a class number is shorter", shard,
            member.name, member.size);
  image::read_part(shard, member.offset, member.size, bytes);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  int64_t label = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), label);
  HM_ENSURE(
      error == std::errc{} && end == text.data() + text.size() && label >= 0 && label < kMaxClasses,
      "{}: {} is '{}', expected a class number", shard, member.name, text);
  return label;
}

// Groups members into samples. The members of one sample must be adjacent.
class ShardGrouper {
 public:
  ShardGrouper(const std::vector<std::string>& shards, std::vector<Packed>& samples)
      : shards_(shards), samples_(samples) {}

  void add_shard(size_t shard) {
    shard_ = shard;
    for (const TarMember& member : index_tar(shards_[shard])) {
      const auto [key, extension] = parts_of(member.name);
      if (key != key_) finish();
      key_ = key;
      if (image::is_image_extension(extension)) take_image(member);
      if (extension == "cls") label_ = class_in(shards_[shard], member);
    }
    finish();
  }

 private:
  void take_image(const TarMember& member) {
    HM_ENSURE(!image_, "{}: {} has two images, {} and {}", shards_[shard_], key_, image_->name,
              member.name);
    image_ = member;
  }

  void finish() {
    if (image_) {
      HM_ENSURE(label_ >= 0, "{}: {} has no {}.cls", shards_[shard_], image_->name, key_);
      samples_.push_back({shard_, image_->offset, image_->size, label_, std::move(image_->name)});
    }
    image_.reset();
    label_ = -1;
    key_.clear();
  }

  const std::vector<std::string>& shards_;
  std::vector<Packed>& samples_;
  size_t shard_ = 0;
  std::string key_;
  std::optional<TarMember> image_;
  int64_t label_ = -1;
};

class TarDataset final : public ImageSamples {
 public:
  TarDataset(std::string origin, std::vector<std::string> shards, std::vector<Packed> samples,
             const ImageFolderOptions& options)
      : ImageSamples(options),
        origin_(std::move(origin)),
        shards_(std::move(shards)),
        samples_(std::move(samples)) {}

  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  std::string describe() const override {
    return fmt::format("{} images in {} tar shards of {}", size(), shards_.size(), origin_);
  }
  std::string name_of(int64_t index) const override {
    const Packed& sample = samples_.at(static_cast<size_t>(index));
    return shards_[sample.shard] + ":" + sample.name;
  }

 private:
  void read(int64_t index, std::string&, std::vector<uint8_t>& bytes) const override {
    const Packed& sample = samples_[static_cast<size_t>(index)];
    HM_ENSURE(sample.size / 8 <= options().max_pixels + 4096,
              "{} bytes is more than {} pixels need", sample.size, options().max_pixels);
    image::read_part(shards_[sample.shard], sample.offset, sample.size, bytes);
  }
  int64_t label_of(int64_t index) const override {
    return samples_[static_cast<size_t>(index)].label;
  }
  std::string origin() const override { return origin_; }

  std::string origin_;
  std::vector<std::string> shards_;
  std::vector<Packed> samples_;
};

// Also accepts compressed shards, so that opening one reports why it is rejected.
bool named_as_shard(const fs::path& path) {
  const bool compressed = path.stem().extension() == ".tar" &&
                          std::ranges::count(kCompressed, path.extension().string()) > 0;
  return path.extension() == ".tar" || path.extension() == ".tgz" || compressed;
}

// Returns the .tar file, or the .tar files of the folder, sorted by name.
std::vector<std::string> shards_at(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    if (named_as_shard(path)) return {path};
    return {};
  }
  std::vector<std::string> shards;
  for (auto it = fs::directory_iterator(path, error); !error && it != fs::directory_iterator();
       it.increment(error))
    if (named_as_shard(it->path())) shards.push_back(it->path().string());
  std::ranges::sort(shards);
  return shards;
}

}  // namespace

std::optional<OpenedData> formats::tar_shards(const std::string& path, const DataOptions& options) {
  OpenedData opened;
  opened.files = shards_at(path);
  if (opened.files.empty()) return {};
  check_image_options(options.images);
  std::vector<Packed> samples;
  ShardGrouper grouping(opened.files, samples);
  for (size_t shard = 0; shard < opened.files.size(); ++shard) grouping.add_shard(shard);
  HM_ENSURE(!samples.empty(), "[tar_shards] {}: no KEY.jpg, KEY.jpeg, KEY.png or KEY.webp in it",
            path);
  for (const Packed& sample : samples) opened.classes = std::max(opened.classes, sample.label + 1);
  opened.listed = static_cast<int64_t>(samples.size());
  auto dataset =
      std::make_unique<TarDataset>(path, opened.files, std::move(samples), options.images);
  opened.images = dataset.get();
  opened.dataset = std::move(dataset);
  return opened;
}

}  // namespace howmany
