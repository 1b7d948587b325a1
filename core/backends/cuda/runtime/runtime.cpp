// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/runtime/runtime.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bitset>
#include <mutex>

#include "core/backends/cuda/graph/capture.h"
#include "core/base/error.h"
#include "core/gpu/gpu.h"

namespace howmany {
namespace cuda {
namespace {

constexpr int kMaxGpus = 64;

struct Gpu {
  std::once_flag once;
  std::atomic<bool> used = false;
  cudaStream_t stream = nullptr;
  cudaMemPool_t pool = nullptr;
  std::mutex peers;
  std::bitset<kMaxGpus> tried, opened_to;  // guarded by `peers`
};

// Gives a peer GPU access to the pool, so that copies between them are direct. Returns false if it
// cannot: copy_between() then uses another path.
bool open_to(const Gpu& gpu, int index, int peer) {
  int can = 0;
  cudaMemAccessDesc access{};
  access.location.type = cudaMemLocationTypeDevice;
  access.location.id = peer;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  if (cudaDeviceCanAccessPeer(&can, peer, index) == cudaSuccess && can != 0 &&
      cudaMemPoolSetAccess(gpu.pool, &access, 1) == cudaSuccess)
    return true;
  cudaGetLastError();
  return false;
}

// The pool never returns memory to the system, because each step needs the same sizes again.
void make(Gpu& gpu, int index) {
  const CurrentDevice current(index);
  check(cudaStreamCreateWithFlags(&gpu.stream, cudaStreamNonBlocking), "stream");
  check(cudaDeviceGetDefaultMemPool(&gpu.pool, index), "memory pool");
  uint64_t all = UINT64_MAX;
  check(cudaMemPoolSetAttribute(gpu.pool, cudaMemPoolAttrReleaseThreshold, &all), "memory pool");
}

void require_gpu(int index) {
  const int count = std::min(gpu::count(), kMaxGpus);
  HM_REQUIRE(count > 0, "[cuda] no device cuda:{}: {}", index, gpu::unavailable());
  HM_REQUIRE(index >= 0 && index < count, "[cuda] no device cuda:{}: there are {}", index, count);
}

Gpu& gpu_at(int index) {
  static auto* const gpus = new std::array<Gpu, kMaxGpus>;  // leaked: see stream_of()
  return (*gpus)[static_cast<size_t>(index)];
}

Gpu& made(int index) {
  require_gpu(index);
  Gpu& gpu = gpu_at(index);
  std::call_once(gpu.once, [&] { make(gpu, index); });
  return gpu;
}

int gpu_index(const Tensor& t) {
  HM_REQUIRE(t.device().type == DeviceType::cuda, "[cuda] {} is on {}", t.shape().str(),
             t.device().str());
  return t.device().index;
}

struct Count {
  int gpus = 0;
  std::string why;
};

// Returns why this build has no kernels for one of the GPUs; empty if it has.
std::string too_old(int count) {
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp gpu{};
    if (cudaGetDeviceProperties(&gpu, i) != cudaSuccess) {
      cudaGetLastError();  // its first use reports the error
      continue;
    }
    if (10 * gpu.major + gpu.minor < HM_LEAST_CAPABILITY)
      return fmt::format(
          "cuda:{} ({}) has compute capability {}.{}, and this build is for {}.{} or newer: "
          "hide it with CUDA_VISIBLE_DEVICES",
          i, gpu.name, gpu.major, gpu.minor, HM_LEAST_CAPABILITY / 10, HM_LEAST_CAPABILITY % 10);
  }
  return "";
}

Count look() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) {
    const std::string why = too_old(count);
    return {why.empty() ? count : 0, why};
  }
  cudaGetLastError();  // clears the error, which is reported here
  int driver = 0;      // the newest CUDA version that the driver supports
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
    return {0, "no GPU, because no NVIDIA driver is installed"};
  if (error == cudaErrorInsufficientDriver)
    return {0,
            fmt::format("the NVIDIA driver here serves CUDA {}.{}, and this build needs {}.{} or "
                        "newer: a newer driver, or NVIDIA's cuda-compat package, is needed",
                        driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000,
                        CUDART_VERSION % 1000 / 10)};
  return {0, error == cudaErrorNoDevice || error == cudaSuccess
                 ? "no GPU that the NVIDIA driver here serves"
                 : fmt::format("the CUDA runtime says {}", cudaGetErrorString(error))};
}

const Count& seen() {
  static const Count count = look();
  return count;
}

cudaDeviceProp properties_of(int index) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index), "device properties");
  return properties;
}

}  // namespace

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) [[likely]]
    return;
  cudaGetLastError();
  throw Error(
      fmt::format("[cuda] {}: {} ({})", what, cudaGetErrorString(error), cudaGetErrorName(error)));
}

std::shared_ptr<CUevent_st> recorded(cudaStream_t stream, unsigned flags) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, flags), "event");
  std::shared_ptr<CUevent_st> owned(event, [](cudaEvent_t made) { cudaEventDestroy(made); });
  check(cudaEventRecord(event, stream), "event");
  return owned;
}

cudaStream_t stream_of(int index) { return made(index).stream; }
cudaMemPool_t pool_of(int index) { return made(index).pool; }
bool pool_opened_to(int index, int peer) {
  Gpu& gpu = made(index);
  const auto bit = static_cast<size_t>(peer);
  const std::lock_guard lock(gpu.peers);
  if (!gpu.tried.test(bit)) {
    gpu.tried.set(bit);
    gpu.opened_to.set(bit, open_to(gpu, index, peer));
  }
  return gpu.opened_to.test(bit);
}

CurrentDevice::CurrentDevice(int index) {
  require_gpu(index);
  // Before the first cudaSetDevice a thread is on device 0. cudaGetDevice creates no context.
  check(cudaGetDevice(&before_), "get device");
  changed_ = before_ != index;
  if (changed_) check(cudaSetDevice(index), "set device");
  if (Gpu& gpu = gpu_at(index); !gpu.used) gpu.used = true;  // avoids a write in most calls
}

// Does not restore a device that was never used: that would create a context of hundreds of MB.
CurrentDevice::~CurrentDevice() {
  if (changed_ && gpu_at(before_).used) cudaSetDevice(before_);
}

OnDevice::OnDevice(int index) : current_(index), stream_(stream_of(index)) {
  const Capture* const capture = current_capture;
  if (capture == nullptr) return;
  if (capture->index != index) refuse_in_capture("work of another device");
  stream_ = capture->stream;
}

OnDevice::OnDevice(int index, cudaStream_t stream) : current_(index), stream_(stream) {}

OnDevice::OnDevice(const Tensor& t) : OnDevice(gpu_index(t)) {}

}  // namespace cuda

void gpu::synchronize_used() {
  for (int i = 0; i < std::min(count(), cuda::kMaxGpus); ++i)
    if (cuda::gpu_at(i).used) synchronize(i);
}

int gpu::count() { return cuda::seen().gpus; }
std::string gpu::unavailable() { return cuda::seen().why; }
std::string gpu::pci_address(int index) {
  std::array<char, 32> text{};
  const cudaError_t error =
      cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), index);
  if (error == cudaSuccess) return text.data();
  cudaGetLastError();  // clears the error, which concerns no work
  return "";
}
std::string gpu::name(int index) { return cuda::properties_of(index).name; }
std::string gpu::uuid(int index) {
  const cudaDeviceProp properties = cuda::properties_of(index);
  std::string text = "GPU-";
  for (const char byte : properties.uuid.bytes)
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  for (const size_t dash : {12, 17, 22, 27}) text.insert(dash, 1, '-');
  return text;
}

}  // namespace howmany
