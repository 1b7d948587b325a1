// SPDX-License-Identifier: Apache-2.0
#include "benches/loader/data.h"

#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
// jpeglib.h needs size_t and FILE declared before it.
#include <jpeglib.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/temporary.h"
#include "core/base/text/print_stderr.h"
#include "core/data/formats.h"
#include "core/data/image_folder.h"
#include "core/tensor/rng.h"

namespace howmany::benches {
namespace {

namespace fs = std::filesystem;

constexpr int kQuality = 90;
constexpr int64_t kEndless = 1 << 20;  // samples per epoch, more than any measurement uses
constexpr int64_t kHeader = 1 << 16;   // bytes before the first sample of a file, at most
constexpr int64_t kMaxBytes = int64_t{1} << 30;  // read of files, more than any cache of a CPU

class NullDataset : public Dataset {
 public:
  NullDataset(const SampleSpec& spec, int64_t size) : spec_(spec), size_(size) {}
  int64_t size() const override { return size_; }
  SampleSpec spec() const override { return spec_; }
  void get(int64_t, uint64_t, void*, void*) const override {}
  std::string describe() const override { return "samples that cost nothing"; }

 private:
  SampleSpec spec_;
  int64_t size_;
};

// Writes the sample once, and is busy or sleeps for a given time per sample.
class CostlyDataset final : public NullDataset {
 public:
  using Spend = void (*)(std::chrono::microseconds);
  CostlyDataset(const SampleSpec& spec, std::chrono::microseconds cost, Spend spend)
      : NullDataset(spec, kEndless),
        bytes_(static_cast<size_t>(spec.x.numel()) * 4),
        cost_(cost),
        spend_(spend) {}
  void get(int64_t, uint64_t, void* x, void* y) const override {
    std::memset(x, 0, bytes_);
    std::memset(y, 0, sizeof(int64_t));
    spend_(cost_);
  }

 private:
  size_t bytes_;
  std::chrono::microseconds cost_;
  Spend spend_;
};

// The first `used` samples, repeated up to `size`.
class Repeated final : public Dataset {
 public:
  Repeated(const Dataset& inner, int64_t used, int64_t size)
      : inner_(inner), used_(used), size_(size) {}
  int64_t size() const override { return size_; }
  SampleSpec spec() const override { return inner_.spec(); }
  void get(int64_t index, uint64_t key, void* x, void* y) const override {
    inner_.get(index % used_, key, x, y);
  }
  std::string describe() const override { return inner_.describe(); }
  std::string name_of(int64_t index) const override { return inner_.name_of(index % used_); }

 private:
  const Dataset& inner_;
  int64_t used_, size_;
};

// Draws gradients, waves and a little noise, with about as many bytes per pixel as photos.
void paint_row(const Rng& rng, int64_t y, int64_t width, std::vector<uint8_t>& row) {
  const double phase = 6 * rng.uniform(0), pitch = 0.02 + 0.06 * rng.uniform(1);
  for (int64_t x = 0; x < width; ++x)
    for (int64_t c = 0; c < 3; ++c) {
      const auto along = static_cast<double>(x), down = static_cast<double>(y);
      const double wave = std::sin(pitch * along + phase) +
                          std::sin(pitch * 0.7 * down + 2.0 * static_cast<double>(c));
      const double noise = rng.uniform(static_cast<uint64_t>(16 + (y * width + x) * 3 + c)) - 0.5;
      row[static_cast<size_t>(3 * x + c)] = static_cast<uint8_t>(128 + 45 * wave + 24 * noise);
    }
}

void paint(const std::string& path, int64_t width, int64_t height, uint64_t seed) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wb"),
                                                             std::fclose);
  HM_ENSURE(file != nullptr, "[loader_bench] cannot write {}", path);
  jpeg_compress_struct info{};
  jpeg_error_mgr error{};
  info.err = jpeg_std_error(&error);
  jpeg_create_compress(&info);
  jpeg_stdio_dest(&info, file.get());
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, kQuality, TRUE);
  jpeg_start_compress(&info, TRUE);
  std::vector<uint8_t> row(static_cast<size_t>(3 * width));
  const Rng rng(seed);
  for (int64_t y = 0; y < height; ++y) {
    paint_row(rng, y, width, row);
    JSAMPROW rows[] = {row.data()};
    jpeg_write_scanlines(&info, rows, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  HM_ENSURE(std::fflush(file.get()) == 0, "[loader_bench] cannot write {}: disk full?", path);
}

// Writes a folder of two classes, which ~LoaderData removes.
void paint_folder(const std::string& root, const LoaderDataOptions& options) {
  for (const char* name : {"a", "b"}) fs::create_directories(fs::path(root) / name);
  // Drawing costs more than decoding, so only a few pictures are drawn and the others are copies.
  // Links instead of copies would share pages of the page cache.
  constexpr int64_t kPictures = 16;
  for (int64_t i = 0; i < options.images; ++i) {
    const auto name = [&](int64_t k) {
      return fmt::format("{}/{}/{:05}.jpg", root, k % 2 == 0 ? "a" : "b", k);
    };
    if (i < kPictures)
      paint(name(i), options.width, options.height, static_cast<uint64_t>(i));
    else
      fs::copy_file(name(i % kPictures), name(i));
  }
}

std::string temporary_folder() {
  std::string name = (temporary_directory() / "howmany-loader-XXXXXX").string();
  HM_ENSURE(::mkdtemp(name.data()) != nullptr, "[loader_bench] cannot make {}", name);
  return name;
}

std::chrono::microseconds cost_of(const std::string& data) {
  const std::string_view digits = std::string_view(data).substr(5);
  int64_t value = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  HM_REQUIRE(error == std::errc{} && end == digits.data() + digits.size() && value >= 0 &&
                 value <= 60'000'000,
             "--data {}: expected {}MICROSECONDS", data, data.substr(0, 5));
  return std::chrono::microseconds(value);
}

}  // namespace

