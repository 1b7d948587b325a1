// Images made into training samples on a GPU, by nvJPEG (opened at run time) and the filter of
// core/data/images/transform.h as a kernel; gpu/none.cpp stands in for it where core/gpu/gpu.h says
// so.
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

// Why none can be by that GPU: it is not there, or no nvJPEG is, or that cannot start. Empty when
// they can. Never throws.
std::string no_image_decoder(int index);

// One thread. While the GPU is at an image the host reads the next: what is asked for is there
// after finish().
class ImageDecoder {
 public:
  // Throws Error where no_image_decoder() says why.
  explicit ImageDecoder(int index);
  ~ImageDecoder();  // when all is done
  ImageDecoder(const ImageDecoder&) = delete;
  ImageDecoder& operator=(const ImageDecoder&) = delete;

  // A plain_jpeg() of that size to out [size,size,3] on the GPU, as planned with shrink 1. False
  // when nvJPEG does not take it; else the bytes are gone, and others in their place.
  bool decode(std::vector<uint8_t>& bytes, const image::Size& size, const image::Resampler& plan,
              bool normalize, float* out);
  // A sample that the host made.
  void put(const std::vector<float>& sample, float* out);
  void finish();

 private:
  struct Lane;
  Lane& next();

  std::unique_ptr<Lane> lanes_[2];  // one is filled while the GPU is at the other
  size_t turn_ = 0;
};

}  // namespace howmany::gpu
