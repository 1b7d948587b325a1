// SPDX-License-Identifier: Apache-2.0
// A fake CUDA runtime with four GPUs in host memory, linked before the real one. See gpu_on_host.h.
//
// Streams. Work runs when it is enqueued. If the stream waits (hm_fake_gpu_queue, events), the work
//   runs later and the host continues, as with a GPU.
// Captures. A capturing stream runs nothing; its work becomes that of a graph. Calls that are
//   illegal during a capture invalidate it.
// Lazy copies. After hm_fake_gpu_lazy(true), copies from pinned memory run only when the host waits
//   for them.
// Memory. Device memory is inaccessible to the host except while a copy or a kernel runs. So a host
//   access to a GPU's tensor crashes here, too.
#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "tests/fakes/gpu_on_host.h"

namespace howmany::testing_support {
namespace {

constexpr size_t kArena = size_t{1} << 30;
constexpr int kGpus = 4;
// The first two are equal to those of fake_nvml.cpp.
constexpr const char* kUuids[kGpus] = {
    "\x89\x32\xf9\x37\xd7\x2c\x41\x06\xc1\x2f\x20\xbd\x9f\xae\xd9\xf6",
    "\x8f\xf0\x0a\x11\x41\x06\x4b\x1a\x9d\x02\x55\xe0\x7c\x31\xaa\x01",
    "\x8f\xf0\x0a\x11\x41\x07\x4b\x1a\x9d\x02\x55\xe0\x7c\x31\xaa\x02",
    "\xc0\xff\xee\x01\x41\x08\x4b\x1a\x9d\x02\x55\xe0\x7c\x31\xaa\x03"};

char* map(int file, int protection) {
  return static_cast<char*>(mmap(nullptr, kArena, protection, MAP_SHARED | MAP_NORESERVE, file, 0));
}

// Mapped twice: protected, at the addresses of tensors, and accessible, for the fakes.
struct Arena {
  int file = memfd_create("fake GPUs", 0);
  bool sized = ftruncate(file, kArena) == 0;
  char *base = map(file, PROT_NONE), *open = map(file, PROT_READ | PROT_WRITE);
  size_t used = 0;
  std::map<size_t, std::vector<void*>> free;
  std::map<void*, size_t> live;
  size_t in_use[kGpus] = {}, peak[kGpus] = {};
  size_t reserved[kGpus] = {};  // most in use since the pool was trimmed
  unsigned peers[kGpus] = {};   // a bit for each that may access the pool
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

cudaError_t allocate(void** block, size_t bytes, int device) {
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
  a.owner[*block] = device;
  a.in_use[device] += size;
  a.peak[device] = std::max(a.peak[device], a.in_use[device]);
  a.reserved[device] = std::max(a.reserved[device], a.in_use[device]);
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

using Node = std::function<void()>;
struct Graph {
  std::vector<Node> nodes;
};

struct Capture {
  Graph graph;
  std::thread::id by = std::this_thread::get_id();
  bool spoilt = false;
};
thread_local Capture* mine = nullptr;  // started by this thread
thread_local cudaStreamCaptureMode strictness = cudaStreamCaptureModeThreadLocal;

// For calls that a thread must not make during its own capture, unless its mode is relaxed.
cudaError_t unsafe() {
  if (mine == nullptr || strictness == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  mine->spoilt = true;
  return fail(cudaErrorStreamCaptureUnsupported);
}

// The pending work of a stream. An item returns true once it is done.
struct Stream {
  int device = current;
  Capture* capture = nullptr;
  std::deque<std::function<bool()>> queue;
  uint64_t asked = 0, done = 0;
  std::chrono::duration<double> spent{};  // extra time by hm_fake_gpu_spend
  bool looking = false;                   // guards against items that poll each other's streams

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
  // Returns a function that is true once all work enqueued so far is done.
  std::function<bool()> finished() {
    const std::lock_guard lock(arena().mutex);
    return [this, last = asked] {
      const std::lock_guard again(arena().mutex);
      return done >= last || idle() || done >= last;
    };
  }
};

using TimePoint = std::chrono::time_point<std::chrono::steady_clock, std::chrono::duration<double>>;

// Records whether earlier work is done, and its time.
struct Event {
  explicit Event(bool has_time) : timed(has_time) {}
  const bool timed;
  const int device = current;
  std::function<bool()> done = [] { return true; };
  std::shared_ptr<TimePoint> when;
  bool captured = false;
};

Stream& of(cudaStream_t stream) { return *reinterpret_cast<Stream*>(stream); }
Event& of(cudaEvent_t event) { return *reinterpret_cast<Event*>(event); }

// Returns an error if the stream captures.
cudaError_t refuse(Stream& stream) {
  if (stream.capture == nullptr) return cudaSuccess;
  stream.capture->spoilt = true;
  return fail(cudaErrorStreamCaptureUnsupported);
}

void wait_for(cudaStream_t stream) {
  if (refuse(of(stream)) != cudaSuccess) return;
  while (!of(stream).idle()) std::this_thread::yield();
}

// Runs the work now if the stream is idle. If the stream captures, adds it to the graph.
cudaError_t perform(Stream& stream, Node work) {
  if (stream.capture != nullptr) {
    if (stream.capture->spoilt) return fail(cudaErrorStreamCaptureInvalidated);
    stream.capture->graph.nodes.push_back(std::move(work));
    return cudaSuccess;
  }
  const std::lock_guard lock(arena().mutex);
  if (stream.idle())
    work();
  else
    stream.ask([work = std::move(work)] { return work(), true; });
  return cudaSuccess;
}

std::map<void*, size_t>& pinned() {  // under the arena's mutex
  static auto* const blocks = new std::map<void*, size_t>;
  return *blocks;
}
bool is_pinned(const void* p) {
  const std::lock_guard lock(arena().mutex);
  const auto after = pinned().upper_bound(const_cast<void*>(p));
  if (after == pinned().begin()) return false;
  const auto& [block, size] = *std::prev(after);
  return p < static_cast<char*>(block) + size;
}

cudaError_t state(bool done) { return done ? cudaSuccess : fail(cudaErrorNotReady); }

}  // namespace

OnFakeGpu::OnFakeGpu() { hm_fake_gpu_enter(); }
OnFakeGpu::~OnFakeGpu() { hm_fake_gpu_leave(); }

}  // namespace howmany::testing_support

namespace fake = howmany::testing_support;

int hm_fake_gpu_do(cudaStream_t stream, std::function<void()> work) {
  return fake::perform(fake::of(stream), std::move(work));
}

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
void hm_fake_gpu_spend(cudaStream_t stream, double seconds) {
  const std::lock_guard lock(fake::arena().mutex);
  fake::of(stream).spent += std::chrono::duration<double>(seconds);
}
unsigned hm_fake_gpu_peers(int index) {
  const std::lock_guard lock(fake::arena().mutex);
  return fake::arena().peers[index];
}
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
cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = fake::current, cudaSuccess; }
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= fake::kGpus) return fake::fail(cudaErrorInvalidDevice);
  return fake::current = device, cudaSuccess;
}
cudaError_t cudaGetLastError() { return std::exchange(fake::last, cudaSuccess); }
const char* cudaGetErrorString(cudaError_t) { return "the fake runtime refuses"; }
const char* cudaGetErrorName(cudaError_t) { return "fake"; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= fake::kGpus) return fake::fail(cudaErrorInvalidDevice);
  *properties = {};
  std::strcpy(properties->name, "fake GPU");
  const char* const capability = std::getenv("HM_FAKE_CAPABILITY");  // "70"; default 90
  const int whole = capability == nullptr ? 90 : std::atoi(capability);
  properties->major = whole / 10;
  properties->minor = whole % 10;
  std::memcpy(properties->uuid.bytes, fake::kUuids[device], sizeof properties->uuid.bytes);
  return cudaSuccess;
}
// Returns an address at which no machine has a device.
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  if (device < 0 || device >= fake::kGpus) return fake::fail(cudaErrorInvalidDevice);
  return std::snprintf(text, static_cast<size_t>(size), "FFFF:%02X:00.0", device), cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) { return *can = 1, cudaSuccess; }

