// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/op_time.h"

#include <gmock/gmock.h>

#include <cmath>

#include "core/base/error.h"
#include "reports/predict/op_rates.h"
#include "tests/reports/predict/counted_examples.h"
#include "tests/support/message_of.h"

namespace howmany::reports {
namespace {

using ::testing::HasSubstr;

const ChipPeak& chip(std::string_view name) {
  return *std::ranges::find(kChipPeaks, name, &ChipPeak::name);
}

const Efficiency& efficiency(std::string_view name) {
  const auto* const own =
      std::ranges::find(kEfficiencies, chip(name).generation, &Efficiency::generation);
  if (own != std::end(kEfficiencies)) return *own;
  return *std::ranges::find(kEfficiencies, "any", &Efficiency::generation);
}

// For an operation that would take `full` seconds if it filled the chip.
double sized(double full, double size) { return full * (1 + kSizeLoss * size / (full + size)); }

double root(double a, double b, double p) {
  return std::pow(std::pow(a, p) + std::pow(b, p), 1 / p);
}

// The step of one operation, without host.
double gpu_seconds(const nlohmann::json& op, const std::string& device, bool compiled = false) {
  nlohmann::json json = count_json();
  json["kinds"] = {op};
  json["order"] = {0};
  json["gradients"] = nlohmann::json::array();
  json["host_ops"] = 0;
  json["compiled"] = compiled;
  return op_times(count_of(json), device).gpu;
}

TEST(OpTime, IsThatOfTheFormula) {
  const ChipPeak& a100 = chip("A100");
  const Efficiency& e = efficiency("A100");
  const double compute = sized(1 / (e.product_tensor * a100.bf16), kSizeSeconds.product);
  const double memory = 5e9 / (1e9 * e.memory * a100.gb_per_s);
  EXPECT_NEAR(gpu_seconds(op_json("product", "bf16", 1e12, 5e9, "forward"), "A100"),
              root(compute, memory, kRooflinePower) + kKernelSeconds.product, 1e-12);
  EXPECT_NEAR(gpu_seconds(op_json("memory", "f32", 1e12, 5e9, "forward"), "A100"),
              memory + kKernelSeconds.memory, 1e-12);
  EXPECT_NEAR(gpu_seconds(op_json("convolution", "f32", 1e12, 0, "forward"), "A100"),
              sized(1 / (e.convolution_plain * a100.f32), kSizeSeconds.convolution) +
                  kKernelSeconds.convolution,
              1e-12);
  EXPECT_NEAR(gpu_seconds(op_json("attention", "f16", 1e12, 0, "forward"), "A100"),
              1 / (e.attention_tensor * a100.f16) + kKernelSeconds.attention, 1e-12);
}

TEST(OpTime, ConvolutionsOnTensorCoresChangeTheLayout) {
  nlohmann::json op = op_json("convolution", "bf16", 1e12, 1e9, "forward");
  const double without = gpu_seconds(op, "A100");
  op["op"] = "convolution_nchw";
  const double memory = 1 / (efficiency("A100").memory * chip("A100").gb_per_s);
  EXPECT_NEAR(gpu_seconds(op, "A100") - without, kNchwPasses * memory, 1e-12);
  op["dtype"] = "f32";
  const double plain = gpu_seconds(op, "A100");
  op["op"] = "convolution";
  EXPECT_EQ(gpu_seconds(op, "A100"), plain);
}

TEST(OpTime, ADtypeWithoutUnitsCountsAsF32) {
  const auto product = [](const std::string& dtype, const std::string& device) {
    return gpu_seconds(op_json("product", dtype, 1e13, 0, "forward"), device);
  };
  for (const char* const dtype : {"tf32", "bf16", "i64"})
    EXPECT_EQ(product(dtype, "V100"), product("f32", "V100")) << dtype;
  EXPECT_EQ(product("f8", "A100"), product("f16", "A100"));
  EXPECT_LT(product("f16", "V100"), product("f32", "V100"));
  EXPECT_NEAR(
      product("f16", "Tesla P100-SXM2-16GB"),
      sized(10 / (efficiency("P100").product_plain * chip("P100").f16), kSizeSeconds.product) +
          kKernelSeconds.product,
      1e-9);
}

TEST(OpTime, TheChipWithTheMostWordsCounts) {
  const nlohmann::json reads = op_json("memory", "f32", 0, 1e12, "forward");
  const auto is = [&](const std::string& device, std::string_view name) {
    return std::abs(gpu_seconds(reads, device) * 1e-3 * efficiency(name).memory *
                        chip(name).gb_per_s -
                    1) < 1e-3;
  };
  EXPECT_TRUE(is("NVIDIA A100-SXM4-80GB", "A100"));
  EXPECT_TRUE(is("NVIDIA A100-SXM4-40GB", "A100 40GB"));
  EXPECT_TRUE(is("NVIDIA A100-PCIE-40GB", "A100 PCIE 40GB"));
  EXPECT_TRUE(is("nvidia h200", "H200"));
  EXPECT_THAT(message_of<InputError>([&] { gpu_seconds(reads, "NVIDIA XYZ100"); }),
              HasSubstr("XYZ100"));
}

TEST(OpTime, CompiledStepsReadLessBeforeTheOptimizer) {
  const auto both = [](const nlohmann::json& op) {
    return gpu_seconds(op, "A100", true) / gpu_seconds(op, "A100");
  };
  EXPECT_NEAR(both(op_json("memory", "f32", 0, 1e9, "backward")), kCompiled.memory, 1e-9);
  EXPECT_EQ(both(op_json("memory", "f32", 0, 1e9, "optimizer")), 1);
  EXPECT_EQ(both(op_json("product", "f32", 1e9, 1e9, "forward")), 1);
}

TEST(OpTime, TheHostDelaysTheStep) {
  nlohmann::json json = count_json();
  json["host_ops"] = 1000;
  const OpTimes times = op_times(count_of(json), "A100");
  EXPECT_NEAR(times.host, 1000 * kHostOpSeconds, 1e-12);
  EXPECT_NEAR(times.step.value, root(times.gpu, times.host, kOverlapPower), 1e-12);
  EXPECT_NEAR(times.step.low / times.step.value, kHostBound.low, 1e-9);
  EXPECT_NEAR(times.step.high / times.step.value, kHostBound.high, 1e-9);
  ASSERT_EQ(times.begin.size(), 4U);
  EXPECT_EQ(times.begin[0], 0);
  EXPECT_NEAR(times.begin[3], times.step.value, 1e-12);
  EXPECT_GT(times.optimizer, 0);
}

TEST(OpTime, AChipWithoutPublishedRowsHasAnIntervalOfItsOwn) {
  nlohmann::json json = count_json();
  json["host_ops"] = 0;
  for (const auto& [name, interval] : {std::pair("A100", kKnownChip), std::pair("A30", kNewChip)}) {
    const Range step = op_times(count_of(json), name).step;
    EXPECT_NEAR(step.high / step.value, interval.high, 1e-9) << name;
  }
}

TEST(OpTime, RefusesWorkWithoutARateAboveATenth) {
  nlohmann::json json = count_json();
  json["kinds"].push_back(op_json("unknown", "f32", 0, 1e8, "forward"));
  json["kinds"].back()["op"] = "mylib::scan";
  json["order"] = {0, 1, 2, 3};
  const double share = op_times(count_of(json), "A100").unknown;
  EXPECT_GT(share, 0);
  EXPECT_LT(share, kMaxUnknown);
  json["kinds"][3]["read"] = 1e10;
  const auto why = [](const CountedStep& step) {
    return message_of<InputError>([&] { op_times(step, "A100"); });
  };
  EXPECT_THAT(why(count_of(json)), HasSubstr("mylib::scan"));
  EXPECT_EQ(why(count_of({{"refused", "a CUDA extension"}})), "a CUDA extension");
}

TEST(OpTime, KnowsTheComputeCapability) {
  using ::testing::ElementsAre;
  EXPECT_THAT(capability_of("A100"), ElementsAre(8, 0));
  EXPECT_THAT(capability_of("NVIDIA GeForce RTX 5090"), ElementsAre(12, 0));
  for (const ChipPeak& one : kChipPeaks) EXPECT_NO_THROW(capability_of(std::string(one.name)));
}

}  // namespace
}  // namespace howmany::reports
