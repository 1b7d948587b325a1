// SPDX-License-Identifier: Apache-2.0
#include "reports/comm/reference.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "reports/comm/advise.h"

namespace howmany::reports {
namespace {

using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr double kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;

std::optional<ReferenceVerdict> all_reduce(double bytes, double gb_per_s,
                                           const std::string& gpu = "NVIDIA H200", int gpus = 8) {
  return judge(gpu, gpus, "all_reduce", bytes, gb_per_s * 1e9);
}

std::string words(const std::optional<ReferenceVerdict>& verdict) {
  return verdict ? verdict->words : "nothing";
}

TEST(References, SpeakOnlyOfTheirOwnHardware) {
  EXPECT_FALSE(judge("AMD EPYC", 2, "all_reduce", kMiB, 1e9));
  EXPECT_FALSE(all_reduce(kMiB, 39, "NVIDIA H200", 2));
  EXPECT_FALSE(judge("NVIDIA GH200 480GB", 1, "host_to_device", 512 * kMiB, 400e9));
  EXPECT_FALSE(judge("NVIDIA H2000", 1, "host_to_device", 512 * kMiB, 55e9));
  EXPECT_TRUE(judge("Tesla P100-PCIE-16GB", 1, "host_to_device", 512 * kMiB, 12e9));
  EXPECT_EQ(words(judge("NVIDIA H100 80GB HBM3", 2, "device_to_device", 512 * kMiB, 376e9)),
            "normal");
  for (const Reference& r : references()) EXPECT_FALSE(r.source.empty() || r.read.empty());
}

TEST(References, BetweenGpusSpeakOnlyOfTheVariantWithNvLink) {
  for (const char* sxm : {"NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB", "A100-SXM4-40GB"})
    EXPECT_EQ(words(all_reduce(kGiB, 229, sxm)), "normal") << sxm;
  for (const char* other : {"NVIDIA A100-PCIE-40GB", "NVIDIA A100 80GB PCIe", "NVIDIA H200 NVL",
                            "NVIDIA A100-SXM4-40GB MIG 1g.5gb"}) {
    EXPECT_EQ(words(all_reduce(kGiB, 20, other)), "nothing") << other;
    EXPECT_FALSE(judge(other, 2, "device_to_device", 512 * kMiB, 20e9)) << other;
  }
  EXPECT_FALSE(judge("NVIDIA H100 PCIe", 2, "device_to_device", 512 * kMiB, 50e9));
}

TEST(References, ToTheHostSpeakOfEveryVariantWithTheSameLink) {
  for (const auto& [gpu, gb_per_s] : {std::pair{"NVIDIA A100-PCIE-40GB", 25.5},
                                      {"NVIDIA A100-SXM4-80GB", 25.5},
                                      {"NVIDIA A100 80GB PCIe", 25.5},
                                      {"NVIDIA H200 NVL", 55.0},
                                      {"NVIDIA H200", 55.0}})
    EXPECT_EQ(words(judge(gpu, 1, "host_to_device", 512 * kMiB, gb_per_s * 1e9)), "normal") << gpu;
  EXPECT_FALSE(judge("Tesla P100-SXM2-16GB", 1, "host_to_device", 512 * kMiB, 30e9))
      << "of which some have NVLink to the host";
}

TEST(References, HoldAtTheirOwnSizes) {
  for (const Reference& r : references())
    EXPECT_EQ(words(judge("NVIDIA " + r.names[0], r.gpus, r.op, r.bytes, r.bytes_per_s)), "normal")
        << r.system << " " << r.bytes;
  EXPECT_EQ(words(all_reduce(kMiB, 20)), "low");
  EXPECT_EQ(words(all_reduce(kMiB, 60)), "high");
  EXPECT_THAT(all_reduce(1e9, 463.6)->source, StartsWith("interpolated"));
  EXPECT_THAT(all_reduce(kGiB - 32, 463.6)->source, StartsWith("github.com"));
}

// Between two sizes of the table, the rate may grow as a power of the size, or the time may grow
// linearly with the size.
TEST(References, FindAMachineThatIsAsTheTableSaysNormalBetweenItsSizes) {
  struct Case {
    double bytes, power, line;
    const char* gpu = "NVIDIA H200";
  };
  for (const Case& c :
       {Case{64 * kKiB, 2.80, 2.80}, Case{256 * kKiB, 10.54, 11.13}, Case{64 * kMiB, 328.7, 359.3},
        Case{256 * kMiB, 421.5, 435.0}, Case{64 * kMiB, 149.2, 161.6, "NVIDIA A100-SXM4-80GB"}}) {
    EXPECT_EQ(words(all_reduce(c.bytes, c.power, c.gpu)), "normal") << c.bytes;
    EXPECT_EQ(words(all_reduce(c.bytes, c.line, c.gpu)), "normal") << c.bytes;
    EXPECT_EQ(words(all_reduce(c.bytes, 0.85 * c.power, c.gpu)), "low") << c.bytes;
    EXPECT_EQ(words(all_reduce(c.bytes, 1.15 * c.line, c.gpu)), "high") << c.bytes;
  }
  EXPECT_NEAR(all_reduce(64 * kMiB, 300)->bytes_per_s, 328.7e9, 1e8);
}

TEST(References, SayNothingOfRanksThatAreNotOnOneHost) {
  EXPECT_EQ(gpu_of({{"gpu", "NVIDIA H200"}}), "NVIDIA H200");
  EXPECT_EQ(gpu_of({{"gpu", "NVIDIA H200"}, {"many_hosts", true}}), "");
}

TEST(References, SayNothingOfSizesOutsideOfTheTable) {
  for (const double bytes : {4.0, 16 * kKiB, 30 * kKiB, 17 * kGiB, 32 * kGiB})
    EXPECT_EQ(words(all_reduce(bytes, 300)), "nothing") << bytes;
  EXPECT_EQ(words(all_reduce(kGiB, 367, "NVIDIA H100 80GB HBM3")), "nothing") << "one size alone";
  EXPECT_EQ(words(all_reduce(4 * kMiB, 100)), "nothing") << "too far from both to judge";
}

TEST(References, SayBetweenWhichSizesTheyAreInterpolated) {
  Measurement m{"backend", "all_reduce/nccl", {}, {}, {}};
  m.parameters = {{"dtype", "f32"}, {"devices", "8"}, {"bytes", "67108864"}};
  m.metrics["median_s"] = {4e-4, "s", {}, {}, 20, "iterations"};
  m.metrics["busbw_bytes_per_s"] = {329e9, "bytes/s", {}, {}, 20, "iterations"};
  const BackendAdvice advice = advise_backend({m}, "NVIDIA H200");
  EXPECT_THAT(advice.notes, Contains(HasSubstr("329 GB/s is normal for 8x H200, NVLS (329 GB/s; "
                                               "interpolated between 16 MiB and 128 MiB of")));
  ASSERT_EQ(advice.references.size(), 1u);
  EXPECT_NEAR(advice.references[0].reference, 328.7e9, 1e8);
  EXPECT_THAT(advice.references[0].source, EndsWith("network/README, 2026-09"));
}

}  // namespace
}  // namespace howmany::reports
