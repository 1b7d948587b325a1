// What the files of the cuda backend share: errors, the current device, and the one stream of each
// GPU. The CUDA runtime is linked statically and opens the driver itself, so programs start where
// there is none. Thread-safe. Private to core/backends/cuda.
//
//   const OnDevice on(x.device().index);
//   check(cudaMemsetAsync(p, 0, n, on.stream()), "memset");
#pragma once

#include <cuda_runtime_api.h>

#include "core/device.h"
#include "core/tensor.h"

namespace howmany::cuda {

// Throws Error with what failed and why.
void check(cudaError_t error, const char* what);

// Of the device, made on first use and never ended: tensors may outlive every owner.
cudaStream_t stream_of(int index);
cudaMemPool_t pool_of(int index);

// Makes a device current for the calling thread, which has its former one back at the end.
class OnDevice {
 public:
  explicit OnDevice(int index);
  explicit OnDevice(const Tensor& t);  // throws std::invalid_argument when it is not on a GPU
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  cudaStream_t stream() const { return stream_; }

 private:
  int before_ = -1;
  bool changed_ = false;
  cudaStream_t stream_ = nullptr;
};

}  // namespace howmany::cuda
