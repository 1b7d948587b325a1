// SPDX-License-Identifier: Apache-2.0
// Decodes images on a GPU: a real one, or (on_fake_gpus) a fake nvJPEG, which is libjpeg-turbo over
// imitated GPUs. With the fake, samples are equal to the host's samples of full-size images.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/base/error.h"
#include "core/data/image_folder.h"
#include "core/data/images/image.h"
#include "core/data/images/transform.h"
#include "core/data/loader.h"
#include "core/gpu/gpu.h"
#include "core/gpu/images.h"
#include "tests/fakes/fake_nvjpeg.h"
#include "tests/support/image_files.h"
#include "tests/support/message_of.h"

extern "C" __attribute__((weak)) int hm_fake_gpu_waits();  // tests/fakes/fake_cuda.cpp
extern "C" __attribute__((weak)) int64_t hm_fake_gpu_pinned();

namespace howmany {
namespace {

using ::testing::HasSubstr;
using testing_support::jpeg_file;
using testing_support::JpegKind;
using testing_support::png_file;
using testing_support::Rgb;
using testing_support::slope;
using testing_support::TempFolder;

constexpr int64_t kSize = 24;
constexpr float kLevel = 1 / (255 * 0.224F);  // one of the 256 levels, in a normalised sample

bool imitated() { return &hm_fake_gpu_waits != nullptr; }

const FakeNvjpeg* fake() {
  static const auto* const told = [] {
    void* const library = imitated() ? dlopen("libnvjpeg.so.13", RTLD_NOW | RTLD_LOCAL) : nullptr;
    void* const found = library ? dlsym(library, "hm_fake_nvjpeg") : nullptr;
    return found ? reinterpret_cast<FakeNvjpeg* (*)()>(found)() : nullptr;
  }();
  return told;
}

// Waves whose neighbouring pixels differ by more than the tolerance of a filter.
Rgb waves(int x, int y) {
  const auto level = [](double v) { return static_cast<uint8_t>(128 + 90 * std::sin(v)); };
  return {level(0.31 * x + 0.1 * y), level(0.23 * y), level(0.17 * (x - y))};
}

std::string with_orientation(std::string jpeg) {
  const std::string exif("Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0",
                         32);
  const auto length = static_cast<char>(exif.size() + 2);
  return jpeg.insert(2, std::string("\xff\xe1\0", 3) + length + exif);
}

std::string damaged(std::string file) {
  for (size_t i = file.size() / 3; i < file.size() / 2; ++i) file[i] = static_cast<char>(i * 7);
  return file;
}

struct Images {
  // Nine that a GPU can decode, three that it cannot.
  explicit Images(const testing_support::Paint& paint = waves) {
    const int sizes[][2] = {{61, 40}, {33, 97}, {200, 31}, {24, 24}, {7, 5}, {129, 128}};
    int next = 0;
    const auto add = [&](const std::string& file, const char* extension = "jpg") {
      root.write(fmt::format("{}/{:02}.{}", "abc"[next % 3], next, extension), file);
      ++next;
    };
    for (const auto& [w, h] : sizes) add(jpeg_file(w, h, paint, {.subsampling = 1 + next % 2}));
    add(jpeg_file(50, 45, paint, {.colors = JCS_GRAYSCALE}));
    add(with_orientation(jpeg_file(44, 71, paint)));
    add(jpeg_file(90, 90, paint, {.quality = 60}));
    add(png_file(55, 38, paint), "png");
    add(jpeg_file(70, 50, paint, {.progressive = true}));
    add(jpeg_file(64, 48, paint) + std::string(100, 'x'));
  }
  std::unique_ptr<ImageDataset> open(bool train = true) const {
    return image_folder(root.path(), {.size = kSize, .train = train}).dataset;
  }

