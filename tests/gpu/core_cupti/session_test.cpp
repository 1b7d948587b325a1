// SPDX-License-Identifier: Apache-2.0
// A whole CUPTI session: with the fake library and four fake GPUs (on_fake_gpus), or with the
// installed library and GPUs.
#include <cupti.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "core/gpu/gpu.h"
#include "core/profile/gpu_activity.h"
#include "tests/fakes/fake_cupti.h"

namespace howmany {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kSecond = 1'000'000'000;  // ns; the fake's clock is ahead of ours by this

uint64_t theirs_now() { return static_cast<uint64_t>(profile_clock_ns()) + kSecond; }

TEST(GpuActivity, IsEmptyWithoutAGpu) {
  if (gpu::count() > 0) GTEST_SKIP() << "there is one";
  EXPECT_EQ(start_gpu_activity(), gpu::unavailable());
  EXPECT_TRUE(stop_gpu_activity().spans.empty());
}

class Session : public testing::Test {
 protected:
  void SetUp() override {
    const std::string name = "libcupti.so." + std::to_string(CUPTI_API_VERSION / 10'000);
    void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* const fake = library ? dlsym(library, "hm_fake_cupti") : nullptr;
    if (fake == nullptr) GTEST_SKIP() << "the library here is not the fake";
    cupti_ = reinterpret_cast<FakeCupti* (*)()>(fake)();
    *cupti_ = FakeCupti{};
    reinterpret_cast<FakeCupti* (*)()>(fake)();
  }

  template <typename Record>
  void add(const Record& record) {
    cupti_->add(&record, sizeof record);
  }
  void add_kernel(uint32_t correlation, uint64_t start, uint64_t end) {
    CUpti_ActivityKernel10 kernel{};
    kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    kernel.name = "_ZN7howmany6kernelEv";
    kernel.start = start;
    kernel.end = end;
    kernel.deviceId = 1;
    kernel.streamId = 7;
    kernel.correlationId = correlation;
    add(kernel);
  }
  void add_kernel(uint32_t correlation) {
    const uint64_t now = theirs_now();
    add_kernel(correlation, now, now + 5);
  }
  void add_launch(uint32_t correlation, uint64_t start) {
    CUpti_ActivityAPI call{};
    call.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
    call.start = start;
    call.end = start + 10;
    call.threadId = static_cast<uint32_t>(gettid());
    call.correlationId = correlation;
    add(call);
  }

  FakeCupti* cupti_ = nullptr;
};

TEST_F(Session, HasKernelsInTheRangeThatLaunchedThem) {
  start_recording();
  ASSERT_EQ(start_gpu_activity(), "");
  {
    const Range range(Category::comm, "all_reduce");
    std::this_thread::sleep_for(10ms);  // so that small clock errors do not matter
    add_launch(5, theirs_now());
    std::this_thread::sleep_for(10ms);
  }
  const uint64_t now = theirs_now();
  add_kernel(5, now, now + 1000);
  GpuActivity seen = stop_gpu_activity();
  join_ranges(seen, stop_recording());
  ASSERT_EQ(seen.spans.size(), 1u);
  const GpuSpan& span = seen.spans[0];
  EXPECT_EQ(span.name, "howmany::kernel()");
  EXPECT_EQ(span.category, Category::comm);
  EXPECT_EQ(span.device, 1u);
  EXPECT_EQ(span.stream, 7u);
  EXPECT_NEAR(static_cast<double>(span.start), static_cast<double>(now - kSecond), 1e8);
  EXPECT_TRUE(cupti_->forced) << "else unfinished buffers stay where they are";
}

TEST_F(Session, CanBeRepeated) {
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(start_gpu_activity(), "") << round;
    EXPECT_EQ(cupti_->subscribed, 1);
    for (uint32_t i = 0; i < 100; ++i) add_kernel(i);
    EXPECT_EQ(stop_gpu_activity().spans.size(), 100u);
    EXPECT_EQ(cupti_->subscribed, 0);
    EXPECT_EQ(cupti_->kinds_enabled, 0);
    EXPECT_EQ(cupti_->buffers_out, 0);
    EXPECT_EQ(cupti_->finalized, round + 1) << "what stays attached goes on costing";
  }
}

TEST_F(Session, RecordsOnlyCallsThatLaunchWork) {
  cupti_->calls_cuda = false;  // no call detaches CUPTI, so the session must disable the records
  ASSERT_EQ(start_gpu_activity(), "");
  EXPECT_GT(cupti_->runtime_calls, 0);
  EXPECT_GT(cupti_->driver_calls, 0);
  EXPECT_LT(cupti_->runtime_calls + cupti_->driver_calls, 30);
  stop_gpu_activity();
  EXPECT_EQ(cupti_->runtime_calls, 0);
  EXPECT_EQ(cupti_->driver_calls, 0);
  EXPECT_EQ(cupti_->finalized, 0);
  EXPECT_EQ(cupti_->subscribed, 0);
}

TEST_F(Session, StaysAttachedIfTheEnvironmentSaysSo) {
  ::setenv("HOWMANY_KEEP_CUPTI", "1", 1);
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(start_gpu_activity(), "");
    add_kernel(1);
    EXPECT_EQ(stop_gpu_activity().spans.size(), 1u);
    EXPECT_EQ(cupti_->kinds_enabled, 0);
    EXPECT_EQ(cupti_->subscribed, 1);
    EXPECT_EQ(cupti_->finalized, 0);
  }
  ::unsetenv("HOWMANY_KEEP_CUPTI");
  ASSERT_EQ(start_gpu_activity(), "");
  stop_gpu_activity();
  EXPECT_EQ(cupti_->finalized, 1);
  EXPECT_EQ(cupti_->subscribed, 0);
}

