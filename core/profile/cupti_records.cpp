// SPDX-License-Identifier: Apache-2.0
#include "core/profile/cupti_records.h"

#include <cxxabi.h>

#include <cmath>
#include <cstdlib>
#include <memory>

namespace howmany {
namespace {

std::string readable(const char* symbol) {
  if (symbol == nullptr) return "kernel";
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(symbol, nullptr, nullptr, &status), &std::free);
  return name ? name.get() : symbol;
}

const char* copy_name(uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      return "copy host to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      return "copy device to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
      return "copy within a device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return "copy device to device";
    default:
      return "copy";
  }
}

// Adds the fields that all records of GPU work have.
template <typename Record>
void add_span(const Record& r, std::string name, GpuSpan::Kind kind, uint64_t bytes,
              GpuActivity& to) {
  if (r.start == 0 || r.end < r.start) {
    ++to.refused;
    return;
  }
  to.spans.push_back({.name = std::move(name),
                      .kind = kind,
                      .device = r.deviceId,
                      .stream = r.streamId,
                      .start = static_cast<int64_t>(r.start),
                      .end = static_cast<int64_t>(r.end),
                      .bytes = bytes,
                      .correlation = r.correlationId});
}

template <typename Record>
const Record& as(const CUpti_Activity& record) {
  return reinterpret_cast<const Record&>(record);
}

void add_call(const CUpti_ActivityAPI& r, GpuActivity& to) {
  if (r.start == 0) {
    ++to.refused;
    return;
  }
  to.calls.push_back({r.correlationId, r.threadId, static_cast<int64_t>(r.start)});
}

}  // namespace

void add_record(const CUpti_Activity& record, GpuActivity& to) {
  using Kind = GpuSpan::Kind;
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& r = as<CUpti_ActivityKernel10>(record);
      return add_span(r, readable(r.name), Kind::kernel, 0, to);
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& r = as<CUpti_ActivityMemcpy6>(record);
      return add_span(r, copy_name(r.copyKind), Kind::copy, r.bytes, to);
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
      const auto& r = as<CUpti_ActivityMemcpyPtoP4>(record);
      return add_span(r, copy_name(r.copyKind), Kind::copy, r.bytes, to);
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& r = as<CUpti_ActivityMemset4>(record);
      return add_span(r, "fill", Kind::fill, r.bytes, to);
    }
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return add_call(as<CUpti_ActivityAPI>(record), to);
    default:
      return;
  }
}

void use_our_clock(GpuActivity& activity, ClockPair start, ClockPair end) {
  const auto theirs = static_cast<double>(end.theirs - start.theirs);
  const double rate = theirs > 0 ? static_cast<double>(end.ours - start.ours) / theirs : 1;
  const auto ours = [&](int64_t time) {
    return start.ours + std::llround(static_cast<double>(time - start.theirs) * rate);
  };
  for (GpuSpan& span : activity.spans) {
    span.start = ours(span.start);
    span.end = ours(span.end);
  }
  for (LaunchCall& call : activity.calls) call.start = ours(call.start);
}

}  // namespace howmany