  static constexpr int64_t kTaken = 9, kAll = 12;
  TempFolder root;
};

struct Samples {
  std::vector<float> x;
  std::vector<int64_t> y;
};

Samples read(Loader& loader, const std::vector<int64_t>& epochs) {
  Samples all;
  for (const int64_t epoch : epochs) {
    loader.start_epoch(epoch);
    while (const auto batch = loader.next()) {
      const Tensor x = batch->x.to(Device{}), y = batch->y.to(Device{});
      all.x.insert(all.x.end(), x.values<float>().begin(), x.values<float>().end());
      all.y.insert(all.y.end(), y.values<int64_t>().begin(), y.values<int64_t>().end());
    }
  }
  return all;
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  float largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

class Nvjpeg : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    const std::string why = gpu::no_image_decoder(gpu_.index);
    if (!why.empty()) GTEST_SKIP() << why;
    if (fake()) misused_ = fake()->misused;
  }
  void TearDown() override {
    if (fake()) {
      EXPECT_EQ(fake()->misused, misused_);
      EXPECT_EQ(fake()->states, 0);
    }
  }
  LoaderOptions options(Decode decode) const {
    const bool there = decode == Decode::nvjpeg;
    return {.global_batch = 5,
            .workers = GetParam(),
            .seed = 4,
            .device = there ? gpu_ : Device{},
            .decode = decode};
  }
  const Device gpu_{DeviceType::cuda, std::max(0, gpu::count() - 1)};
  int misused_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Workers, Nvjpeg, ::testing::Values(0, 1, 3));

TEST_P(Nvjpeg, BatchesAreThoseOfTheHost) {
  const Images images(slope);  // reduction during decoding changes it only slightly
  const auto data = images.open();
  Loader on_host(*data, options(Decode::cpu)), loader(*data, options(Decode::nvjpeg));
  const Samples expected = read(on_host, {0, 1, 7}), got = read(loader, {0, 1, 7});
  EXPECT_EQ(got.y, expected.y);
  EXPECT_LT(largest_difference(got.x, expected.x), 4 * kLevel);
}

TEST_P(Nvjpeg, DecodesWhatItTakesAndCountsIt) {
  const Images images;
  const auto data = images.open();
  Loader loader(*data, options(Decode::nvjpeg));
  const int before = fake() ? fake()->decoded.load() : 0;
  read(loader, {0, 1});
  EXPECT_EQ(data->stages().samples, 2 * Images::kAll);
  EXPECT_EQ(data->stages().on_gpu, 2 * Images::kTaken);
  if (fake()) {
    EXPECT_EQ(fake()->decoded - before, 2 * Images::kTaken);
  }
}

TEST_P(Nvjpeg, BrokenFilesAreNamedOrReplacedAsByTheHost) {
  Images images;
  images.root.write("b/x.jpg", damaged(jpeg_file(90, 70, waves)));
  for (const OnBadImage on_bad : {OnBadImage::refuse, OnBadImage::skip}) {
    const auto open = [&] {
      return image_folder(images.root.path(), {.size = kSize, .on_bad = on_bad}).dataset;
    };
    const auto of_host = open(), of_gpu = open();
    Loader on_host(*of_host, options(Decode::cpu)), loader(*of_gpu, options(Decode::nvjpeg));
    if (on_bad == OnBadImage::refuse) {
      const std::string why = message_of<Error>([&] { read(on_host, {0}); });
      EXPECT_THAT(why, HasSubstr("b/x.jpg: "));
      EXPECT_EQ(message_of<Error>([&] { read(loader, {0}); }), why);
    } else {
      EXPECT_EQ(read(loader, {0}).y, read(on_host, {0}).y);
      ASSERT_EQ(of_gpu->replaced().size(), 1u);
      EXPECT_EQ(of_gpu->replaced()[0].why, of_host->replaced()[0].why);
    }
  }
}

// Both pass the scan, which has a higher limit, as a file could that is replaced later.
TEST_P(Nvjpeg, BombsAndTruncatedFilesAreRefusedInTheSameWords) {
  for (const bool bomb : {true, false}) {
    const TempFolder root;
    const std::string whole = jpeg_file(90, 90, waves);
    const std::string path = root.write("a/0.jpg", whole);
    const auto data = image_folder(root.path(), {.size = kSize, .max_pixels = 90 * 90}).dataset;
    root.write("a/0.jpg", bomb ? jpeg_file(91, 90, waves) : whole.substr(0, whole.size() / 2));
    LoaderOptions here = options(Decode::cpu), there = options(Decode::nvjpeg);
    here.global_batch = there.global_batch = 1;
    Loader on_host(*data, here), loader(*data, there);
    const int64_t before = gpu::memory_use(gpu_.index).in_use;
    const std::string why = message_of<Error>([&] { read(on_host, {0}); });
    EXPECT_THAT(why, HasSubstr(bomb ? "91x90 pixels, the limit is 8100" : "truncated JPEG"));
    EXPECT_EQ(message_of<Error>([&] { read(loader, {0}); }), why);
    EXPECT_LE(gpu::memory_use(gpu_.index).in_use - before, int64_t{8} * kSize * kSize * 3 * 4);
  }
}

TEST_P(Nvjpeg, MemoryIsFlatAndAnAbandonedEpochLeavesNothing) {
  const Images images;
  const auto data = images.open();
  const int64_t on_gpu = gpu::memory_use(gpu_.index).in_use;
  const int64_t pinned = imitated() ? hm_fake_gpu_pinned() : 0;
  for (int round = 0; round < 4; ++round) {
    Loader loader(*data, options(Decode::nvjpeg));
    for (int64_t epoch = 0; epoch < 10; ++epoch) {
      loader.start_epoch(epoch);
      for (int64_t i = 0; i < epoch % 4; ++i) loader.next();
    }
    read(loader, {0, 1, 2, 3, 4});
    const int64_t batches = std::max(1, 2 * GetParam()) + GetParam() + 1;
    const int64_t rooms = (GetParam() + 1) * 2 * 2 * (129 * 128 * 3 + kSize * 400);
    const int64_t most = batches * 2 * 5 * (kSize * kSize * 3 * 4 + 256) + rooms;
    EXPECT_LE(gpu::memory_use(gpu_.index).in_use - on_gpu, most);
    loader.start_epoch(5);
    loader.next();
  }
  gpu::synchronize(gpu_.index);
  EXPECT_EQ(gpu::memory_use(gpu_.index).in_use, on_gpu);
  // Each worker copies labels through a staging block that the process keeps.
  const int64_t kept = imitated() ? hm_fake_gpu_pinned() - pinned : 0;
  EXPECT_LE(kept, 4096 * (GetParam() + 1));
}

class OneImage : public Nvjpeg {};
INSTANTIATE_TEST_SUITE_P(Alone, OneImage, ::testing::Values(0));

// Returns the host's sample without reduction during decoding, so that only the decoders differ.
std::vector<float> by_the_host(const std::string& file, const image::Window& window,
                               bool normalize) {
  const std::span bytes(reinterpret_cast<const uint8_t*>(file.data()), file.size());
  image::AnyDecoder decoder;
  decoder.open(bytes, 1 << 20);
  image::Resampler resampler;
  const auto wanted = resampler.plan(window, kSize, 1);
  std::vector<float> sample(kSize * kSize * 3);
  resampler.run(decoder.decode(1, wanted), normalize, sample.data());
  return sample;
}

TEST_P(OneImage, IsCutFilteredAndFlippedAsByTheHost) {
  gpu::ImageDecoder decoder(gpu_.index);
  for (uint64_t draw = 0; draw < 40; ++draw) {
    const Rng rng(std::random_device{}(), draw);
    const image::Size size{1 + rng.below(0, 150), 1 + rng.below(1, 150)};
    const JpegKind kind{.colors = draw % 5 == 0 ? JCS_GRAYSCALE : JCS_YCbCr,
                        .subsampling = 1 + static_cast<int>(draw % 2)};
    const std::string file =
        jpeg_file(static_cast<int>(size.width), static_cast<int>(size.height), waves, kind);
    const auto window = draw % 3 == 0 ? image::resized_centre_crop(size, kSize)
                                      : image::random_resized_crop(size, rng);
    std::vector<uint8_t> bytes(file.begin(), file.end());
    image::Resampler plan;
    plan.plan(window, kSize, 1);
    const bool normalize = draw % 2 == 0;
    Tensor out = Tensor::zeros({kSize, kSize, 3}, Dtype::f32, gpu_);
    gpu::synchronize(gpu_.index);
    ASSERT_TRUE(decoder.decode(bytes, size, plan, normalize, out.mutable_data<float>()));
    decoder.finish();
    const Tensor got = out.to(Device{});
    const std::vector<float> sample(got.values<float>().begin(), got.values<float>().end());
    EXPECT_LT(largest_difference(sample, by_the_host(file, window, normalize)),
              imitated() ? 1e-4F : 3 * kLevel)
        << size.width << "x" << size.height;
  }
}

TEST_P(OneImage, OfAnotherSizeThanSaidIsNotTaken) {
  gpu::ImageDecoder decoder(gpu_.index);
  const std::string file = jpeg_file(40, 30, waves);
  std::vector<uint8_t> bytes(file.begin(), file.end());
  image::Resampler plan;
  const image::Size said{40, 31};
  plan.plan(image::resized_centre_crop(said, kSize), kSize, 1);
  EXPECT_FALSE(decoder.decode(bytes, said, plan, true, nullptr));
  EXPECT_EQ(bytes.size(), file.size());  // the host decodes them instead
}

TEST_P(OneImage, DecodingIsRefusedWhereItCannotBe) {
  const Images images;
  const auto data = images.open();
  const auto refused = [&](LoaderOptions o) {
    return message_of<std::invalid_argument>([&] { Loader(*data, o); });
  };
  LoaderOptions processes = options(Decode::nvjpeg), here = options(Decode::nvjpeg);
  processes.workers = 2;
  processes.as = WorkersAs::processes;
  here.device = {};
  EXPECT_THAT(refused(processes), HasSubstr("threads, not processes"));
  EXPECT_THAT(refused(here), HasSubstr("give a cuda device"));
  const auto numbers = synthetic_dataset({.x = {3}}, 8, 2, 1);
  EXPECT_THAT(message_of<std::invalid_argument>([&] { Loader(*numbers, options(Decode::nvjpeg)); }),
              HasSubstr("nothing for nvJPEG to decode"));
}

}  // namespace
}  // namespace howmany
