// SPDX-License-Identifier: Apache-2.0
// The base class of datasets of encoded images. It decodes, augments, counts, and replaces images
// that cannot be decoded. Subclasses read the bytes. Private to core/data.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/image_folder.h"
#include "core/data/images/transform.h"
#include "core/tensor/rng.h"

namespace howmany {

class ImageSamples : public ImageDataset {
 public:
  // Without labels, y has no elements.
  ImageSamples(const ImageFolderOptions& options, bool has_labels);

  SampleSpec spec() const override {
    return {.x = {options_.size, options_.size, 3}, .y = has_labels_ ? Shape() : Shape({0})};
  }
  void get(int64_t index, uint64_t key, void* x, void* y) const override;
  StageTimes stages() const override;
  std::vector<BadImage> replaced() const override;

 protected:
  // Reads the file's bytes. `bytes` and `path` are buffers that the thread reuses; `path` is
  // scratch for the file name. Throws Error with only the reason.
  virtual void read(int64_t index, std::string& path, std::vector<uint8_t>& bytes) const = 0;
  virtual int64_t label_of(int64_t index) const = 0;  // if the samples have labels
  virtual std::string origin() const = 0;             // folder or archive
  const ImageFolderOptions& options() const { return options_; }

 private:
  // Counters that all threads update; costs about 0.2 us per sample.
  struct Tally {
    std::atomic<int64_t> samples{0}, file_bytes{0}, pixels{0}, read_ns{0}, decode_ns{0},
        transform_ns{0};
  };

  // Returns false if the image cannot be decoded and must be replaced.
  bool load(int64_t index, const Rng& rng, float* x) const;
  void make(int64_t index, const Rng& rng, float* x) const;

  ImageFolderOptions options_;
  bool has_labels_;
  mutable Tally tally_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::string> replaced_;
};

// "a.jpg (empty file), b.jpg (truncated JPEG) and 3 more"
std::string first_of(const std::vector<BadImage>& bad);
void check_image_options(const ImageFolderOptions& options);  // throws std::invalid_argument

}  // namespace howmany
