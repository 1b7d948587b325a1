// SPDX-License-Identifier: Apache-2.0
// Shared by the files of the cuda backend: error checks, the current device, and the one stream of
// each GPU. The CUDA runtime is linked statically and opens the driver itself, so that the program
// also starts on hosts without a driver. Thread-safe. Private to core/backends/cuda.
//
//   const OnDevice on(x.device().index);
//   check(cudaMemsetAsync(p, 0, n, on.stream()), "memset");
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "core/tensor/device.h"
#include "core/tensor/tensor.h"

namespace howmany::cuda {

// Throws Error with `what` and CUDA's text if `error` is not cudaSuccess.
void check(cudaError_t error, const char* what);

// Returns a new event, recorded on the stream now. Work may still wait for it when the last owner
// goes: cudaEventDestroy defers the release until the event has completed.
std::shared_ptr<CUevent_st> recorded(cudaStream_t stream, unsigned flags);

// The stream and memory pool of the device. They are created on first use and never destroyed,
// because tensors may outlive every owner.
cudaStream_t stream_of(int index);
cudaMemPool_t pool_of(int index);
// Returns true if kernels and copies of the peer GPU can access the pool. The first call for a pair
// opens it: memory of an opened pool is mapped on the peer too.
bool pool_opened_to(int index, int peer);

// Allocates and frees blocks of the pool in stream order. take_from_pool() throws Error if memory
// is exhausted. During a capture they are not part of the graph.
void* take_from_pool(size_t bytes, int index);
void give_to_pool(void* block, int index) noexcept;

// Copies between blocks of two GPUs' pools. Uses an ordinary copy, as PyTorch does, if the source's
// pool is opened to the other device: cudaMemcpyPeerAsync into a pool opened by
// cudaMemPoolSetAccess has been observed to write nothing (CUDA.jl, PR 3112).
void copy_between(void* to, int to_index, const void* from, int from_index, size_t bytes,
                  cudaStream_t stream);

// Makes a device current for the calling thread. The destructor restores the former device if this
// process has used it.
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

// Makes a device current and provides the stream on which to enqueue work. During a capture
// (capture.h) stream() is the capture's stream; the constructor throws for another device.
class OnDevice {
 public:
  explicit OnDevice(int index);
  OnDevice(int index, cudaStream_t stream);  // for another stream of the device
  explicit OnDevice(const Tensor& t);        // throws std::invalid_argument if t is not on a GPU

  cudaStream_t stream() const { return stream_; }

 private:
  CurrentDevice current_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace howmany::cuda
