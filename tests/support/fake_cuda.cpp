// A CUDA runtime of four GPUs that are memory of the host, linked before the real one: work is done
// when it is asked for, but behind what others let a stream wait for (hm_fake_gpu_queue, events).
// Device memory is closed to the host but while a copy or a kernel runs, so that whoever reads a
// GPU's tensor on the host crashes here as well. See gpu_on_host.h.
#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/gpu_on_host.h"

namespace howmany::testing_support {
namespace {

constexpr size_t kArena = size_t{1} << 30;
constexpr int kGpus = 4;

char* map(int file, int protection) {
  return static_cast<char*>(mmap(nullptr, kArena, protection, MAP_SHARED | MAP_NORESERVE, file, 0));
}

// There twice: as tensors know it, closed, and open for the fakes themselves.
struct Arena {
  int file = memfd_create("fake GPUs", 0);
  bool sized = ftruncate(file, kArena) == 0;
  char *base = map(file, PROT_NONE), *open = map(file, PROT_READ | PROT_WRITE);
  size_t used = 0;
  std::map<size_t, std::vector<void*>> free;
  std::map<void*, size_t> live;
  size_t in_use[kGpus] = {}, peak[kGpus] = {};
  std::map<void*, int> owner;
  int depth = 0;
  std::recursive_mutex mutex;

  bool holds(const void* p) const { return p >= base && p < base + kArena; }
  char* opened(const void* p) const { return open + (static_cast<const char*>(p) - base); }
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

// What it was asked and has not done; an item says when it has been.
struct Stream {
  int device = current;
  std::deque<std::function<bool()>> queue;
  uint64_t asked = 0, done = 0;
  bool looking = false;  // an item asks another stream, whose item asks this one

  bool idle() {
    const std::lock_guard lock(arena().mutex);
    if (std::exchange(looking, true)) return false;
    while (!queue.empty() && queue.front()()) {
      queue.pop_front();
      ++done;
    }
    looking = false;
    return queue.empty();
  }
  void ask(std::function<bool()> item) {
    const std::lock_guard lock(arena().mutex);
    queue.push_back(std::move(item));
    ++asked;
  }
  // Of what was asked until now.
  std::function<bool()> finished() {
    const std::lock_guard lock(arena().mutex);
    return [this, last = asked] {
      const std::lock_guard again(arena().mutex);
      return done >= last || idle() || done >= last;
    };
  }
};

using Event = std::function<bool()>;

Stream& of(cudaStream_t stream) { return *reinterpret_cast<Stream*>(stream); }
Event& of(cudaEvent_t event) { return *reinterpret_cast<Event*>(event); }

void wait_for(cudaStream_t stream) {
  while (!of(stream).idle()) std::this_thread::yield();
}

cudaError_t state(bool done) { return done ? cudaSuccess : cudaErrorNotReady; }

}  // namespace

OnFakeGpu::OnFakeGpu() { hm_fake_gpu_enter(); }
OnFakeGpu::~OnFakeGpu() { hm_fake_gpu_leave(); }

}  // namespace howmany::testing_support

namespace fake = howmany::testing_support;

extern "C" {

void hm_fake_gpu_enter() {
  fake::arena().mutex.lock();
  if (fake::arena().depth++ == 0)
    mprotect(fake::arena().base, fake::kArena, PROT_READ | PROT_WRITE);
}
void hm_fake_gpu_leave() {
  if (--fake::arena().depth == 0) mprotect(fake::arena().base, fake::kArena, PROT_NONE);
  fake::arena().mutex.unlock();
}
void* hm_fake_gpu_open(const void* memory) {
  return fake::arena().holds(memory) ? fake::arena().opened(memory) : nullptr;
}
void hm_fake_gpu_wait(cudaStream_t stream) { fake::wait_for(stream); }
int hm_fake_gpu_of(cudaStream_t stream) { return fake::of(stream).device; }
void hm_fake_gpu_queue(cudaStream_t stream, bool (*done)(void*), void* with) {
  fake::of(stream).ask([=] { return done(with); });
}
int hm_fake_gpu_holding(const void* begin, size_t bytes) {
  fake::Arena& a = fake::arena();
  const std::lock_guard lock(a.mutex);
  const auto after = a.live.upper_bound(const_cast<void*>(begin));
  if (after == a.live.begin()) return -1;
  const auto& [block, size] = *std::prev(after);
  const auto end = static_cast<const char*>(begin) + bytes;
  return end <= static_cast<char*>(block) + size ? a.owner[block] : -1;
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

// Never freed: what waits for it may outlive it, as on a GPU.
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  static auto* const all = new std::deque<fake::Stream>;
  const std::lock_guard lock(fake::arena().mutex);
  return *stream = reinterpret_cast<cudaStream_t>(&all->emplace_back()), cudaSuccess;
}
static std::atomic<int> waits = 0;
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  ++waits;
  return fake::wait_for(stream), cudaSuccess;
}
int hm_fake_gpu_waits() { return waits; }
cudaError_t cudaStreamQuery(cudaStream_t stream) { return fake::state(fake::of(stream).idle()); }
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return fake::of(stream).ask(fake::of(event)), cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return *event = reinterpret_cast<cudaEvent_t>(new fake::Event([] { return true; })), cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return fake::of(event) = fake::of(stream).finished(), cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) { return fake::state(fake::of(event)()); }
cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete &fake::of(event), cudaSuccess; }

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
cudaError_t cudaFreeAsync(void* block, cudaStream_t stream) {
  if (fake::of(stream).idle()) return fake::release(block);
  return fake::of(stream).ask([block] { return fake::release(block), true; }), cudaSuccess;
}
cudaError_t cudaFree(void* block) { return block == nullptr ? cudaSuccess : fake::release(block); }
cudaError_t cudaMallocHost(void** block, size_t bytes) {
  return *block = std::malloc(bytes), cudaSuccess;
}
cudaError_t cudaFreeHost(void* block) { return std::free(block), cudaSuccess; }

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const bool to_gpu = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_gpu = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (fake::arena().holds(to) != to_gpu || fake::arena().holds(from) != from_gpu)
    return fake::fail(cudaErrorInvalidValue);
  fake::wait_for(stream);
  std::memmove(to_gpu ? fake::arena().opened(to) : to, from_gpu ? fake::arena().opened(from) : from,
               bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes,
                                cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  if (!fake::arena().holds(to)) return fake::fail(cudaErrorInvalidValue);
  fake::wait_for(stream);
  std::memset(fake::arena().opened(to), value, bytes);
  return cudaSuccess;
}

}  // extern "C"
