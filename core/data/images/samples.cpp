// SPDX-License-Identifier: Apache-2.0
#include "core/data/images/samples.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/base/error.h"
#include "core/data/image_folder.h"
#include "core/data/images/image.h"
#include "core/data/images/transform.h"

namespace howmany {
namespace {

constexpr size_t kNamed = 5;             // bad images listed in a message
constexpr int64_t kReplacements = 1000;  // if more in a row fail, the folder is probably gone

using Clock = std::chrono::steady_clock;

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

void add(std::atomic<int64_t>& total, int64_t value) {
  total.fetch_add(value, std::memory_order_relaxed);
}

// Buffers that a thread reuses for each sample.
struct Scratch {
  std::string path;
  std::vector<uint8_t> bytes;
  image::AnyDecoder decoder;
  image::Resampler resampler;
};

}  // namespace

ImageSamples::ImageSamples(const ImageFolderOptions& options, bool has_labels)
    : options_(options), has_labels_(has_labels) {}

void ImageSamples::get(int64_t index, uint64_t key, void* x, void* y) const {
  HM_REQUIRE(index >= 0 && index < size(), "[images] sample {} of {}", index, size());
  const Rng rng(key, static_cast<uint64_t>(index));
  const int64_t candidates = std::min(size(), kReplacements);
  for (int64_t tried = 0; tried < candidates; ++tried) {
    const int64_t candidate = (index + tried) % size();
    if (!load(candidate, rng, static_cast<float*>(x))) continue;
    if (!has_labels_) return;
    const int64_t label = label_of(candidate);
    std::memcpy(y, &label, sizeof label);
    return;
  }
  throw Error(
      fmt::format("[images] {}: none of {} images in a row can be decoded", origin(), candidates));
}

bool ImageSamples::load(int64_t index, const Rng& rng, float* x) const {
  try {
    make(index, rng, x);
    return true;
  } catch (const Error& error) {
    const std::string name = name_of(index);
    if (options_.on_bad == OnBadImage::refuse)
      throw Error(fmt::format("[images] {}: {}", name, error.what()));
    std::lock_guard lock(mutex_);
    replaced_.emplace(name, error.what());
    return false;
  }
}

void ImageSamples::make(int64_t index, const Rng& rng, float* x) const {
  thread_local Scratch scratch;
  Laps laps;
  read(index, scratch.path, scratch.bytes);
  const auto file_bytes = static_cast<int64_t>(scratch.bytes.size());
  laps.lap(tally_.read_ns);
  const image::Size size = scratch.decoder.open(scratch.bytes, options_.max_pixels);
  const auto window = options_.train ? image::random_resized_crop(size, rng)
                                     : image::resized_centre_crop(size, options_.size);
  const int shrink = image::shrink_for(window, options_.size, scratch.decoder.max_shrink());
  const auto wanted = scratch.resampler.plan(window, options_.size, shrink);
  const image::Pixels pixels = scratch.decoder.decode(shrink, wanted);
  laps.lap(tally_.decode_ns);
  scratch.resampler.run(pixels, options_.normalize, x);
  laps.lap(tally_.transform_ns);
  add(tally_.samples, 1);
  add(tally_.file_bytes, file_bytes);
  add(tally_.pixels, size.width * size.height);
}

StageTimes operator-(const StageTimes& after, const StageTimes& before) {
  return {.samples = after.samples - before.samples,
          .file_bytes = after.file_bytes - before.file_bytes,
          .pixels = after.pixels - before.pixels,
          .read_s = after.read_s - before.read_s,
          .decode_s = after.decode_s - before.decode_s,
          .transform_s = after.transform_s - before.transform_s};
}

StageTimes ImageSamples::stages() const {
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

std::vector<BadImage> ImageSamples::replaced() const {
  std::lock_guard lock(mutex_);
  std::vector<BadImage> list;
  for (const auto& [path, why] : replaced_) list.push_back({path, why});
  return list;
}

std::string first_of(const std::vector<BadImage>& bad) {
  std::string text;
  for (size_t i = 0; i < std::min(bad.size(), kNamed); ++i)
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", bad[i].path, bad[i].why);
  if (bad.size() > kNamed) text += fmt::format(" and {} more", bad.size() - kNamed);
  return text;
}

void check_image_options(const ImageFolderOptions& options) {
  HM_REQUIRE(options.size >= 1 && options.size <= 8192, "[images] image size {}", options.size);
  HM_REQUIRE(options.max_pixels >= 1, "[images] max_pixels {}", options.max_pixels);
}

}  // namespace howmany
