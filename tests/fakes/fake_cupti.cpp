// SPDX-License-Identifier: Apache-2.0
// A fake libcupti. It returns the records that a test adds, in the buffers that it requests, and
// counts subscriptions.
#include "tests/fakes/fake_cupti.h"

#include <cupti.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

struct Buffer {
  uint8_t* bytes;
  size_t size, used;
};

struct State {
  FakeCupti told;
  std::vector<std::string> records;
  std::vector<Buffer> late;
  std::set<CUpti_CallbackId> runtime_calls, driver_calls;
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  CUpti_CallbackFunc on_call = nullptr;
};

State& state() {
  static State all;
  return all;
}

size_t size_of(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    default:
      return sizeof(CUpti_ActivityAPI);
  }
}

void hand_over(const Buffer& buffer) {
  --state().told.buffers_out;
  state().complete(nullptr, 0, buffer.bytes, buffer.size, buffer.used);
}

CUptiResult tell_of(CUpti_CallbackId call, bool on, std::set<CUpti_CallbackId>& calls, int& count) {
  if (on)
    calls.insert(call);
  else
    calls.erase(call);
  count = static_cast<int>(calls.size());
  return CUPTI_SUCCESS;
}

// Fills small buffers, so that several are needed.
void hand_over_all() {
  State& s = state();
  for (const Buffer& buffer : std::exchange(s.late, {})) hand_over(buffer);
  for (size_t i = 0; i < s.records.size();) {
    Buffer b{};
    size_t most = 0;
    s.request(&b.bytes, &b.size, &most);
    ++s.told.buffers_out;
    if (b.bytes == nullptr) break;
    for (int n = 0; n < 3 && i < s.records.size(); ++n, ++i) {
      std::memcpy(b.bytes + b.used, s.records[i].data(), s.records[i].size());
      b.used += s.records[i].size();
    }
    if (s.told.hand_out_late)
      s.late.push_back(b);
    else
      hand_over(b);
  }
  s.records.clear();
}

}  // namespace

extern "C" {

FakeCupti* hm_fake_cupti() {
  state().told.add = [](const void* record, size_t size) {
    state().records.emplace_back(static_cast<const char*>(record), size);
  };
  return &state().told;
}

CUptiResult cuptiGetVersion(uint32_t* version) {
  *version = CUPTI_API_VERSION;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  *text = result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ? "INSUFFICIENT_PRIVILEGES" : "OTHER";
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t* time) {  // 1 s ahead of our clock
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  *time =
      static_cast<uint64_t>(now.tv_sec + 1) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc call, void*,
                              CUpti_SubscriberParams* who) {
  FakeCupti& told = state().told;
  if (told.other_tool || told.subscribed > 0) {
    std::strncpy(who->oldSubscriberName, "Nsight", who->oldSubscriberSize);
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  state().on_call = call;
  *handle = reinterpret_cast<CUpti_SubscriberHandle>(&state());
  ++told.subscribed;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle) {
  --state().told.subscribed;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle,
                              CUpti_CallbackDomain domain) {
  if (enable == 0 || !state().told.calls_cuda) return CUPTI_SUCCESS;
  CUpti_CallbackData data{};
  for (const CUpti_ApiCallbackSite site : {CUPTI_API_ENTER, CUPTI_API_EXIT}) {
    data.callbackSite = site;
    state().on_call(nullptr, domain, 1, &data);
  }
  return CUPTI_SUCCESS;
}

CUptiResult cuptiFinalize() {
  FakeCupti& told = state().told;
  ++told.finalized;
  state().runtime_calls.clear();
  state().driver_calls.clear();
  told.subscribed = told.kinds_enabled = told.runtime_calls = told.driver_calls = 0;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
  return type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM ? CUPTI_SUCCESS : CUPTI_ERROR_NOT_SUPPORTED;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  state().request = request;
  state().complete = complete;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (state().told.refuse_enable && kind == CUPTI_ACTIVITY_KIND_MEMSET)
    return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  if (kind == CUPTI_ACTIVITY_KIND_RUNTIME || kind == CUPTI_ACTIVITY_KIND_DRIVER)
    return CUPTI_ERROR_NOT_SUPPORTED;  // would record every call, which costs much of a step
  ++state().told.kinds_enabled;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId call, uint8_t enable) {
  if (call == CUPTI_RUNTIME_TRACE_CBID_INVALID || call >= CUPTI_RUNTIME_TRACE_CBID_SIZE)
    return CUPTI_ERROR_INVALID_PARAMETER;
  return tell_of(call, enable != 0, state().runtime_calls, state().told.runtime_calls);
}

CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId call, uint8_t enable) {
  if (call == CUPTI_DRIVER_TRACE_CBID_INVALID || call >= CUPTI_DRIVER_TRACE_CBID_SIZE)
    return CUPTI_ERROR_INVALID_PARAMETER;
  return tell_of(call, enable != 0, state().driver_calls, state().told.driver_calls);
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind) {
  state().told.kinds_enabled = std::max(0, state().told.kinds_enabled - 1);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  state().told.forced = flag == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED;
  hand_over_all();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t* bytes, size_t valid, CUpti_Activity** record) {
  uint8_t* next = bytes;
  if (*record != nullptr) next = reinterpret_cast<uint8_t*>(*record) + size_of((*record)->kind);
  if (next >= bytes + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
  *dropped = std::exchange(state().told.dropped, 0);
  return CUPTI_SUCCESS;
}
}