// Never freed, because waiters may outlive it, as on a GPU.
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  static auto* const all = new std::deque<fake::Stream>;
  const std::lock_guard lock(fake::arena().mutex);
  return *stream = reinterpret_cast<cudaStream_t>(&all->emplace_back()), cudaSuccess;
}
static std::atomic<int> waits = 0;
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const cudaError_t error = fake::refuse(fake::of(stream)); error != cudaSuccess) return error;
  ++waits;
  return fake::wait_for(stream), cudaSuccess;
}
int hm_fake_gpu_waits() { return waits; }
static std::atomic<int> kernels = 0;
int hm_fake_gpu_launched(cudaStream_t stream) {
  ++kernels;
  return fake::of(stream).device == fake::current ? cudaSuccess
                                                  : fake::fail(cudaErrorInvalidResourceHandle);
}
int hm_fake_gpu_kernels() { return kernels; }
static std::atomic<bool> lazy = false;
void hm_fake_gpu_lazy(bool copies) { lazy = copies; }
int64_t hm_fake_gpu_pinned() {
  const std::lock_guard lock(fake::arena().mutex);
  int64_t bytes = 0;
  for (const auto& [block, size] : fake::pinned()) bytes += static_cast<int64_t>(size);
  return bytes;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (const cudaError_t error = fake::refuse(fake::of(stream)); error != cudaSuccess) return error;
  return fake::state(fake::of(stream).idle());
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
// On a GPU, a captured event adds this stream to the capture. We do not use that.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (const cudaError_t error = fake::refuse(fake::of(stream)); error != cudaSuccess) return error;
  if (fake::of(event).captured) return fake::fail(cudaErrorStreamCaptureIsolation);
  return fake::of(stream).ask(fake::of(event).done), cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  const bool timed = (flags & cudaEventDisableTiming) == 0;
  return *event = reinterpret_cast<cudaEvent_t>(new fake::Event(timed)), cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  fake::Event& e = fake::of(event);
  if (e.device != fake::of(stream).device) return fake::fail(cudaErrorInvalidResourceHandle);
  e.captured = fake::of(stream).capture != nullptr;
  if (e.captured) return cudaSuccess;
  e.when = std::make_shared<fake::TimePoint>();
  fake::of(stream).ask([when = e.when, &own = fake::of(stream)] {
    return *when = std::chrono::steady_clock::now() + own.spent, true;
  });
  e.done = fake::of(stream).finished();
  if (!lazy) e.done();
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (fake::of(event).captured) return fake::fail(cudaErrorCapturedEvent);
  if (const cudaError_t error = fake::unsafe(); error != cudaSuccess) return error;
  return fake::state(fake::of(event).done());
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (fake::of(event).captured) return fake::fail(cudaErrorCapturedEvent);
  if (const cudaError_t error = fake::unsafe(); error != cudaSuccess) return error;
  for (++waits; !fake::of(event).done();) std::this_thread::yield();
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  const auto &first = fake::of(begin), &last = fake::of(end);
  const bool alike = first.timed && last.timed && first.device == last.device;
  if (!alike || !first.when || !last.when) return fake::fail(cudaErrorInvalidResourceHandle);
  if (!first.done() || !last.done()) return fake::fail(cudaErrorNotReady);
  const std::chrono::duration<float, std::milli> took = *last.when - *first.when;
  return *milliseconds = took.count(), cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete &fake::of(event), cudaSuccess; }

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return *pool = reinterpret_cast<cudaMemPool_t>(intptr_t{device} + 1), cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr which, void* value) {
  if (which != cudaMemPoolAttrUsedMemHigh) return cudaSuccess;
  if (*static_cast<uint64_t*>(value) != 0) return fake::fail(cudaErrorInvalidValue);
  const auto device = reinterpret_cast<intptr_t>(pool) - 1;
  const std::lock_guard lock(fake::arena().mutex);
  return fake::arena().peak[device] = fake::arena().in_use[device], cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr which, void* value) {
  const auto device = reinterpret_cast<intptr_t>(pool) - 1;
  const std::lock_guard lock(fake::arena().mutex);
  const auto* const all = which == cudaMemPoolAttrUsedMemHigh          ? fake::arena().peak
                          : which == cudaMemPoolAttrReservedMemCurrent ? fake::arena().reserved
                                                                       : fake::arena().in_use;
  return *static_cast<uint64_t*>(value) = all[device], cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t) {
  const auto device = reinterpret_cast<intptr_t>(pool) - 1;
  const std::lock_guard lock(fake::arena().mutex);
  return fake::arena().reserved[device] = fake::arena().in_use[device], cudaSuccess;
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* all, size_t count) {
  const auto device = reinterpret_cast<intptr_t>(pool) - 1;
  const std::lock_guard lock(fake::arena().mutex);
  for (size_t i = 0; i < count; ++i) fake::arena().peers[device] |= 1U << all[i].location.id;
  return cudaSuccess;
}

