// SPDX-License-Identifier: Apache-2.0
// WebDataset shards: adjacent members with the same name up to the first dot form a sample, here
// KEY.jpg (or jpeg, png, webp) and its class in KEY.cls or KEY.json. Labels are used if every
// sample has one.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "core/base/text/format.h"
#include "core/data/formats.h"
#include "core/data/formats/image_list.h"
#include "core/data/formats/tar_index.h"
#include "core/data/formats/text_values.h"
#include "core/data/image_folder.h"
#include "core/data/images/file.h"
#include "core/data/images/samples.h"

namespace howmany {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kCompressed = {".gz", ".bz2", ".xz", ".zst"};
constexpr int64_t kMaxLabelBytes = 1 << 16;

struct Packed {
  size_t shard = 0;
  TarMember image;
  TarMember labels;  // KEY.cls, else KEY.json; without a name if there is neither
  int64_t label = 0;
};

// The parts of "a/b.c.JPG": "a/b" and "jpg". The key ends at the first dot of the base name, as in
// webdataset, and is empty for hidden files and names without a dot.
struct NameParts {
  std::string_view key;
  std::string type;
};

NameParts parts_of(std::string_view name) {
  const size_t base = name.rfind('/') + 1;  // 0 if there is no slash
  const size_t dot = name.find('.', base);
  if (dot == base || dot == std::string_view::npos) return {};
  return {name.substr(0, dot), lower(name.substr(name.rfind('.') + 1))};
}

// Groups members into samples. Counts what webdataset would read in another way.
class ShardGrouper {
 public:
  ShardGrouper(const std::vector<std::string>& shards, std::vector<Packed>& samples)
      : shards_(shards), samples_(samples) {}

  // Throws Error with only the reason.
  void add_shard(size_t shard) {
    TarIndex index = index_tar(shards_[shard]);
    links_ += index.links;
    shard_ = shard;
    keys_.clear();
    for (TarMember& member : index.members) {
      const auto [key, type] = parts_of(member.name);
      if (key.empty()) {
        if (!fs::path(member.name).filename().string().starts_with('.')) ++others_[""];
        continue;
      }
      if (key != key_) begin_sample(std::string(key));
      if (image::is_image_extension(type))
        images_.push_back(std::move(member));
      else if (type == "cls" || (type == "json" && labels_.name.empty()))
        labels_ = std::move(member);
      else
        ++others_["." + type];
    }
    begin_sample("");
  }

  // Members that are neither images nor labels.
  const Extensions& others() const { return others_; }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    for (const auto& [extension, count] : others_)
      if (is_other_image(extension))
        notes.push_back(number(count, "file") + " of a format that is not read: " + extension);
    if (links_ > 0) notes.push_back(number(links_, "link") + " left out, as webdataset does");
    if (split_.count > 0)
      notes.push_back(fmt::format(
          "members of {} are not adjacent (the first is {}), so webdataset does not join them: "
          "pack them with tar --sort=name",
          number(split_.count, "key"), split_.first));
    if (shared_.count > 0)
      notes.push_back(fmt::format(
          "{} with the key of another, each read as a sample (the first is {}): a key ends at the "
          "first dot of a file's name",
          number(shared_.count, "image"), shared_.first));
    return notes;
  }

 private:
  struct Cases {
    int64_t count = 0;
    std::string first;
    void add(const std::string& shard, const std::string& name) {
      if (count++ == 0) first = shard + ":" + name;
    }
  };

  void begin_sample(std::string key) {
    for (size_t i = 0; i < images_.size(); ++i) {
      if (i > 0) shared_.add(shards_[shard_], images_[i].name);
      samples_.push_back({shard_, std::move(images_[i]), labels_});
    }
    images_.clear();
    labels_ = {};
    if (!key.empty() && !keys_.insert(key).second) split_.add(shards_[shard_], key);
    key_ = std::move(key);
  }

  const std::vector<std::string>& shards_;
  std::vector<Packed>& samples_;
  size_t shard_ = 0;
  std::string key_;
  std::set<std::string> keys_;  // of this shard
  std::vector<TarMember> images_;
  TarMember labels_;
  Extensions others_;
  int64_t links_ = 0;
  Cases split_, shared_;
};