TEST_F(Session, RefusesBesideAnotherTool) {
  cupti_->other_tool = true;
  EXPECT_THAT(start_gpu_activity(), testing::HasSubstr("Nsight"));
  EXPECT_EQ(cupti_->kinds_enabled, 0);
  EXPECT_TRUE(stop_gpu_activity().spans.empty());
}

TEST_F(Session, ReportsMissingPrivileges) {
  cupti_->refuse_enable = true;
  EXPECT_THAT(start_gpu_activity(), testing::HasSubstr("INSUFFICIENT_PRIVILEGES"));
  EXPECT_EQ(cupti_->subscribed, 0);
  EXPECT_EQ(cupti_->kinds_enabled, 0);
  cupti_->refuse_enable = false;
  EXPECT_EQ(start_gpu_activity(), "");
  stop_gpu_activity();
}

TEST_F(Session, RefusesASecondSession) {
  ASSERT_EQ(start_gpu_activity(), "");
  EXPECT_NE(start_gpu_activity(), "");
  add_kernel(1);
  EXPECT_EQ(stop_gpu_activity().spans.size(), 1u);
}

TEST_F(Session, CountsLostAndInvalidRecords) {
  ASSERT_EQ(start_gpu_activity(), "");
  cupti_->dropped = 17;
  add_kernel(1, theirs_now(), 0);  // had not ended at the flush
  add_kernel(2, 0, 0);
  add_kernel(3);
  const GpuActivity seen = stop_gpu_activity();
  EXPECT_EQ(seen.lost, 17);
  EXPECT_EQ(seen.refused, 2);
  EXPECT_EQ(seen.spans.size(), 1u);
}

TEST_F(Session, KeepsBuffersThatComeBackLate) {
  cupti_->hand_out_late = true;
  ASSERT_EQ(start_gpu_activity(), "");
  for (uint32_t i = 0; i < 9; ++i) add_kernel(i);
  EXPECT_TRUE(stop_gpu_activity().spans.empty());
  EXPECT_EQ(cupti_->buffers_out, 3);
  cupti_->hand_out_late = false;
  ASSERT_EQ(start_gpu_activity(), "");
  EXPECT_EQ(stop_gpu_activity().spans.size(), 9u);
  EXPECT_EQ(cupti_->buffers_out, 0);
}

}  // namespace
}  // namespace howmany
