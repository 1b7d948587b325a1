// SPDX-License-Identifier: Apache-2.0
// The cases of core_bench on a GPU; small cases on an imitated GPU. Each case checks itself.
// timeout: 300
#include "benches/core/cases.h"

#include <gtest/gtest.h>

#include "core/gpu/gpu.h"
#include "core/tensor/device.h"
#include "core/tensor/precision.h"

namespace howmany::benches {
namespace {

const Device kGpu{DeviceType::cuda, 0};
constexpr double kMaxFlop = 1.5e7;  // per case

CorePlace small() {
  CorePlace place;
  place.device = kGpu;
  place.image = {2, 6, 10, 16};
  place.rows = {40, 64};
  place.parameters = 50;
  place.linears = {{37, 24}};
  place.linear_batches = {40};
  place.conv_batch = 1;
  place.attended = {{2, 16}};
  place.heads = 2;
  place.steps = {{"mlp:sizes=13-17-9-7-5", 32},
                 {"gpt2:width=16,layers=1,heads=2,length=8,vocabulary=11", 4}};
  place.updates = {{"sgd", "simple_net"}, {"adamw", "simple_net"}};
  return place;
}

class CoreCasesOnAGpu : public testing::TestWithParam<Precision> {};

TEST_P(CoreCasesOnAGpu, AreRightAndCanBeRepeated) {
  const DeviceScope on(kGpu);
  const PrecisionScope precision(GetParam());
  const CorePlace place = small();
  int made = 0;
  for (const auto& cases : {step_cases(place), operation_cases(place)})
    for (const CoreCase& one : cases) {
      if (one.flop > kMaxFlop) continue;
      SCOPED_TRACE(one.name);
      const std::function<void()> body = one.make();
      for (int times = 0; times < 2; ++times) body();
      ++made;
    }
  gpu::synchronize(0);
  EXPECT_GE(made, 20);
}

INSTANTIATE_TEST_SUITE_P(Precisions, CoreCasesOnAGpu,
                         testing::Values(Precision::f32, Precision::tf32, Precision::bf16),
                         [](const auto& p) { return std::string(name_of(p.param)); });

TEST(CoreCases, OfAGpuMoveHalfTheBytesInBf16) {
  const CorePlace place = small();
  const auto whole = memory_cases(place);
  const PrecisionScope precision(Precision::bf16);
  const auto half = memory_cases(place);
  for (size_t i = 0; i < whole.size(); ++i)
    EXPECT_LE(half[i].bytes, whole[i].bytes) << whole[i].name;
  EXPECT_EQ(2 * half[0].bytes, whole[0].bytes) << whole[0].name;
}

TEST(CoreCases, OfAGpuExceedItsCaches) {
  const CorePlace place = place_on(kGpu);
  const PrecisionScope precision(Precision::bf16);
  for (const CoreCase& one : memory_cases(place)) EXPECT_GE(one.bytes, 100e6) << one.name;
}

}  // namespace
}  // namespace howmany::benches
