// Datasets: a size and a way to write sample i into a caller's buffer, so that a batch is collated
// without a copy. get() is const and thread-safe: loader workers call it at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"

namespace howmany {
namespace gpu {
class ImageDecoder;
}

// What a dataset yields per sample.
struct SampleSpec {
  Shape x = {};  // [1024], [224,224,3]
  Dtype x_dtype = Dtype::f32;
  Shape y = {};  // [] for a class label, [1024] for one of each token, [2] for a target
  Dtype y_dtype = Dtype::i64;
  int64_t vocabulary = 0;  // i64 x: ids below this
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  virtual SampleSpec spec() const = 0;
  // Writes sample `index` to x and y, row-major, of the spec's sizes. `key` (seed, epoch) feeds
  // random augmentation, drawn from (key, index) alone. Throws Error naming the file when a sample
  // cannot be had.
  virtual void get(int64_t index, uint64_t key, void* x, void* y) const = 0;
  // Whether samples are images in files, so that a GPU may make them: get_on_gpu() is get() with x
  // in its memory, where the sample is when the decoder has finish()ed.
  virtual bool has_images() const { return false; }
  virtual void get_on_gpu(gpu::ImageDecoder&, int64_t, uint64_t, void* /*x*/, void* /*y*/) const {
    throw std::invalid_argument("[data] no images to decode in " + describe());
  }
  virtual std::string describe() const = 0;
  // What to call a sample in a message: the file it comes from, when it does.
  virtual std::string name_of(int64_t index) const { return "sample " + std::to_string(index); }
};

using DatasetPtr = std::unique_ptr<Dataset>;

// x [spec.x] from N(0,1), or ids below the spec's vocabulary (i64); y class labels below `classes`
// (i64), or for f32 and f64 a fixed linear map of x. Sample i is a pure function of (seed, i) and
// costs little more than a copy.
DatasetPtr synthetic_dataset(const SampleSpec& spec, int64_t size, int64_t classes, uint64_t seed);

// x [size, ...], y [size, ...] held in memory.
DatasetPtr tensor_dataset(Tensor x, Tensor y);

// Told now and then by the thread that opens many files: "listed" or "checked", how many so far.
using FileProgress = std::function<void(std::string_view doing, int64_t files)>;

enum class OnBadImage { skip, refuse };
struct ImageFolderOptions {
  int64_t size = 224;     // output is size x size x 3
  bool train = true;      // random crop and flip; else resize and centre crop
  bool normalize = true;  // ImageNet mean and deviation, as torchvision's recipes
  OnBadImage on_bad = OnBadImage::refuse;
  int64_t max_pixels = 100'000'000;  // a larger image is a bad one (decompression bombs)
  int64_t most = 0;  // above 0: only so many files, evenly drawn; the others are not opened
  FileProgress progress = {};
};

struct BadImage {
  std::string path, why;
};

// Where samples spent their time so far, summed over all threads.
struct StageTimes {
  int64_t samples = 0, file_bytes = 0, pixels = 0;  // pixels as stored
  int64_t on_gpu = 0;                               // samples that a GPU decoded
  double read_s = 0, decode_s = 0, transform_s = 0;
};
StageTimes operator-(const StageTimes& after, const StageTimes& before);

class ImageDataset : public Dataset {
 public:
  virtual StageTimes stages() const = 0;
  // Files that passed the scan, failed in decoding and were replaced (skip), so far, by path.
  virtual std::vector<BadImage> replaced() const = 0;
};

struct ImageFolder {
  std::unique_ptr<ImageDataset> dataset;
  std::vector<std::string> classes;  // sorted folder names; label = position
  std::vector<BadImage> bad;         // found by the scan, by path
  std::vector<std::string> ignored;  // entries that are neither class folders nor named as images
  int64_t listed = 0;                // files named as images, before `most` left some out
};

// root/class/file.{jpg,jpeg,png} (any case), files sorted by name; hidden folders are no classes.
// Headers and ends of files are checked now, so that most bad images are known before training; one
// that only fails in full decoding is reported by get() (refuse) or replaced by the next good one
// of the order and counted (skip). Throws Error: missing root, no class folder, no usable image,
// (refuse) the first bad ones named.
ImageFolder image_folder(const std::string& root, const ImageFolderOptions& options);

}  // namespace howmany