// On a GPU, a capturing stream makes allocation nodes. We do not use that.
cudaError_t cudaMallocAsync(void** block, size_t bytes, cudaStream_t stream) {
  if (const cudaError_t error = fake::refuse(fake::of(stream)); error != cudaSuccess) return error;
  return fake::allocate(block, bytes, fake::of(stream).device);
}
cudaError_t cudaMalloc(void** block, size_t bytes) {
  if (const cudaError_t error = fake::unsafe(); error != cudaSuccess) return error;
  return fake::allocate(block, bytes, fake::current);
}
cudaError_t cudaFreeAsync(void* block, cudaStream_t stream) {
  if (const cudaError_t error = fake::refuse(fake::of(stream)); error != cudaSuccess) return error;
  if (fake::of(stream).idle()) return fake::release(block);
  return fake::of(stream).ask([block] { return fake::release(block), true; }), cudaSuccess;
}
cudaError_t cudaFree(void* block) { return block == nullptr ? cudaSuccess : fake::release(block); }
cudaError_t cudaMallocHost(void** block, size_t bytes) {
  if (const cudaError_t error = fake::unsafe(); error != cudaSuccess) return error;
  const std::lock_guard lock(fake::arena().mutex);
  fake::pinned()[*block = std::malloc(bytes)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** block, size_t bytes, unsigned) {
  return cudaMallocHost(block, bytes);
}
cudaError_t cudaFreeHost(void* block) {
  const std::lock_guard lock(fake::arena().mutex);
  fake::pinned().erase(block);
  return std::free(block), cudaSuccess;
}
cudaError_t cudaHostRegister(void* block, size_t bytes, unsigned) {
  const std::lock_guard lock(fake::arena().mutex);
  const bool fresh = fake::pinned().emplace(block, bytes).second;
  return fresh ? cudaSuccess : fake::fail(cudaErrorHostMemoryAlreadyRegistered);
}
cudaError_t cudaHostUnregister(void* block) {
  const std::lock_guard lock(fake::arena().mutex);
  const bool was = fake::pinned().erase(block) > 0;
  return was ? cudaSuccess : fake::fail(cudaErrorHostMemoryNotRegistered);
}
// Runs the function on a thread of its own.
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t call, void* with) {
  if (const cudaError_t error = fake::refuse(fake::of(stream)); error != cudaSuccess) return error;
  auto over = std::make_shared<std::atomic<bool>>(false);
  auto started = std::make_shared<bool>(false);
  fake::of(stream).ask([=] {
    if (!std::exchange(*started, true)) std::thread([=] { call(with), *over = true; }).detach();
    return over->load();
  });
  return fake::of(stream).idle(), cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const bool to_gpu = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_gpu = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (to == nullptr || from == nullptr || fake::arena().holds(to) != to_gpu ||
      fake::arena().holds(from) != from_gpu)
    return fake::fail(cudaErrorInvalidValue);
  const bool staged = (!to_gpu && !fake::is_pinned(to)) || (!from_gpu && !fake::is_pinned(from));
  if (staged) {
    if (const cudaError_t error = fake::refuse(fake::of(stream)); error != cudaSuccess)
      return error;
    fake::wait_for(stream);
  }
  void* const target = to_gpu ? fake::arena().opened(to) : to;
  const void* const source = from_gpu ? fake::arena().opened(from) : from;
  if (lazy && kind == cudaMemcpyHostToDevice && !staged && fake::of(stream).capture == nullptr) {
    fake::of(stream).ask([=] { return std::memcpy(target, source, bytes), true; });
    return cudaSuccess;
  }
  return fake::perform(fake::of(stream), [=] { std::memmove(target, source, bytes); });
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes,
                                cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t rows, cudaMemcpyKind kind, cudaStream_t stream) {
  const bool within = fake::arena().holds(to) && fake::arena().holds(from);
  if (kind != cudaMemcpyDeviceToDevice || !within || width > to_pitch || width > from_pitch)
    return fake::fail(cudaErrorInvalidValue);
  return fake::perform(fake::of(stream),
                       [=, to = static_cast<char*>(fake::arena().opened(to)),
                        from = static_cast<const char*>(fake::arena().opened(from))] {
                         for (size_t row = 0; row < rows; ++row)
                           std::memcpy(to + row * to_pitch, from + row * from_pitch, width);
                       });
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  if (!fake::arena().holds(to)) return fake::fail(cudaErrorInvalidValue);
  return fake::perform(fake::of(stream),
                       [=, to = fake::arena().opened(to)] { std::memset(to, value, bytes); });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (fake::of(stream).capture != nullptr || fake::mine != nullptr)
    return fake::fail(cudaErrorIllegalState);
  fake::mine = fake::of(stream).capture = new fake::Capture;
  return fake::strictness = mode, cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  fake::Capture* const capture = fake::of(stream).capture;
  *graph = nullptr;
  if (capture == nullptr) return fake::fail(cudaErrorIllegalState);
  if (capture != fake::mine) return fake::fail(cudaErrorStreamCaptureWrongThread);
  fake::mine = fake::of(stream).capture = nullptr;
  const std::unique_ptr<fake::Capture> over(capture);
  if (over->spoilt) return fake::fail(cudaErrorStreamCaptureInvalidated);
  *graph = reinterpret_cast<cudaGraph_t>(new fake::Graph(std::move(over->graph)));
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return std::swap(*mode, fake::strictness), cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  auto* const work =
      new std::shared_ptr(std::make_shared<fake::Graph>(*reinterpret_cast<fake::Graph*>(graph)));
  return *made = reinterpret_cast<cudaGraphExec_t>(work), cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return delete reinterpret_cast<fake::Graph*>(graph), cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t made, cudaStream_t stream) {
  if (const cudaError_t error = fake::refuse(fake::of(stream)); error != cudaSuccess) return error;
  const auto work = *reinterpret_cast<std::shared_ptr<fake::Graph>*>(made);
  return fake::perform(fake::of(stream), [work] {
    for (const fake::Node& node : work->nodes) node();
  });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t made) {
  return delete reinterpret_cast<std::shared_ptr<fake::Graph>*>(made), cudaSuccess;
}
}  // extern "C"
