// SPDX-License-Identifier: Apache-2.0
// Copies timed as in nvbandwidth and NVIDIA's samples, by direct CUDA calls.
#include <cuda_runtime_api.h>

#include "benches/common/timing.h"
#include "benches/transfer/device_copies.h"
#include "core/base/error.h"

namespace howmany::benches {
namespace {

constexpr int kTimes = 16;

void must(cudaError_t error) {
  HM_ENSURE(error == cudaSuccess, "[bare] {}", cudaGetErrorString(error));
}

class BareCopies {
 public:
  BareCopies(int gpu, bool to_device, int64_t bytes)
      : bytes_(static_cast<size_t>(bytes)), to_device_(to_device) {
    must(cudaSetDevice(gpu));
    must(cudaMallocHost(&host_, bytes_));
    must(cudaMalloc(&there_, bytes_));
    must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    for (cudaEvent_t* event : {&begin_, &end_})
      must(cudaEventCreateWithFlags(event, cudaEventDefault));
  }
  ~BareCopies() {
    for (const cudaEvent_t event : {begin_, end_}) cudaEventDestroy(event);
    cudaStreamDestroy(stream_);
    cudaFree(there_);
    cudaFreeHost(host_);
  }
  BareCopies(const BareCopies&) = delete;
  BareCopies& operator=(const BareCopies&) = delete;

  double seconds() {
    must(cudaEventRecord(begin_, stream_));
    for (int i = 0; i < kTimes; ++i)
      must(to_device_ ? cudaMemcpyAsync(there_, host_, bytes_, cudaMemcpyHostToDevice, stream_)
                      : cudaMemcpyAsync(host_, there_, bytes_, cudaMemcpyDeviceToHost, stream_));
    must(cudaEventRecord(end_, stream_));
    must(cudaStreamSynchronize(stream_));
    float milliseconds = 0;
    must(cudaEventElapsedTime(&milliseconds, begin_, end_));
    return static_cast<double>(milliseconds) * 1e-3 / kTimes;
  }

 private:
  const size_t bytes_;
  const bool to_device_;
  void *host_ = nullptr, *there_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace

PairedSamples time_against_bare_copies(Device gpu, bool to_device, int64_t bytes, int rounds) {
  const HostCopy pinned{.device = gpu,
                        .to_device = to_device,
                        .memory = HostMemory::pinned,
                        .together = true,
                        .bytes = bytes};
  const DeviceScope near(gpu);  // for both sides
  BareCopies bare(gpu.index, to_device, bytes);
  return paired(in_turn(rounds, copies_of(pinned), [&] { return bare.seconds(); }));
}

}  // namespace howmany::benches
