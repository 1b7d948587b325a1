// SPDX-License-Identifier: Apache-2.0
// A CUPTI session.
//
// - It starts only if it gets the subscription, so that it never mixes with another tool.
// - It never frees buffers that CUPTI holds.
// - It calls CUPTI without holding a lock that CUPTI's callbacks take.
// - It detaches CUPTI at the end: otherwise the enabled activity costs 10 to 20 % of a step.
#include <cupti.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/gpu/gpu.h"
#include "core/host/shared_library.h"
#include "core/profile/cupti_records.h"

namespace howmany {
namespace {

#define HM_CUPTI_CALLS(X)           \
  X(cuptiGetVersion)                \
  X(cuptiGetResultString)           \
  X(cuptiGetTimestamp)              \
  X(cuptiSubscribe_v2)              \
  X(cuptiUnsubscribe)               \
  X(cuptiEnableDomain)              \
  X(cuptiFinalize)                  \
  X(cuptiSetThreadIdType)           \
  X(cuptiActivityRegisterCallbacks) \
  X(cuptiActivityEnable)            \
  X(cuptiActivityEnableRuntimeApi)  \
  X(cuptiActivityEnableDriverApi)   \
  X(cuptiActivityDisable)           \
  X(cuptiActivityFlushAll)          \
  X(cuptiActivityGetNextRecord)     \
  X(cuptiActivityGetNumDroppedRecords)

struct Library : SharedLibrary {
  // Requires the same major version, because others have different record layouts.
  Library()
      : SharedLibrary("libcupti.so." + std::to_string(CUPTI_API_VERSION / 10'000),
                      HM_CUPTI_LIBRARY) {
    uint32_t version = 0;
    HM_ENSURE(cuptiGetVersion(&version) == CUPTI_SUCCESS &&
                  version / 10'000 == CUPTI_API_VERSION / 10'000,
              "libcupti is of version {}, built for {}", version, CUPTI_API_VERSION);
  }
  HM_CUPTI_CALLS(HM_LIBRARY_CALL)
};

const Library& library() {
  static const Library cupti;
  return cupti;
}

constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                         CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
                                         CUPTI_ACTIVITY_KIND_MEMSET};

// The calls that submit work to a GPU: their records give its thread and time. Records of other
// calls would cost as much and be ignored; an event query while waiting makes thousands of them.
// Driver calls are those of NCCL, and of libraries that link their own copy of the runtime.
#define HM_RUNTIME(name) CUPTI_RUNTIME_TRACE_CBID_##name
constexpr CUpti_CallbackId kRuntimeCalls[] = {
    HM_RUNTIME(cudaLaunchKernel_v7000),    HM_RUNTIME(cudaLaunchKernelExC_v11060),
    HM_RUNTIME(__cudaLaunchKernel_v13000), HM_RUNTIME(cudaLaunchCooperativeKernel_v9000),
    HM_RUNTIME(cudaGraphLaunch_v10000),    HM_RUNTIME(cudaMemcpy_v3020),
    HM_RUNTIME(cudaMemcpyAsync_v3020),     HM_RUNTIME(cudaMemcpyPeerAsync_v4000),
    HM_RUNTIME(cudaMemset_v3020),          HM_RUNTIME(cudaMemsetAsync_v3020)};
#define HM_DRIVER(name) CUPTI_DRIVER_TRACE_CBID_##name
constexpr CUpti_CallbackId kDriverCalls[] = {
    HM_DRIVER(cuLaunchKernel),       HM_DRIVER(cuLaunchKernelEx),
    HM_DRIVER(cuGraphLaunch),        HM_DRIVER(cuMemcpyAsync),
    HM_DRIVER(cuMemcpyHtoDAsync_v2), HM_DRIVER(cuMemcpyDtoHAsync_v2),
    HM_DRIVER(cuMemcpyDtoDAsync_v2), HM_DRIVER(cuMemcpyPeerAsync),
    HM_DRIVER(cuMemsetD8Async),      HM_DRIVER(cuMemsetD32Async)};
constexpr size_t kBufferBytes = size_t{4} << 20, kBuffers = 64, kAlignment = 8;

void check(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return;
  const char* why = "unknown error";
  library().cuptiGetResultString(result, &why);
  throw Error(fmt::format("{}: {}", what, why));
}

// The buffers that CUPTI fills. CUPTI owns a buffer from its request until it returns it full.
class Buffers {
 public:
  struct Full {
    CUcontext context;
    uint32_t stream;
    uint8_t* bytes;
    size_t size;
  };

  // Returns null if no buffer is left. CUPTI then drops records and counts them.
  uint8_t* take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty() && made_ < kBuffers) {
      auto* const fresh = static_cast<uint8_t*>(std::aligned_alloc(kAlignment, kBufferBytes));
      if (fresh == nullptr) return nullptr;
      ++made_;
      return fresh;
    }
    if (free_.empty()) return nullptr;
    uint8_t* const bytes = free_.back();
    free_.pop_back();
    return bytes;
  }
  void keep(const Full& full) {
    const std::lock_guard lock(mutex_);
    full_.push_back(full);
  }
  std::vector<Full> full() {
    const std::lock_guard lock(mutex_);
    return std::exchange(full_, {});
  }
  void give_back(uint8_t* bytes) {
    const std::lock_guard lock(mutex_);
    free_.push_back(bytes);
  }

 private:
  std::mutex mutex_;
  size_t made_ = 0;
  std::vector<uint8_t*> free_;
  std::vector<Full> full_;
};

Buffers& buffers() {  // never destroyed: CUPTI may return a buffer late
  static auto* const only = new Buffers;
  return *only;
}

