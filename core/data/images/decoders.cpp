// SPDX-License-Identifier: Apache-2.0
#include "core/data/images/decoders.h"

#include <exception>
#include <utility>

namespace howmany {

std::shared_ptr<Decoders> Decoders::on_gpu(int gpu) {
  return std::shared_ptr<Decoders>(new Decoders(gpu));
}

std::shared_ptr<gpu::ImageDecoder> Decoders::take() {
  auto decoder = one_of_them();
  const auto back = [home = shared_from_this()](gpu::ImageDecoder* used) {
    home->give(std::unique_ptr<gpu::ImageDecoder>(used));
  };
  return {decoder.release(), back};
}

std::unique_ptr<gpu::ImageDecoder> Decoders::one_of_them() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      auto last = std::move(free_.back());
      free_.pop_back();
      return last;
    }
  }
  return std::make_unique<gpu::ImageDecoder>(gpu_);
}

// A decoder whose finish() fails is not reused.
void Decoders::give(std::unique_ptr<gpu::ImageDecoder> decoder) noexcept {
  try {
    decoder->finish();
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(decoder));
  } catch (const std::exception&) {
    decoder.reset();
  }
}

}  // namespace howmany
