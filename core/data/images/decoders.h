// Decoders of images on a GPU for the workers of a loader: making one costs as much as many images.
// Handles may outlive their maker. Thread-safe. Private to core/data.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "core/gpu/images.h"

namespace howmany {

class Decoders : public std::enable_shared_from_this<Decoders> {
 public:
  static std::shared_ptr<Decoders> on_gpu(int gpu);

  // For one thread; what it was asked for is done before another has it. Throws Error.
  std::shared_ptr<gpu::ImageDecoder> take();

 private:
  explicit Decoders(int gpu) : gpu_(gpu) {}
  std::unique_ptr<gpu::ImageDecoder> one_of_them();
  void give(std::unique_ptr<gpu::ImageDecoder> decoder) noexcept;

  const int gpu_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<gpu::ImageDecoder>> free_;
};

}  // namespace howmany
