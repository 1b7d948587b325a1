// A Dataset has a size and writes sample i into the caller's buffer, so that a batch is collated
// without a copy. get() is thread-safe: loader workers call it concurrently.
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

// The shapes and dtypes of a sample.
struct SampleSpec {
  Shape x = {};  // [1024], [224,224,3]
  Dtype x_dtype = Dtype::f32;
  Shape y = {};  // [] for a class label, [1024] for a label per token, [2] for a target
  Dtype y_dtype = Dtype::i64;
  int64_t vocabulary = 0;  // if x is i64: ids are below this
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  virtual SampleSpec spec() const = 0;
  // Writes sample `index` to x and y, row-major, in the sizes of spec(). Random augmentation
  // depends only on (key, index); `key` is derived from seed and epoch. Throws Error with the file
  // name if the sample cannot be read.
  virtual void get(int64_t index, uint64_t key, void* x, void* y) const = 0;
  // Returns true if samples are encoded images, which a GPU may decode. get_on_gpu() is get() with
  // x in GPU memory; x is complete after the decoder's finish().
  virtual bool has_images() const { return false; }
  virtual void get_on_gpu(gpu::ImageDecoder&, int64_t, uint64_t, void* /*x*/, void* /*y*/) const {
    throw std::invalid_argument("[data] no images to decode in " + describe());
  }
  virtual std::string describe() const = 0;
  // Returns the name of a sample for messages: its file, if it has one.
  virtual std::string name_of(int64_t index) const { return "sample " + std::to_string(index); }
};

using DatasetPtr = std::unique_ptr<Dataset>;

// Returns random samples. x is drawn from N(0,1), or consists of ids below spec.vocabulary (i64). y
// is a class label below `classes` (i64) or a fixed linear map of x (f32, f64). Sample i depends
// only on (seed, i) and costs little more than a copy.
DatasetPtr synthetic_dataset(const SampleSpec& spec, int64_t size, int64_t classes, uint64_t seed);

// Returns the rows of x [size, ...] and y [size, ...], which it keeps in memory.
DatasetPtr tensor_dataset(Tensor x, Tensor y);

// Called from time to time by the thread that opens many files. `doing` is "listed" or "checked",
// `files` the number so far.
using FileProgress = std::function<void(std::string_view doing, int64_t files)>;

enum class OnBadImage { skip, refuse };
struct ImageFolderOptions {
  int64_t size = 224;     // output is size x size x 3
  bool train = true;      // random crop and flip; false: resize and centre crop
  bool normalize = true;  // to ImageNet mean and deviation, as torchvision's recipes
  OnBadImage on_bad = OnBadImage::refuse;
  int64_t max_pixels = 100'000'000;  // larger images are bad (decompression bombs)
  int64_t most = 0;  // above 0: the maximum number of files, spaced evenly; opens no others
  FileProgress progress = {};
};

struct BadImage {
  std::string path, why;
};

// Times per stage so far, summed over all threads.
struct StageTimes {
  int64_t samples = 0, file_bytes = 0, pixels = 0;  // pixels as stored
  int64_t on_gpu = 0;                               // samples decoded by a GPU
  double read_s = 0, decode_s = 0, transform_s = 0;
};
StageTimes operator-(const StageTimes& after, const StageTimes& before);

class ImageDataset : public Dataset {
 public:
  virtual StageTimes stages() const = 0;
  // Returns the files that passed the scan but failed to decode and were replaced
  // (OnBadImage::skip), by path.
  virtual std::vector<BadImage> replaced() const = 0;
};

struct ImageFolder {
  std::unique_ptr<ImageDataset> dataset;
  std::vector<std::string> classes;  // sorted folder names; label = position
  std::vector<BadImage> bad;         // found by the scan, by path
  std::vector<std::string> ignored;  // entries that are neither class folders nor named as images
  int64_t listed = 0;                // files named as images, before the limit `most`
};

// Opens root/class/file.{jpg,jpeg,png}, in any case, with files sorted by name. Ignores hidden
// folders.
// Bad images. Headers and ends of files are checked now, which finds most bad images before
//   training. If a file fails to decode later, get() throws (refuse), or replaces it by the next
//   good one and counts it (skip).
// Errors. Throws Error if root is missing, or has no class folder or no usable image. If on_bad is
//   refuse, also throws if there are bad images, and names the first ones.
ImageFolder image_folder(const std::string& root, const ImageFolderOptions& options);

}  // namespace howmany
