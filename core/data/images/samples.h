// A dataset of encoded images, wherever their bytes come from: decoding, augmenting, counting, and
// what to do with those that cannot be decoded. Private to core/data.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/images/transform.h"
#include "core/tensor/rng.h"

namespace howmany {

class ImageSamples : public ImageDataset {
 public:
  explicit ImageSamples(const ImageFolderOptions& options);

  SampleSpec spec() const override { return {.x = {options_.size, options_.size, 3}}; }
  void get(int64_t index, uint64_t key, void* x, void* y) const override;
  bool has_images() const override { return true; }
  void get_on_gpu(gpu::ImageDecoder& decoder, int64_t index, uint64_t key, void* x,
                  void* y) const override;
  StageTimes stages() const override;
  std::vector<BadImage> replaced() const override;

 protected:
  // The file's bytes, in a buffer that the thread reuses; `path` is another, for what is opened.
  // Throws Error with the reason alone.
  virtual void read(int64_t index, std::string& path, std::vector<uint8_t>& bytes) const = 0;
  virtual int64_t label_of(int64_t index) const = 0;
  virtual std::string origin() const = 0;  // folder or archive
  const ImageFolderOptions& options() const { return options_; }

 private:
  // What all threads add to: some 0.2 us a sample.
  struct Tally {
    std::atomic<int64_t> samples{0}, file_bytes{0}, pixels{0}, on_gpu{0}, read_ns{0}, decode_ns{0},
        transform_ns{0};
  };
  struct Scratch;
  struct Target {
    float* x;
    gpu::ImageDecoder* decoder;  // of the GPU whose memory x is; none: the host's
  };

  void get(int64_t index, uint64_t key, const Target& to, void* y) const;
  // False when the image cannot be decoded and shall be replaced.
  bool load(int64_t index, const Rng& rng, const Target& to) const;
  void make(int64_t index, const Rng& rng, const Target& to) const;
  // Of what the scratch has opened. False when the GPU does not take it.
  bool make_on_gpu(const image::Window& window, const image::Size& size, Scratch& scratch,
                   const Target& to) const;
  void make_here(const image::Window& window, Scratch& scratch, float* x) const;

  ImageFolderOptions options_;
  mutable Tally tally_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::string> replaced_;
};

// "a.jpg (empty file), b.jpg (truncated JPEG) and 3 more"
std::string first_of(const std::vector<BadImage>& bad);
void check_image_options(const ImageFolderOptions& options);  // throws std::invalid_argument

}  // namespace howmany