// Returns the label in KEY.cls, or KEY.json: a number or a word, or the member "label", "cls" or
// "class" of an object. Returns nullopt if there is none.
std::optional<std::string> label_in(const std::string& shard, const TarMember& member) {
  if (member.name.empty() || member.size > kMaxLabelBytes) return {};
  std::vector<uint8_t> bytes;
  image::read_part(shard, member.offset, member.size, bytes);
  std::string text(trimmed({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  if (parts_of(member.name).type == "json") {
    nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
    for (const char* name : {"label", "cls", "class"})
      if (json.is_object() && json.contains(name)) json = nlohmann::json(json[name]);
    text = json.is_string() ? json.get<std::string>() : json.is_number_integer() ? json.dump() : "";
  }
  if (text.empty()) return {};
  return text;
}

// Sets the labels and returns the number of classes; 0 if not every sample has a class.
int64_t read_labels(const std::vector<std::string>& shards, std::vector<Packed>& samples,
                    std::vector<std::string>& notes) {
  std::vector<std::string> texts;
  const Packed* without = nullptr;
  for (const Packed& sample : samples)
    if (auto label = label_in(shards[sample.shard], sample.labels))
      texts.push_back(std::move(*label));
    else if (without == nullptr)
      without = &sample;
  if (texts.empty()) return 0;
  if (without != nullptr) {
    notes.push_back(
        fmt::format("labels are not used, because {} of {} samples have none, the first is {}:{}",
                    samples.size() - texts.size(), samples.size(), shards[without->shard],
                    without->image.name));
    return 0;
  }
  const Labels labels = labels_from(texts);
  if (labels.classes == 0) notes.emplace_back("labels are not used, because they are no classes");
  for (size_t i = 0; labels.classes > 0 && i < samples.size(); ++i)
    samples[i].label = static_cast<int64_t>(labels.values[i]);
  return labels.classes;
}

class TarDataset final : public ImageSamples {
 public:
  TarDataset(std::string origin, std::vector<std::string> shards, std::vector<Packed> samples,
             const ImageFolderOptions& options, bool has_labels)
      : ImageSamples(options, has_labels),
        origin_(std::move(origin)),
        shards_(std::move(shards)),
        samples_(std::move(samples)) {}

  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  std::string describe() const override {
    return fmt::format("{}{} in {} of {}", number(size(), "image"),
                       spec().y.numel() == 0 ? " without classes" : "",
                       number(std::ssize(shards_), "tar shard"), origin_);
  }
  FilePart part_of(int64_t index) const override {
    const Packed& sample = samples_.at(static_cast<size_t>(index));
    return {shards_[sample.shard], sample.image.offset, sample.image.size};
  }
  std::string name_of(int64_t index) const override {
    const Packed& sample = samples_.at(static_cast<size_t>(index));
    return shards_[sample.shard] + ":" + sample.image.name;
  }

 private:
  void read(int64_t index, std::string&, std::vector<uint8_t>& bytes) const override {
    const Packed& sample = samples_[static_cast<size_t>(index)];
    image::read_part(shards_[sample.shard], sample.image.offset, sample.image.size, bytes);
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
  const std::string extension = extension_of(path.string());
  const bool compressed = extension_of(path.stem().string()) == ".tar" &&
                          std::ranges::count(kCompressed, extension) > 0;
  return !path.filename().string().starts_with('.') &&
         (extension == ".tar" || extension == ".tgz" || compressed);
}

// Returns the shards below the folder, also through links, or none if there is an image.
std::vector<std::string> shards_below(const std::string& path) {
  std::vector<std::string> shards;
  std::error_code error;
  const auto options = fs::directory_options::skip_permission_denied |
                       fs::directory_options::follow_directory_symlink;
  std::set<fs::path> visited = {fs::canonical(path, error)};
  for (auto it = fs::recursive_directory_iterator(path, options, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (named_as_shard(it->path())) shards.push_back(it->path().string());
    if (named_as_image(it->path().string())) return {};
    std::error_code ignored;
    if (it->is_symlink(ignored) && !visited.insert(fs::canonical(it->path(), ignored)).second)
      it.disable_recursion_pending();
  }
  return shards;
}

// Returns the .tar file, the .tar files of the folder, or those of its subfolders if it has neither
// images nor .tar files. Sorted by name.
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
  if (shards.empty()) shards = shards_below(path);
  std::ranges::sort(shards);
  return shards;
}

}  // namespace

std::optional<OpenedData> formats::tar_shards(const std::string& path, const DataOptions& options) {
  OpenedData opened;
  const std::vector<std::string> shards = shards_at(path);
  if (shards.empty()) return {};
  check_image_options(options.images);
  std::vector<Packed> samples;
  ShardGrouper grouping(shards, samples);
  for (size_t shard = 0; shard < shards.size(); ++shard) try {
      grouping.add_shard(shard);
    } catch (const Error& e) {
      opened.bad.push_back({shards[shard], e.what()});
    }
  opened.notes = grouping.notes();
  opened.listed = static_cast<int64_t>(samples.size());
  thin_out(samples, options.images);
  const auto check = [&](size_t i, image::FileCheck& check_part) {
    const TarMember& image = samples[i].image;
    check_part(shards[samples[i].shard], image.offset, image.size);
  };
  const auto name_of = [&](const Packed& sample) {
    return shards[sample.shard] + ":" + sample.image.name;
  };
  move_bad(samples, check_images(samples.size(), options.images, check), name_of, opened.bad);
  const std::string found = !opened.notes.empty() ? fmt::format("{}", fmt::join(opened.notes, "; "))
                            : grouping.others().empty() ? "it has no files"
                                                        : "it has " + describe(grouping.others());
  require_usable(path, samples.size(), opened.bad, options.images,
                 found + ". Expected KEY.jpg, KEY.jpeg, KEY.png or KEY.webp");
  opened.classes = read_labels(shards, samples, opened.notes);
  auto dataset = std::make_unique<TarDataset>(path, shards, std::move(samples), options.images,
                                              opened.classes > 0);
  opened.images = dataset.get();
  opened.dataset = std::move(dataset);
  return opened;
}

}  // namespace howmany
