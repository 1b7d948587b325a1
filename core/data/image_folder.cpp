#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>

#include "core/data/dataset.h"
#include "core/data/folder_scan.h"
#include "core/data/image_file.h"
#include "core/data/transform.h"
#include "core/error.h"

namespace howmany {
namespace {

constexpr size_t kNamed = 5;             // bad images that a message names
constexpr int64_t kReplacements = 1000;  // more in a row mean that the folder is gone

using Clock = std::chrono::steady_clock;

// What all threads add to: some 0.2 us a sample.
struct Tally {
  std::atomic<int64_t> samples{0}, file_bytes{0}, pixels{0}, read_ns{0}, decode_ns{0},
      transform_ns{0};
};

// Adds the time since the last lap to a counter.
class Laps {
 public:
  void lap(std::atomic<int64_t>& total) {
    const Clock::time_point now = Clock::now();
    total.fetch_add(std::chrono::nanoseconds(now - last_).count(), std::memory_order_relaxed);
    last_ = now;
  }

 private:
  Clock::time_point last_ = Clock::now();
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
  FolderDataset(FolderScan scan, const ImageFolderOptions& options)
      : scan_(std::move(scan)), options_(options) {}

  int64_t size() const override { return static_cast<int64_t>(scan_.items.size()); }

  SampleSpec spec() const override { return {.x = {options_.size, options_.size, 3}}; }

  std::string describe() const override {
    return fmt::format("{} images of {} classes in {}", size(), scan_.classes.size(), scan_.root);
  }

  void get(int64_t index, uint64_t key, void* x, void* y) const override {
    HM_REQUIRE(index >= 0 && index < size(), "[image_folder] sample {} of {}", index, size());
    const Rng rng(key, static_cast<uint64_t>(index));
    const int64_t candidates = std::min(size(), kReplacements);
    for (int64_t tried = 0; tried < candidates; ++tried) {
      const auto& item = scan_.items[static_cast<size_t>((index + tried) % size())];
      if (!load(item, rng, static_cast<float*>(x))) continue;
      std::memcpy(y, &item.label, sizeof item.label);
      return;
    }
    throw Error(fmt::format("[image_folder] {}: none of {} images in a row can be decoded",
                            scan_.root, candidates));
  }

  std::string name_of(int64_t index) const override {
    std::string path;
    scan_.path_of(scan_.items.at(static_cast<size_t>(index)), path);
    return path;
  }

  StageTimes stages() const override {
    const auto seconds = [](const std::atomic<int64_t>& ns) {
      return static_cast<double>(ns.load()) * 1e-9;
    };
    return {.samples = tally_.samples,
            .file_bytes = tally_.file_bytes,
            .pixels = tally_.pixels,
            .read_s = seconds(tally_.read_ns),
            .decode_s = seconds(tally_.decode_ns),
            .transform_s = seconds(tally_.transform_ns)};
  }

  std::vector<BadImage> replaced() const override {
    std::lock_guard lock(mutex_);
    std::vector<BadImage> list;
    for (const auto& [path, why] : replaced_) list.push_back({path, why});
    return list;
  }

 private:
  bool load(const FolderScan::Item& item, const Rng& rng, float* x) const {
    thread_local Scratch scratch;
    auto& [path, bytes, decoder, resampler] = scratch;
    scan_.path_of(item, path);
    Laps laps;
    try {
      image::read_file(path, options_.max_pixels, bytes);
      laps.lap(tally_.read_ns);
      const image::Size size = decoder.open(bytes, options_.max_pixels);
      const auto window = options_.train ? image::random_resized_crop(size, rng)
                                         : image::resized_centre_crop(size, options_.size);
      const int shrink = image::shrink_for(window, options_.size, decoder.max_shrink());
      const auto wanted = resampler.plan(window, options_.size, shrink);
      const image::Pixels pixels = decoder.decode(shrink, wanted);
      laps.lap(tally_.decode_ns);
      resampler.run(pixels, options_.normalize, x);
      laps.lap(tally_.transform_ns);
      count(static_cast<int64_t>(bytes.size()), size.width * size.height);
      return true;
    } catch (const Error& error) {
      if (options_.on_bad == OnBadImage::refuse)
        throw Error(fmt::format("[image_folder] {}: {}", path, error.what()));
      std::lock_guard lock(mutex_);
      replaced_.emplace(path, error.what());
      return false;
    }
  }

  void count(int64_t bytes, int64_t pixels) const {
    tally_.samples.fetch_add(1, std::memory_order_relaxed);
    tally_.file_bytes.fetch_add(bytes, std::memory_order_relaxed);
    tally_.pixels.fetch_add(pixels, std::memory_order_relaxed);
  }

  FolderScan scan_;
  ImageFolderOptions options_;
  mutable Tally tally_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::string> replaced_;
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
  FolderScan scan = scan_folder(root, options.max_pixels, options.most);
  HM_ENSURE(scan.bad.empty() || options.on_bad == OnBadImage::skip,
            "[image_folder] {} of {} images are bad: {}", scan.bad.size(),
            scan.items.size() + scan.bad.size(), first_of(scan.bad));
  HM_ENSURE(!scan.items.empty(), "[image_folder] no usable image in {}{}{}", root,
            scan.bad.empty() ? "" : ": ", first_of(scan.bad));
  ImageFolder folder{nullptr, scan.classes, std::move(scan.bad), std::move(scan.ignored),
                     scan.listed};
  folder.dataset = std::make_unique<FolderDataset>(std::move(scan), options);
  return folder;
}

}  // namespace howmany