void CUPTIAPI on_request(uint8_t** buffer, size_t* size, size_t* most_records) {
  *buffer = buffers().take();
  *size = *buffer == nullptr ? 0 : kBufferBytes;
  *most_records = 0;  // no limit
}

void CUPTIAPI on_complete(CUcontext context, uint32_t stream, uint8_t* buffer, size_t,
                          size_t valid) {
  if (buffer != nullptr) buffers().keep({context, stream, buffer, valid});
}

std::atomic<bool> detach_wanted = false;

// Detaches as CUPTI requires: on a thread that leaves a CUDA call.
void CUPTIAPI on_call(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
  const auto* const call = static_cast<const CUpti_CallbackData*>(data);
  if (call->callbackSite == CUPTI_API_EXIT && detach_wanted.exchange(false))
    library().cuptiFinalize();
}

ClockPair read_clocks() {
  ClockPair best;
  int64_t nearest = INT64_MAX;
  for (int i = 0; i < 5; ++i) {
    uint64_t theirs = 0;
    const int64_t before = profile_clock_ns();
    check(library().cuptiGetTimestamp(&theirs), "cuptiGetTimestamp");
    const int64_t took = profile_clock_ns() - before;
    if (took < nearest) best = {static_cast<int64_t>(theirs), before + took / 2};
    nearest = std::min(nearest, took);
  }
  return best;
}

struct Session {
  CUpti_SubscriberHandle subscriber = nullptr;
  ClockPair start;
};
Session* session = nullptr;
CUpti_SubscriberHandle kept = nullptr;  // of a session that has ended

bool stays_attached() { return std::getenv("HOWMANY_KEEP_CUPTI") != nullptr; }

void subscribe(Session& own) {
  if ((own.subscriber = std::exchange(kept, nullptr)) != nullptr) return;
  char other[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN] = "";
  CUpti_SubscriberParams who{.structSize = CUpti_SubscriberParams_STRUCT_SIZE,
                             .subscriberName = "howmany",
                             .oldSubscriberName = other,
                             .oldSubscriberSize = sizeof other};
  const CUptiResult result = library().cuptiSubscribe_v2(&own.subscriber, on_call, nullptr, &who);
  HM_ENSURE(result != CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
            "another tool watches the GPUs: {}", *other ? other : "it does not say which");
  check(result, "cuptiSubscribe");
}

CUptiResult tell_of_calls(bool on) {
  CUptiResult result = CUPTI_SUCCESS;
  const auto keep = [&](CUptiResult next) { result = std::max(result, next); };
  for (const CUpti_CallbackId call : kRuntimeCalls)
    keep(library().cuptiActivityEnableRuntimeApi(call, on));
  for (const CUpti_CallbackId call : kDriverCalls)
    keep(library().cuptiActivityEnableDriverApi(call, on));
  return result;
}

// Ignores errors, which only mean that an activity was not enabled.
void disable() {
  for (const CUpti_ActivityKind kind : kKinds) library().cuptiActivityDisable(kind);
  tell_of_calls(false);
}

void enable(Session& own) {
  check(library().cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM),
        "cuptiSetThreadIdType");
  check(library().cuptiActivityRegisterCallbacks(on_request, on_complete),
        "cuptiActivityRegisterCallbacks");
  own.start = read_clocks();
  for (const CUpti_ActivityKind kind : kKinds)
    check(library().cuptiActivityEnable(kind), "cuptiActivityEnable");
  check(tell_of_calls(true), "cuptiActivityEnableRuntimeApi");
}

// Valid in any state of the session.
void detach(Session& own) noexcept {
  try {
    disable();
    if (stays_attached()) {
      kept = own.subscriber;
      return;
    }
    detach_wanted = true;
    library().cuptiEnableDomain(1, own.subscriber, CUPTI_CB_DOMAIN_RUNTIME_API);
    gpu::synchronize_used();
  } catch (const std::exception&) {  // the GPU is lost; other calls report it
  }
  if (detach_wanted.exchange(false)) library().cuptiUnsubscribe(own.subscriber);
}

size_t dropped(CUcontext context, uint32_t stream) {
  size_t count = 0;
  library().cuptiActivityGetNumDroppedRecords(context, stream, &count);
  return count;
}

void collect(GpuActivity& to) {
  std::set<std::pair<CUcontext, uint32_t>> queues = {{nullptr, 0}};
  for (const Buffers::Full& full : buffers().full()) {
    queues.insert({full.context, full.stream});
    CUpti_Activity* record = nullptr;
    while (full.size > 0 &&
           library().cuptiActivityGetNextRecord(full.bytes, full.size, &record) == CUPTI_SUCCESS)
      add_record(*record, to);
    buffers().give_back(full.bytes);
  }
  for (const auto& [context, stream] : queues)
    to.lost += static_cast<int64_t>(dropped(context, stream));
}

}  // namespace

std::string start_gpu_activity() try {
  if (gpu::count() == 0) return gpu::unavailable();
  HM_ENSURE(session == nullptr, "GPUs are watched already");
  Session own;
  subscribe(own);
  try {
    enable(own);
  } catch (const std::exception&) {
    detach(own);
    throw;
  }
  session = new Session(own);
  return "";
} catch (const std::exception& error) {
  return error.what();
}

GpuActivity stop_gpu_activity() {
  GpuActivity seen;
  const std::unique_ptr<Session> own(std::exchange(session, nullptr));
  if (!own) return seen;
  try {
    disable();
    gpu::synchronize_used();
    check(library().cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlush");
    collect(seen);
    use_our_clock(seen, own->start, read_clocks());
  } catch (const std::exception&) {
    detach(*own);
    throw;
  }
  detach(*own);
  return seen;
}

}  // namespace howmany
