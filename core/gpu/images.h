// SPDX-License-Identifier: Apache-2.0
// Decodes and resizes images to training samples on a GPU. nvJPEG, opened at run time, decodes
// them; a kernel applies the filter of core/data/images/transform.h. Builds without CUDA use
// gpu/none.cpp.
//
//   gpu::ImageDecoder decoder(0);
//   if (!decoder.decode(bytes, size, resampler, true, out)) decoder.put(made_on_the_host, out);
//   decoder.finish();
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/data/images/transform.h"

namespace howmany::gpu {

// Returns why GPU `index` cannot decode images (no such GPU, no nvJPEG, nvJPEG does not start), or
// "" if it can. Never throws.
std::string no_image_decoder(int index);

// Overlaps the GPU's work on one image with the host's work on the next. Results are complete after
// finish(). Not thread-safe.
class ImageDecoder {
 public:
  // Throws Error if no_image_decoder() is not empty.
  explicit ImageDecoder(int index);
  ~ImageDecoder();  // blocks until all work is complete
  ImageDecoder(const ImageDecoder&) = delete;
  ImageDecoder& operator=(const ImageDecoder&) = delete;

  // Decodes a JPEG for which plain_jpeg() is true, of that size, to out [size,size,3] on the GPU.
  // `plan` must have shrink 1. Returns false if nvJPEG rejects the image; `bytes` is then
  // unchanged. Otherwise swaps `bytes` with a buffer of unspecified content.
  bool decode(std::vector<uint8_t>& bytes, const image::Size& size, const image::Resampler& plan,
              bool normalize, float* out);
  // Copies a sample that the host has decoded.
  void put(const std::vector<float>& sample, float* out);
  void finish();

 private:
  struct Lane;
  Lane& next();

  std::unique_ptr<Lane> lanes_[2];  // double buffering: the GPU works on one, the host fills one
  size_t turn_ = 0;
};

}  // namespace howmany::gpu