LoaderData::LoaderData(const LoaderDataOptions& options) {
  const SampleSpec spec{.x = {options.size, options.size, 3}};
  if (options.data == "null") {
    name_ = "null";
    samples_ = std::make_unique<NullDataset>(spec, kEndless);
  } else if (options.data.starts_with("cost:")) {
    name_ = options.data;
    samples_ = std::make_unique<CostlyDataset>(spec, cost_of(options.data), burn);
  } else if (options.data.starts_with("wait:")) {
    name_ = options.data;
    samples_ = std::make_unique<CostlyDataset>(
        spec, cost_of(options.data), [](auto cost) { std::this_thread::sleep_for(cost); });
  } else if (options.data == "synthetic") {
    name_ = "painted";
    painted_ = temporary_folder();
    guard_.emplace(std::vector{painted_});
    try {
      paint_folder(painted_, options);
      open(painted_, options);
    } catch (...) {
      fs::remove_all(painted_);
      throw;
    }
  } else {
    open(options.data, options);
    name_ = format_ == "image_folder" ? "images" : format_;
  }
  endless_ = std::make_unique<Repeated>(opened_ ? *opened_ : *samples_, samples_->size(),
                                        std::max(kEndless, samples_->size()));
}

LoaderData::~LoaderData() {
  std::error_code ignored;
  if (!painted_.empty()) fs::remove_all(painted_, ignored);
}

void LoaderData::open(const std::string& root, const LoaderDataOptions& options) {
  try {
    OpenedData opened = open_data(root, {.images = {.size = options.size,
                                                    .on_bad = OnBadImage::skip,
                                                    .most = options.most,
                                                    .progress = tell_files(root)},
                                         .sequence = options.sequence});
    format_ = opened.format;
    listed_ = opened.listed;
    bad_ = std::move(opened.bad);
    notes_ = std::move(opened.notes);
    images_ = opened.images;
    const int64_t used = take_parts(*opened.dataset, opened.files);
    samples_ = std::move(opened.dataset);
    if (used == samples_->size()) return;
    opened_ = std::move(samples_);
    samples_ = std::make_unique<Repeated>(*opened_, used, used);
  } catch (const Error& e) {
    throw std::invalid_argument(e.what());  // the caller chose what to open
  }
}

// Sets parts_ and returns the number of samples in them.
int64_t LoaderData::take_parts(const Dataset& opened, const std::vector<std::string>& files) {
  const int64_t all = opened.size();
  for (int64_t i = 0; images_ != nullptr && i < all; ++i) parts_.push_back(images_->part_of(i));
  if (images_ != nullptr) return all;
  int64_t bytes = 0;
  for (const std::string& file : files) {
    parts_.push_back({file, 0, static_cast<int64_t>(fs::file_size(file))});
    bytes += parts_.back().size;
  }
  const double share = std::min({1.0, static_cast<double>(kMaxBytes) / static_cast<double>(bytes),
                                 static_cast<double>(kEndless) / static_cast<double>(all)});
  if (share == 1) return all;
  for (FilePart& part : parts_)
    part.size = static_cast<int64_t>(share * static_cast<double>(part.size)) + kHeader;
  return std::max<int64_t>(1, static_cast<int64_t>(share * static_cast<double>(all)));
}

int64_t LoaderData::sample_bytes() const {
  const SampleSpec spec = samples_->spec();
  const auto bytes = [](const Shape& shape, Dtype dtype) {
    return shape.numel() * static_cast<int64_t>(size_of(dtype));
  };
  return bytes(spec.x, spec.x_dtype) + bytes(spec.y, spec.y_dtype);
}

FileProgress tell_files(const std::string& folder) {
  static constexpr auto kEvery = std::chrono::seconds(2);
  return [folder, last = std::chrono::steady_clock::now()](std::string_view doing,
                                                           int64_t files) mutable {
    const auto now = std::chrono::steady_clock::now();
    if (now - last < kEvery) return;
    last = now;
    print_stderr("{}: {} files {}\n", folder, files, doing);
  };
}

void burn(std::chrono::microseconds cost) {
  const double end = thread_seconds() + std::chrono::duration<double>(cost).count();
  while (thread_seconds() < end) {
  }
}

}  // namespace howmany::benches
