// SPDX-License-Identifier: Apache-2.0
// labels: threads
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "core/base/error.h"
#include "core/data/dataset.h"
#include "core/data/image_folder.h"
#include "core/data/images/image.h"
#include "core/data/images/transform.h"
#include "core/data/loader.h"
#include "tests/support/image_files.h"
#include "tests/support/message_of.h"

namespace howmany {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::jpeg_file;
using testing_support::JpegKind;
using testing_support::Paint;
using testing_support::png_file;
using testing_support::PngKind;
using testing_support::Rgb;
using testing_support::slope;
using testing_support::TempFolder;
using testing_support::webp_file;

const ImageFolderOptions kPlain = {.size = 224, .train = false, .normalize = false};

struct Sample {
  std::vector<float> x;
  int64_t label = -1;
};

Sample get(const Dataset& dataset, int64_t index, uint64_t key = 0) {
  Sample sample;
  sample.x.resize(static_cast<size_t>(dataset.spec().x.numel()));
  dataset.get(index, key, sample.x.data(), &sample.label);
  return sample;
}

std::string folder_refusal(const std::string& root) {
  return message_of<Error>([&] { image_folder(root, kPlain); });
}

ImageFolder skipping(const TempFolder& root, ImageFolderOptions options = kPlain) {
  options.on_bad = OnBadImage::skip;
  return image_folder(root.path(), options);
}

std::map<std::string, std::string> reasons(const std::vector<BadImage>& bad) {
  std::map<std::string, std::string> by_name;
  for (const auto& [path, why] : bad) by_name[fs::path(path).filename().string()] = why;
  return by_name;
}

// In evaluation, the sample of a 256x256 image is its central 224x224 pixels, unchanged.
void expect_centre(const std::vector<float>& x, const Paint& paint, double tolerance) {
  double worst = 0;
  for (int row = 0; row < 224; ++row)
    for (int column = 0; column < 224; ++column)
      for (size_t c = 0; c < 3; ++c) {
        const double want = paint(column + 16, row + 16)[c] / 255.0;
        const double have = x[static_cast<size_t>((row * 224 + column) * 3) + c];
        worst = std::max(worst, std::abs(have - want));
      }
  EXPECT_LE(worst, tolerance);
}

TEST(ImageFolder, LabelsFollowTheSortedClassNames) {
  const TempFolder root;
  const auto flat = [](uint8_t level) { return [=](int, int) { return Rgb{level, 0, 0}; }; };
  root.write("zebra/1.png", png_file(8, 8, flat(30)));
  root.write("ant/2.PNG", png_file(8, 8, flat(20)));
  root.write("ant/10.png", png_file(8, 8, flat(10)));
  root.write("Bee/x.png", png_file(8, 8, flat(5)));
  const ImageFolder folder = image_folder(root.path(), kPlain);
  EXPECT_THAT(folder.classes, ElementsAre("Bee", "ant", "zebra"));
  ASSERT_EQ(folder.dataset->size(), 4);
  std::vector<std::pair<int64_t, int>> seen;
  for (int64_t i = 0; i < 4; ++i) {
    const Sample s = get(*folder.dataset, i);
    seen.emplace_back(s.label, static_cast<int>(std::lround(s.x[0] * 255)));
  }
  using P = std::pair<int64_t, int>;
  EXPECT_THAT(seen, ElementsAre(P{0, 5}, P{1, 10}, P{1, 20}, P{2, 30}));
}

TEST(ImageFolder, NormalisesWithImageNetStatistics) {
  const TempFolder root;
  root.write("a/0.png", png_file(256, 256, [](int, int) { return Rgb{255, 128, 0}; }));
  ImageFolderOptions options = kPlain;
  options.normalize = true;
  const Sample s = get(*image_folder(root.path(), options).dataset, 0);
  EXPECT_NEAR(s.x[0], (1 - 0.485) / 0.229, 1e-5);
  EXPECT_NEAR(s.x[1], (128 / 255.0 - 0.456) / 0.224, 1e-5);
  EXPECT_NEAR(s.x[2], (0 - 0.406) / 0.225, 1e-5);
}

TEST(ImageFolder, EveryKindOfPngBecomesTheSameRgb) {
  const TempFolder root;
  root.write("a/0.png", png_file(256, 256, slope, {.depth = 16}));
  root.write("a/1.png", png_file(256, 256, slope, {.color = PNG_COLOR_TYPE_RGB_ALPHA}));
  root.write("a/2.png", png_file(256, 256, slope, {.interlaced = true}));
  root.write("a/3.png", png_file(256, 256, slope, {.color = PNG_COLOR_TYPE_GRAY}));
  root.write("a/4.png", png_file(256, 256, slope, {.color = PNG_COLOR_TYPE_PALETTE}));
  const ImageFolder folder = image_folder(root.path(), kPlain);
  for (int64_t i = 0; i < 3; ++i) expect_centre(get(*folder.dataset, i).x, slope, 1e-6);
  const auto grey = [](int x, int y) {
    return Rgb{slope(x, y)[0], slope(x, y)[0], slope(x, y)[0]};
  };
  expect_centre(get(*folder.dataset, 3).x, grey, 1e-6);
  const auto palette = [](int x, int y) { return testing_support::palette_color(slope(x, y)); };
  expect_centre(get(*folder.dataset, 4).x, palette, 1e-6);
}

TEST(ImageFolder, EveryKindOfJpegIsDecoded) {
  const auto grey = [](int x, int) {
    const auto v = static_cast<uint8_t>(x / 2);
    return Rgb{v, v, v};
  };
  const TempFolder root;
  root.write("a/0.jpg", jpeg_file(256, 256, slope, {.subsampling = 2}));
  root.write("a/1.jpg", jpeg_file(256, 256, slope, {.progressive = true}));
  root.write("a/2.jpg", jpeg_file(256, 256, grey, {.colors = JCS_GRAYSCALE}));
  root.write("a/3.jpg", jpeg_file(256, 256, slope, {.colors = JCS_CMYK}));
  root.write("a/4.jpg", jpeg_file(256, 256, slope, {.colors = JCS_YCCK}));
  const ImageFolder folder = image_folder(root.path(), kPlain);
  expect_centre(get(*folder.dataset, 0).x, slope, 6 / 255.0);
  expect_centre(get(*folder.dataset, 1).x, slope, 4 / 255.0);
  expect_centre(get(*folder.dataset, 2).x, grey, 4 / 255.0);
  expect_centre(get(*folder.dataset, 3).x, slope, 4 / 255.0);
  expect_centre(get(*folder.dataset, 4).x, slope, 4 / 255.0);
}

TEST(ImageFolder, WebpIsDecoded) {
  const TempFolder root;
  root.write("a/0.webp", webp_file(256, 256));
  root.write("a/1.WebP", webp_file(256, 256, slope, false));
  const ImageFolder folder = image_folder(root.path(), kPlain);
  expect_centre(get(*folder.dataset, 0).x, slope, 1e-6);
  expect_centre(get(*folder.dataset, 1).x, slope, 8 / 255.0);
}

TEST(ImageFolder, WalksClassesAsTorchvisionDoes) {
  const TempFolder root;
  for (const char* file : {"a/b/1.jpg", "a/2.jpg", "a/b-c/3.jpg", "a/b/d/4.jpg", "z/5.jpg"})
    root.write(file, jpeg_file(16, 16));
  const ImageFolder folder = image_folder(root.path(), kPlain);
  std::vector<std::string> names;
  for (int64_t i = 0; i < folder.dataset->size(); ++i)
    names.push_back(fs::relative(folder.dataset->name_of(i), root.path()).string());
  // sorted(os.walk()) compares whole folders: "a/b" < "a/b-c" < "a/b/d".
  EXPECT_THAT(names, ElementsAre("a/2.jpg", "a/b/1.jpg", "a/b-c/3.jpg", "a/b/d/4.jpg", "z/5.jpg"));
  EXPECT_EQ(folder.classes.size(), 2u);
}

// As in torchvision's default loader, which leaves the rotation to the caller.
TEST(ImageFolder, ExifOrientationIsNotApplied) {
  std::string file = jpeg_file(256, 256);
  std::string exif(
      "\xff\xe1\x00\x22"
      "Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0",
      36);
  const TempFolder root;
  root.write("a/0.jpg", file.insert(2, exif));
  expect_centre(get(*image_folder(root.path(), kPlain).dataset, 0).x, slope, 4 / 255.0);
}

TEST(ImageFolder, DetectsTheFormatByContent) {
  const TempFolder root;
  root.write("a/0.jpg", png_file(256, 256));
  root.write("a/1.png", jpeg_file(256, 256));
  const ImageFolder folder = image_folder(root.path(), kPlain);
  expect_centre(get(*folder.dataset, 0).x, slope, 1e-6);
  expect_centre(get(*folder.dataset, 1).x, slope, 4 / 255.0);
}

// On a linear ramp the filter returns the ramp, so a sample shows its crop window.
TEST(ImageFolder, ATrainingSampleIsTheDrawnWindow) {
  const auto ramp = [](int x, int y) {
    return Rgb{static_cast<uint8_t>(x / 2), static_cast<uint8_t>(y / 2), 0};
  };
  const TempFolder root;
  root.write("a/0.png", png_file(500, 375, ramp));
  const ImageFolder folder =
      image_folder(root.path(), {.size = 64, .train = true, .normalize = false});
  int flipped = 0;
  for (uint64_t key = 0; key < 40; ++key) {
    const Sample s = get(*folder.dataset, 0, key);
    const auto window = image::random_resized_crop({500, 375}, Rng(key, 0));
    flipped += window.flip;
    for (int i = 4; i < 60; i += 5) {
      const double along = (i + 0.5) / 64;
      const double x = window.x + window.width * (window.flip ? 1 - along : along);
      const double y = window.y + window.height * along;
      const size_t at = static_cast<size_t>(i * 64 + i) * 3;
      EXPECT_NEAR(s.x[at] * 255, (x - 0.5) / 2 - 0.25, 0.51) << "key " << key << " pixel " << i;
      EXPECT_NEAR(s.x[at + 1] * 255, (y - 0.5) / 2 - 0.25, 0.51) << "key " << key;
    }
  }
  EXPECT_GT(flipped, 5);
  EXPECT_LT(flipped, 35);
}

TEST(ImageFolder, ASampleDependsOnKeyAndIndexOnly) {
  const TempFolder root;
  for (int i = 0; i < 4; ++i)
    root.write("a/" + std::to_string(i) + ".jpg", jpeg_file(300, 200 + 40 * i));
  const ImageFolder folder = image_folder(root.path(), {.size = 32});
  const Sample first = get(*folder.dataset, 2, 7);
  get(*folder.dataset, 0, 1);
  get(*folder.dataset, 3, 7);
  EXPECT_EQ(get(*folder.dataset, 2, 7).x, first.x);
  EXPECT_NE(get(*folder.dataset, 2, 8).x, first.x);
}

TEST(ImageFolder, TinyAndNarrowImagesAreUsable) {
  const TempFolder root;
  root.write("a/0.png", png_file(1, 1));
  root.write("a/1.jpg", jpeg_file(1, 900));
  root.write("a/2.jpg", jpeg_file(900, 2));
  for (bool train : {true, false}) {
    const ImageFolder folder =
        image_folder(root.path(), {.size = 32, .train = train, .normalize = false});
    for (int64_t i = 0; i < 3; ++i)
      for (float v : get(*folder.dataset, i).x) ASSERT_TRUE(v >= -1e-5 && v <= 1 + 1e-5) << v;
  }
}

TEST(ImageFolderBad, AreNamedWithTheirReasons) {
  const std::string jpeg = jpeg_file(300, 200), png = png_file(300, 200);
  std::string huge = png;
  huge.replace(16, 4, std::string("\x00\x10\x01\x2c", 4));  // the width in IHDR
  testing_support::repair_png(huge);
  const TempFolder root;
  root.write("a/good.jpg", jpeg);
  root.write("a/appended.jpg", jpeg + std::string(200, 'x'));
  root.write("a/cmyk.jpg", jpeg_file(32, 32, slope, {.colors = JCS_CMYK}));
  root.write("a/ycck.jpg", jpeg_file(32, 32, slope, {.colors = JCS_YCCK}));
  root.write("a/empty.jpg", "");
  root.write("a/header.jpg", jpeg.substr(0, 100));
  root.write("a/header.png", png.substr(0, 20));
  root.write("a/half.jpg", jpeg.substr(0, jpeg.size() / 2));
  root.write("a/half.png", png.substr(0, png.size() / 2));
  root.write("a/half.webp", webp_file(300, 200).substr(0, 100));
  root.write("a/text.png", "this is not an image\n");
  root.write("a/huge.png", huge);
  root.write("a/notes.txt", "not looked at");
  root.write(".hidden/x.jpg", "");
  fs::create_directories(root / "a/folder.jpg");
  root.write("a/nested/deep.jpg", jpeg);
  fs::create_symlink("loop.png", root / "a/loop.png");
  fs::create_symlink("nowhere.png", root / "a/dangling.png");
  fs::create_directory_symlink("..", root / "a/up");
  ASSERT_EQ(mkfifo((root / "a/pipe.jpg").c_str(), 0600), 0);

  ::testing::internal::CaptureStderr();
  const ImageFolder folder = skipping(root);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(folder.dataset->size(), 5);
  const auto why = reasons(folder.bad);
  EXPECT_EQ(why.size(), 11u);
  EXPECT_THAT(why.at("empty.jpg"), HasSubstr("empty"));
  EXPECT_THAT(why.at("header.jpg"), HasSubstr("truncated"));
  EXPECT_THAT(why.at("header.png"), HasSubstr("truncated"));
  EXPECT_THAT(why.at("half.jpg"), HasSubstr("truncated"));
  EXPECT_THAT(why.at("half.png"), HasSubstr("truncated"));
  EXPECT_THAT(why.at("half.webp"), HasSubstr("truncated"));
  EXPECT_THAT(why.at("text.png"), HasSubstr("neither JPEG, PNG nor WebP"));
  EXPECT_THAT(why.at("huge.png"), HasSubstr("1048876x200 pixels"));
  EXPECT_THAT(why.at("loop.png"), HasSubstr("symbolic links"));
  EXPECT_THAT(why.at("dangling.png"), HasSubstr("No such file"));
  EXPECT_THAT(why.at("pipe.jpg"), HasSubstr("regular"));
  std::vector<std::string> ignored;
  for (const auto& path : folder.ignored) ignored.push_back(fs::path(path).filename().string());
  EXPECT_THAT(ignored, ElementsAre(".hidden", "notes.txt", "up"));
}

TEST(ImageFolderBad, PixelLimitIsCheckedBeforeDecoding) {
  const TempFolder root;
  root.write("a/0.jpg", jpeg_file(100, 60));
  root.write("a/1.png", png_file(100, 61));
  ImageFolderOptions options = kPlain;
  options.max_pixels = 6000;
  const auto folder = skipping(root, options);
  EXPECT_EQ(folder.dataset->size(), 1);
  EXPECT_THAT(reasons(folder.bad).at("1.png"), HasSubstr("100x61 pixels, the limit is 6000"));
}

TEST(ImageFolderBad, RefuseNamesTheFirstAndCountsAll) {
  const TempFolder root;
  root.write("a/good.png", png_file(8, 8));
  for (int i = 0; i < 8; ++i) root.write("a/" + std::to_string(i) + ".jpg", "");
  const std::string text = folder_refusal(root.path());
  EXPECT_THAT(text, AllOf(HasSubstr("8 of 9 images are bad"), HasSubstr("a/0.jpg (empty file)"),
                          HasSubstr("and 3 more"), Not(HasSubstr("7.jpg"))));
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

// With so many images, several threads check them.
TEST(ImageFolderBad, AreFoundAmongManyWithoutChangingTheOrder) {
  const TempFolder root;
  for (int i = 0; i < 200; ++i) {
    const auto level = static_cast<uint8_t>(i);
    const auto file = png_file(4, 4, [=](int, int) { return Rgb{level, 0, 0}; });
    root.write(fmt::format("a/{:03}.png", i), i % 7 == 3 ? "" : file);
  }
  const ImageFolder folder = skipping(root);
  ASSERT_EQ(folder.bad.size(), 29u);
  EXPECT_THAT(folder.bad[1].path, HasSubstr("a/010.png"));
  ASSERT_EQ(folder.dataset->size(), 171);
  for (int64_t i = 0, level = 0; i < 171; ++i, ++level) {
    if (level % 7 == 3) ++level;
    ASSERT_NEAR(get(*folder.dataset, i).x[0] * 255, static_cast<double>(level), 1e-3);
  }
}

TEST(ImageFolderBad, UnreadableFilesAndFoldersAreNamed) {
  const TempFolder root;
  root.write("a/good.png", png_file(8, 8));
  root.write("a/locked.png", png_file(8, 8));
  root.write("b/inside.png", png_file(8, 8));
  fs::permissions(root.path(), fs::perms::all);
  fs::permissions(root / "a/locked.png", fs::perms::none);
  fs::permissions(root / "b", fs::perms::none);
  const bool is_root = geteuid() == 0;  // root ignores permissions
  ASSERT_EQ(is_root ? seteuid(65534) : 0, 0);
  const ImageFolder folder = skipping(root);
  ASSERT_EQ(is_root ? seteuid(0) : 0, 0);
  fs::permissions(root / "b", fs::perms::all);
  const auto why = reasons(folder.bad);
  EXPECT_THAT(why.at("locked.png"), HasSubstr("Permission denied"));
  EXPECT_THAT(why.at("b"), HasSubstr("Permission denied"));
  EXPECT_EQ(folder.dataset->size(), 1);
  EXPECT_THAT(folder.classes, ElementsAre("a", "b"));
}

Rgb noise(int x, int y) {
  const auto v = static_cast<uint8_t>((x * 7919 + y * 104729) >> 3);
  return {v, static_cast<uint8_t>(v * 3), static_cast<uint8_t>(v * 5)};
}

// Changes bytes within the compressed data; header and end stay intact.
std::string damaged(std::string file) {
  for (size_t i = file.size() / 3; i < file.size() / 2; ++i) file[i] = static_cast<char>(i * 7);
  return file;
}

TEST(ImageFolderBad, DamagedDataIsFoundInDecoding) {
  const TempFolder root;
  root.write("a/0.png", png_file(300, 300));
  root.write("a/1.jpg", damaged(jpeg_file(300, 300, noise)));
  root.write("b/2.png", damaged(png_file(300, 300, noise)));
  root.write("b/3.png", png_file(300, 300));

  const ImageFolder refusing = image_folder(root.path(), kPlain);
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(message_of<Error>([&] { get(*refusing.dataset, 1); }), HasSubstr("a/1.jpg: "));
  EXPECT_THAT(message_of<Error>([&] { get(*refusing.dataset, 2); }), HasSubstr("b/2.png: "));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");

  const ImageFolder skip = skipping(root);
  EXPECT_EQ(skip.dataset->size(), 4);
  EXPECT_TRUE(skip.dataset->replaced().empty());
  const Sample neighbour = get(*skip.dataset, 3);
  for (int64_t index : {1, 2}) {
    const Sample s = get(*skip.dataset, index);
    EXPECT_EQ(s.label, 1);
    EXPECT_EQ(s.x, neighbour.x);
  }
  EXPECT_EQ(reasons(skip.dataset->replaced()).size(), 2u);
}

TEST(ImageFolderBad, AreReplacedByWorkersToo) {
  const TempFolder root;
  for (int i = 0; i < 12; ++i) {
    const std::string file = jpeg_file(90 + i, 80, noise, {.subsampling = 1 + i % 2});
    root.write(fmt::format("{}/{}.jpg", i % 3, i), i % 5 == 1 ? damaged(file) : file);
  }
  const ImageFolder folder = skipping(root, {.size = 16});
  const auto read = [&](int workers) {
    std::vector<float> values;
    Loader loader(*folder.dataset, {.global_batch = 5, .workers = workers, .seed = 4});
    for (int64_t epoch : {0, 1}) {
      loader.start_epoch(epoch);
      while (const auto batch = loader.next()) {
        const auto x = batch->x.values<float>();
        values.insert(values.end(), x.begin(), x.end());
      }
    }
    return values;
  };
  const auto alone = read(0);
  const auto replaced = reasons(folder.dataset->replaced());
  EXPECT_THAT(replaced, ::testing::SizeIs(3));
  EXPECT_EQ(read(3), alone);
  EXPECT_EQ(reasons(folder.dataset->replaced()), replaced);
}

TEST(ImageFolderBad, ThrowsIfNothingCanBeDecoded) {
  const TempFolder root;
  root.write("a/0.jpg", damaged(jpeg_file(200, 200)));
  const ImageFolder folder = skipping(root);
  EXPECT_THAT(message_of<Error>([&] { get(*folder.dataset, 0); }), HasSubstr("none of 1 images"));
}

TEST(ImageFolder, ReportsScanProgress) {
  const TempFolder folder;
  const std::string first = folder.write("a/00000.jpg", jpeg_file(8, 8));
  for (int i = 1; i < 5000; ++i)
    std::filesystem::create_hard_link(first, fmt::format("{}/a/{:05}.jpg", folder.path(), i));
  std::vector<std::string> told;
  const auto progress = [&](std::string_view doing, int64_t files) {
    told.push_back(fmt::format("{} {}", doing, files));
  };
  const ImageFolder opened = image_folder(folder.path(), {.size = 8, .progress = progress});
  EXPECT_EQ(opened.dataset->size(), 5000);
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told[0], "listed 4096");
  EXPECT_EQ(opened.dataset->name_of(4999), folder / "a/04999.jpg");
}

TEST(ImageFolder, ImagesOfTheRootHaveNoClasses) {
  const TempFolder root;
  root.write("1.jpg", jpeg_file(8, 8));
  root.write("0.PNG", png_file(8, 8));
  root.write("labels/0.txt", "");
  const ImageFolder folder = image_folder(root.path(), kPlain);
  EXPECT_EQ(folder.dataset->name_of(0), root / "0.PNG");
  EXPECT_EQ(folder.dataset->size(), 2);
  EXPECT_TRUE(folder.classes.empty());
  EXPECT_EQ(folder.dataset->spec().y, Shape({0}));
  EXPECT_EQ(get(*folder.dataset, 1).label, -1);  // not written
  EXPECT_THAT(folder.notes, ElementsAre("1 file of a format that is not read: .txt"));
}

TEST(ImageFolder, ImagesOutsideOfClassFoldersAreNoted) {
  const TempFolder root;
  for (const char* file : {"cat/1.jpg", "loose.jpg", "._loose.jpg", "cat/._1.jpg"})
    root.write(file, jpeg_file(8, 8));
  const ImageFolder folder = image_folder(root.path(), kPlain);
  EXPECT_EQ(folder.dataset->size(), 1);
  EXPECT_THAT(folder.notes, ElementsAre(HasSubstr("1 image outside")));
}

TEST(ImageFolder, PartsOfADataSetAreNoClasses) {
  const TempFolder root;
  for (const char* file : {"train/cat/1.jpg", "train/dog/2.jpg", "Val_2017/cat/3.jpg"})
    root.write(file, jpeg_file(8, 8));
  fs::create_directories(root / "annotations");
  const ImageFolder folder = image_folder(root.path(), kPlain);
  EXPECT_EQ(folder.dataset->size(), 3);
  EXPECT_EQ(folder.dataset->name_of(1), root / "train/cat/1.jpg");
  EXPECT_TRUE(folder.classes.empty());
  EXPECT_THAT(folder.notes, ElementsAre(AllOf(HasSubstr("train"), HasSubstr("Val_2017"))));
  EXPECT_EQ(image_folder(root / "train", kPlain).classes.size(), 2u);
  root.write("dog/1.jpg", jpeg_file(8, 8));
  EXPECT_EQ(image_folder(root.path(), kPlain).classes.size(), 4u);
}

TEST(ImageFolderBad, RefusesRootsThatAreNoDatasets) {
  const TempFolder root;
  EXPECT_THAT(folder_refusal(root / "missing"), HasSubstr("does not exist"));
  EXPECT_THAT(folder_refusal(root.path()), HasSubstr("it has no files"));
  const std::string file = root.write("notes.txt", "");
  EXPECT_THAT(folder_refusal(file), HasSubstr("not a folder"));
  EXPECT_THAT(folder_refusal(root.path()),
              AllOf(HasSubstr("1 file"), HasSubstr(".txt"), HasSubstr("CLASS/FILE.jpg")));
  root.write("a/X_train.npy", "");
  EXPECT_THAT(folder_refusal(root.path()),
              AllOf(HasSubstr("a/X_train.npy"), HasSubstr("x.npy and y.npy")));
  root.write("a/0.BMP", "");
  EXPECT_THAT(folder_refusal(root.path()), AllOf(HasSubstr("1 .bmp"), HasSubstr("Convert")));
  root.write("a/0.jpg", "");
  EXPECT_THAT(message_of<Error>([&] { skipping(root); }),
              AllOf(HasSubstr("no usable image"), HasSubstr("a/0.jpg (empty file)")));
  EXPECT_THROW(image_folder(root.path(), {.size = 0}), std::invalid_argument);
}

}  // namespace
}  // namespace howmany
