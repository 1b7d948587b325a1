// SPDX-License-Identifier: Apache-2.0
#include "core/profile/cupti_records.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

namespace howmany {
namespace {

template <typename Record>
Record made(CUpti_ActivityKind kind, uint64_t start, uint64_t end) {
  Record r{};
  r.kind = kind;
  r.start = start;
  r.end = end;
  r.correlationId = 42;
  return r;
}

template <typename Record>
GpuActivity decoded(const Record& record) {
  GpuActivity activity;
  add_record(reinterpret_cast<const CUpti_Activity&>(record), activity);
  return activity;
}

TEST(CuptiRecords, OfKernelsHaveReadableNames) {
  auto r = made<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 10, 30);
  r.name = "_ZN7howmany6kernelEv";
  r.deviceId = 3;
  r.streamId = 9;
  GpuActivity seen = decoded(r);
  ASSERT_EQ(seen.spans.size(), 1u);
  EXPECT_EQ(seen.spans[0].name, "howmany::kernel()");
  EXPECT_EQ(seen.spans[0].kind, GpuSpan::Kind::kernel);
  EXPECT_EQ(seen.spans[0].device, 3u);
  EXPECT_EQ(seen.spans[0].stream, 9u);
  EXPECT_EQ(seen.spans[0].start, 10);
  EXPECT_EQ(seen.spans[0].end, 30);
  EXPECT_EQ(seen.spans[0].correlation, 42u);
  r.name = "sgemm<128>";  // not mangled
  EXPECT_EQ(decoded(r).spans[0].name, "sgemm<128>");
  r.name = nullptr;
  EXPECT_EQ(decoded(r).spans[0].name, "kernel");
}

TEST(CuptiRecords, OfCopiesAndFillsHaveTheirBytes) {
  auto copy = made<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY, 10, 30);
  copy.bytes = 1ULL << 40;
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  EXPECT_EQ(decoded(copy).spans[0].name, "copy host to device");
  EXPECT_EQ(decoded(copy).spans[0].bytes, 1ULL << 40);
  auto peer = made<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2, 10, 30);
  peer.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  EXPECT_EQ(decoded(peer).spans[0].name, "copy device to device");
  auto fill = made<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, 10, 30);
  fill.bytes = 77;
  EXPECT_EQ(decoded(fill).spans[0].kind, GpuSpan::Kind::fill);
  EXPECT_EQ(decoded(fill).spans[0].bytes, 77u);
}

TEST(CuptiRecords, OfCallsHaveTheirThread) {
  for (const auto kind : {CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER}) {
    auto call = made<CUpti_ActivityAPI>(kind, 10, 30);
    call.threadId = 4'000'000'000;  // ids are unsigned
    const GpuActivity seen = decoded(call);
    ASSERT_EQ(seen.calls.size(), 1u);
    EXPECT_EQ(seen.calls[0].thread, 4'000'000'000);
    EXPECT_EQ(seen.calls[0].correlation, 42u);
  }
}

TEST(CuptiRecords, WithInvalidTimesAreRefused) {
  const std::pair<uint64_t, uint64_t> impossible[] = {{0, 0}, {0, 5}, {5, 0}, {5, 4}};
  for (const auto& [start, end] : impossible) {
    const auto r = made<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, start, end);
    const GpuActivity seen = decoded(r);
    EXPECT_EQ(seen.refused, 1) << start << " to " << end;
    EXPECT_TRUE(seen.spans.empty());
  }
}

TEST(CuptiRecords, OfOtherKindsAreIgnored) {
  const auto r = made<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_OVERHEAD, 10, 30);
  const GpuActivity seen = decoded(r);
  EXPECT_TRUE(seen.spans.empty());
  EXPECT_EQ(seen.refused, 0);
}

TEST(CuptiRecords, OfRandomBytesAreHandled) {
  std::mt19937_64 random(3);
  GpuActivity seen;
  int64_t known = 0;
  for (int i = 0; i < 20'000; ++i) {
    CUpti_ActivityKernel10 r;
    for (size_t at = 0; at + 8 <= sizeof r; at += 8) {
      const uint64_t word = random() >> (random() % 64);
      std::memcpy(reinterpret_cast<char*>(&r) + at, &word, 8);
    }
    r.kind = static_cast<CUpti_ActivityKind>(random() % 24);
    r.name = nullptr;  // random bytes are no valid pointer
    add_record(reinterpret_cast<const CUpti_Activity&>(r), seen);
    constexpr CUpti_ActivityKind kKnown[] = {
        CUPTI_ACTIVITY_KIND_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
        CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
        CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_RUNTIME,
        CUPTI_ACTIVITY_KIND_DRIVER};
    known += std::ranges::count(kKnown, r.kind);
  }
  EXPECT_EQ(static_cast<int64_t>(seen.spans.size() + seen.calls.size()) + seen.refused, known);
  EXPECT_GT(seen.spans.size(), 100u);
  EXPECT_GT(seen.refused, 100);
}

// Uses the installed library if it can be loaded. It can iterate over buffers without a GPU.
auto next_record() {
  const std::string name = "libcupti.so." + std::to_string(CUPTI_API_VERSION / 10'000);
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) library = dlopen(HM_CUPTI_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  void* const found = library ? dlsym(library, "cuptiActivityGetNextRecord") : nullptr;
  return reinterpret_cast<decltype(&cuptiActivityGetNextRecord)>(found);
}

TEST(CuptiRecords, HaveTheLayoutOfTheLibrary) {
  const auto next = next_record();
  if (next == nullptr) GTEST_SKIP() << dlerror();
  alignas(8) uint8_t buffer[4096] = {};
  size_t size = 0;
  const auto put = [&](const auto& record) {
    std::memcpy(buffer + size, &record, sizeof record);
    size += sizeof record;
  };
  put(made<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 1, 2));
  put(made<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY, 3, 4));
  put(made<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME, 5, 6));
  put(made<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, 7, 8));
  put(made<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2, 9, 10));
  GpuActivity seen;
  CUpti_Activity* record = nullptr;
  while (next(buffer, size, &record) == CUPTI_SUCCESS) add_record(*record, seen);
  ASSERT_EQ(seen.spans.size(), 4u);
  ASSERT_EQ(seen.calls.size(), 1u);
  EXPECT_EQ(seen.spans[1].start, 3);
  EXPECT_EQ(seen.calls[0].start, 5);
  EXPECT_EQ(seen.spans[3].end, 10);
}

TEST(CuptiRecords, AreConvertedToOurClock) {
  GpuActivity seen;
  seen.spans = {{.start = 1000, .end = 1500}};
  seen.calls = {{.start = 2000}};
  use_our_clock(seen, {.theirs = 1000, .ours = 50}, {.theirs = 3000, .ours = 1050});
  EXPECT_EQ(seen.spans[0].start, 50);
  EXPECT_EQ(seen.spans[0].end, 300);
  EXPECT_EQ(seen.calls[0].start, 550);
}

TEST(CuptiRecords, AreShiftedByAClockThatStandsStill) {
  GpuActivity seen;
  seen.spans = {{.start = 1000, .end = 1500}};
  use_our_clock(seen, {.theirs = 1000, .ours = 50}, {.theirs = 1000, .ours = 50});
  EXPECT_EQ(seen.spans[0].start, 50);
  EXPECT_EQ(seen.spans[0].end, 550);
}

}  // namespace
}  // namespace howmany
