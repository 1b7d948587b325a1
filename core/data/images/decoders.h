// SPDX-License-Identifier: Apache-2.0
// A pool of GPU image decoders for the workers of a loader. Creating a decoder costs as much as
// decoding many images. Decoders may outlive the pool. Thread-safe. Private to core/data.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "core/gpu/images.h"

namespace howmany {

class Decoders : public std::enable_shared_from_this<Decoders> {
 public:
  static std::shared_ptr<Decoders> on_gpu(int gpu);

  // Returns a decoder for one thread. It is reused once released and after its work is complete.
  // Throws Error if it cannot be created.
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
