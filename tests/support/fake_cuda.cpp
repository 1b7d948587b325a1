// A CUDA runtime of four GPUs that are memory of the host, linked before the real one: work is done
// when it is asked for. Device memory is closed to the host but while a copy or a kernel runs, so
// that whoever reads a GPU's tensor on the host crashes here as well. See gpu_on_host.h.
#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/support/gpu_on_host.h"

extern "C" void hm_fake_gpu_enter();
extern "C" void hm_fake_gpu_leave();

namespace howmany::testing_support {
namespace {

constexpr size_t kArena = size_t{1} << 30;
constexpr int kGpus = 4;

struct Arena {
  char* base = static_cast<char*>(
      mmap(nullptr, kArena, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  size_t used = 0;
  std::map<size_t, std::vector<void*>> free;
  std::map<void*, size_t> live;
  size_t in_use[kGpus] = {}, peak[kGpus] = {};
  std::map<void*, int> owner;
  int depth = 0;
  std::recursive_mutex mutex;

  bool holds(const void* p) const { return p >= base && p < base + kArena; }
};
Arena& arena() {
  static auto* const all = new Arena;
  return *all;
}

thread_local int current = 0;
thread_local cudaError_t last = cudaSuccess;

cudaError_t fail(cudaError_t error) { return last = error; }

cudaError_t allocate(void** block, size_t bytes) {
  Arena& a = arena();
  const std::lock_guard lock(a.mutex);
  const size_t size = std::bit_ceil(bytes < 256 ? size_t{256} : bytes);
  std::vector<void*>& kept = a.free[size];
  if (kept.empty()) {
    if (size > kArena - a.used) return fail(cudaErrorMemoryAllocation);
    kept.push_back(a.base + a.used);
    a.used += size;
  }
  *block = kept.back();
  kept.pop_back();
  a.live[*block] = size;
  a.owner[*block] = current;
  a.in_use[current] += size;
  a.peak[current] = std::max(a.peak[current], a.in_use[current]);
  return cudaSuccess;
}

cudaError_t release(void* block) {
  Arena& a = arena();
  const std::lock_guard lock(a.mutex);
  const auto found = a.live.find(block);
  if (found == a.live.end()) return fail(cudaErrorInvalidValue);
  a.in_use[a.owner[block]] -= found->second;
  a.free[found->second].push_back(block);
  a.live.erase(found);
  return cudaSuccess;
}

}  // namespace

OnFakeGpu::OnFakeGpu() { hm_fake_gpu_enter(); }
OnFakeGpu::~OnFakeGpu() { hm_fake_gpu_leave(); }

}  // namespace howmany::testing_support

namespace fake = howmany::testing_support;
using fake::OnFakeGpu;

extern "C" {

// For fake_cublaslt.cpp.
void hm_fake_gpu_enter() {
  fake::arena().mutex.lock();
  if (fake::arena().depth++ == 0)
    mprotect(fake::arena().base, fake::kArena, PROT_READ | PROT_WRITE);
}
void hm_fake_gpu_leave() {
  if (--fake::arena().depth == 0) mprotect(fake::arena().base, fake::kArena, PROT_NONE);
  fake::arena().mutex.unlock();
}

cudaError_t cudaGetDeviceCount(int* count) { return *count = fake::kGpus, cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = fake::current, cudaSuccess; }
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= fake::kGpus) return fake::fail(cudaErrorInvalidDevice);
  return fake::current = device, cudaSuccess;
}
cudaError_t cudaGetLastError() { return std::exchange(fake::last, cudaSuccess); }
const char* cudaGetErrorString(cudaError_t) { return "the fake runtime refuses"; }
const char* cudaGetErrorName(cudaError_t) { return "fake"; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "fake GPU");
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) { return *can = 1, cudaSuccess; }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return *stream = reinterpret_cast<cudaStream_t>(std::malloc(1)), cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return *event = reinterpret_cast<cudaEvent_t>(std::malloc(1)), cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t event) { return std::free(event), cudaSuccess; }

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return *pool = reinterpret_cast<cudaMemPool_t>(intptr_t{device} + 1), cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr which, void* value) {
  const auto device = reinterpret_cast<intptr_t>(pool) - 1;
  const bool peak = which == cudaMemPoolAttrUsedMemHigh;
  *static_cast<uint64_t*>(value) = peak ? fake::arena().peak[device] : fake::arena().in_use[device];
  return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, size_t) {
  return cudaSuccess;
}

cudaError_t cudaMallocAsync(void** block, size_t bytes, cudaStream_t) {
  return fake::allocate(block, bytes);
}
cudaError_t cudaMalloc(void** block, size_t bytes) { return fake::allocate(block, bytes); }
cudaError_t cudaFreeAsync(void* block, cudaStream_t) { return fake::release(block); }
cudaError_t cudaFree(void* block) { return block == nullptr ? cudaSuccess : fake::release(block); }
cudaError_t cudaMallocHost(void** block, size_t bytes) {
  return *block = std::malloc(bytes), cudaSuccess;
}
cudaError_t cudaFreeHost(void* block) { return std::free(block), cudaSuccess; }

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t) {
  const bool to_gpu = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_gpu = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (fake::arena().holds(to) != to_gpu || fake::arena().holds(from) != from_gpu)
    return fake::fail(cudaErrorInvalidValue);
  const OnFakeGpu on;
  std::memmove(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes,
                                cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t) {
  if (!fake::arena().holds(to)) return fake::fail(cudaErrorInvalidValue);
  const OnFakeGpu on;
  std::memset(to, value, bytes);
  return cudaSuccess;
}

}  // extern "C"
