// SPDX-License-Identifier: Apache-2.0
// Blocks a fake GPU.
#pragma once

#include <atomic>

#include "core/backends/cuda/runtime/runtime.h"
#include "tests/fakes/fake_gpu.h"

namespace howmany::testing_support {

// Work submitted to the GPU's stream later waits until open() is called.
class Held {
 public:
  explicit Held(int gpu) : stream_(cuda::stream_of(gpu)) {
    hm_fake_gpu_queue(
        stream_, [](void* open) { return static_cast<std::atomic<bool>*>(open)->load(); }, &open_);
  }
  ~Held() {
    open_ = true;
    hm_fake_gpu_wait(stream_);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  void open() { open_ = true; }

 private:
  const cudaStream_t stream_;
  std::atomic<bool> open_ = false;
};

}  // namespace howmany::testing_support
