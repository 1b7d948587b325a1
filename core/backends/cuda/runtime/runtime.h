// What the files of the cuda backend share: errors, the current device, and the one stream of each
// GPU. The CUDA runtime is linked statically and opens the driver itself, so programs start where
// there is none. Thread-safe. Private to core/backends/cuda.
//
//   const OnDevice on(x.device().index);
//   check(cudaMemsetAsync(p, 0, n, on.stream()), "memset");
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "core/tensor/device.h"
#include "core/tensor/tensor.h"

namespace howmany::cuda {

// Throws Error with what failed and why.
void check(cudaError_t error, const char* what);

// A new event, recorded now. It lives on after cudaEventDestroy until what waits for it has passed.
std::shared_ptr<CUevent_st> recorded(cudaStream_t stream, unsigned flags);

// Of the device, made on first use and never ended: tensors may outlive every owner.
cudaStream_t stream_of(int index);
cudaMemPool_t pool_of(int index);
bool pool_opened_to(int index, int peer);  // whose kernels and copies then read and write there

// Blocks of the pool, of the stream's order; take throws Error when there is no more. Also within a
// capture, of which they are no part.
void* take_from_pool(size_t bytes, int index);
void give_to_pool(void* block, int index) noexcept;

// Of blocks of their pools. An ordinary copy, as PyTorch does, where the source's pool is opened to
// the other device: cudaMemcpyPeerAsync into a pool opened by cudaMemPoolSetAccess has been seen to
// write nothing (CUDA.jl, PR 3112).
void copy_between(void* to, int to_index, const void* from, int from_index, size_t bytes,
                  cudaStream_t stream);

// Makes a device current for the calling thread, which has its former one back at the end, if this
// process ever used that.
class CurrentDevice {
 public:
  explicit CurrentDevice(int index);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = -1;
  bool changed_ = false;
};

// ... to ask it for work. Within a capture (capture.h) stream() is that of the capture, and another
// device is refused.
class OnDevice {
 public:
  explicit OnDevice(int index);
  OnDevice(int index, cudaStream_t stream);  // for work on another stream of it
  explicit OnDevice(const Tensor& t);        // throws std::invalid_argument when it is not on a GPU

  cudaStream_t stream() const { return stream_; }

 private:
  CurrentDevice current_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace howmany::cuda
