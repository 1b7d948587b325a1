// SPDX-License-Identifier: Apache-2.0
// Tests `howmany transfer` of GPUs, from rows of transfer_bench to the answer. threads_test.cpp
// tests host memory.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "core/base/schema/reasons.h"
#include "core/base/text/json.h"
#include "reports/comm/run.h"
#include "reports/transfer/advise.h"
#include "reports/transfer/render.h"

namespace howmany::reports {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

using Rows = std::vector<Measurement>;
constexpr double kMebibyte = 1 << 20;

Measurement timed(const std::string& kind, double seconds,
                  std::map<std::string, std::string> parameters, double spread = 0.01) {
  Measurement m{"transfer", kind, std::move(parameters), {}, {}};
  m.metrics["median_s"] = {seconds, "s",         (1 - spread) * seconds, (1 + spread) * seconds,
                           20,      "iterations"};
  return m;
}

struct Host {
  const char *kind = "host_to_device", *device = "cuda:0", *memory = "pinned", *how = "sync";
  bool both_ways = false;
};

Measurement host_copy(const Host& h, double bytes, double seconds, double spread = 0.01) {
  std::map<std::string, std::string> parameters = {{"device", h.device},
                                                   {"memory", h.memory},
                                                   {"how", h.how},
                                                   {"bytes", fmt::format("{:.0f}", bytes)}};
  if (h.both_ways) parameters["beside"] = "other_way";
  return timed(h.kind, seconds, parameters, spread);
}

void add_line(Rows& rows, const Host& h, double latency, double rate,
              double last = 256 * kMebibyte) {
  for (double bytes = 64; bytes <= last; bytes *= 4)
    rows.push_back(host_copy(h, bytes, latency + bytes / rate));
}

// Pageable and pinned memory in both directions, by size.
Rows one_gpu(double pageable = 18e9, double pinned = 55e9) {
  Rows rows;
  for (const char* kind : {"host_to_device", "device_to_host"}) {
    add_line(rows, {.kind = kind, .memory = "pageable"}, 6e-6, pageable);
    add_line(rows, {.kind = kind}, 8e-6, pinned);
    add_line(rows, {.kind = kind, .how = "async"}, 1e-6, pinned);
  }
  return rows;
}

Measurement between(const char* from, const char* path, const char* to, double rate) {
  return timed("device_to_device", 64 * kMebibyte / rate,
               {{"from", from}, {"path", path}, {"to", to}, {"bytes", "67108864"}});
}

Measurement step(const char* part, double seconds, const char* device = "cuda:0",
                 double spread = 0.01) {
  return timed("step", seconds,
               {{"model", "resnet18"}, {"batch", "256"}, {"device", device}, {"part", part}},
               spread);
}

std::string transfer_because(const Rows& rows) { return advise_transfer(rows).because; }
std::vector<std::string> notes(const Rows& rows, const std::string& gpu = "") {
  return advise_transfer(rows, gpu).notes;
}
std::string rendered_transfer(const Rows& rows) {
  return render_transfer(advise_transfer(rows), rows, false);
}

TEST(GpuCopies, ArePinnedWhereThatIsFaster) {
  EXPECT_EQ(advise_transfer(one_gpu()).reason, reason::kPinnedFaster);
  EXPECT_THAT(transfer_because(one_gpu()),
              AllOf(HasSubstr("54.9 GB/s"), HasSubstr("3.1x"), HasSubstr("18.0 GB/s")));
}

TEST(GpuCopies, AreNotPinnedForLessThanATenth) {
  EXPECT_EQ(advise_transfer(one_gpu(51e9, 54e9)).reason, reason::kPinnedNotFaster);
  EXPECT_THAT(transfer_because(one_gpu(51e9, 54e9)), HasSubstr("1.06x"));
}

TEST(GpuCopies, ClaimNoDifferenceWithinNoise) {
  const Rows apart = {host_copy({.memory = "pageable"}, kMebibyte, 1.3e-4, 0.05),
                      host_copy({}, kMebibyte, 1e-4, 0.05)};
  Rows overlapping = apart;
  overlapping[0].metrics["median_s"].low = 1e-4;
  EXPECT_TRUE(advise_transfer(apart).certain);
  EXPECT_EQ(advise_transfer(apart).reason, reason::kPinnedFaster);
  EXPECT_FALSE(advise_transfer(overlapping).certain);
  EXPECT_THAT(transfer_because(overlapping), HasSubstr("noise"));
}

Measurement without_interval(Measurement m) {
  m.metrics["median_s"].low = m.metrics["median_s"].high = std::nullopt;
  return m;
}

TEST(GpuCopies, WithoutAnIntervalAreNotCompared) {
  Rows rows = {without_interval(host_copy({.memory = "pageable"}, 4 * kMebibyte, 4.2e-4)),
               without_interval(host_copy({}, 4 * kMebibyte, 1e-4))};
  EXPECT_EQ(advise_transfer(rows).reason, reason::kNotComparable);
  EXPECT_THAT(notes(rows), Each(AllOf(Not(HasSubstr("4.2x")), Not(HasSubstr("noise")))));
  rows.push_back(host_copy({.memory = "pageable"}, kMebibyte, 2e-4));
  rows.push_back(host_copy({}, kMebibyte, 1e-4));
  EXPECT_THAT(transfer_because(rows), HasSubstr("2.0x pageable memory's 5.24 GB/s (1 MiB)"));
}

TEST(GpuCopies, AreComparedAtTheLargestSizeThatBothHave) {
  Rows rows;
  add_line(rows, {.memory = "pageable"}, 0, 10e9, kMebibyte);
  add_line(rows, {}, 0, 20e9);
  EXPECT_THAT(transfer_because(rows), HasSubstr("2.0x pageable memory's 10 GB/s (1 MiB)"));
}

TEST(GpuCopies, OfAFewBytesAreLatency) {
  EXPECT_THAT(notes(one_gpu()),
              AllOf(Contains(HasSubstr("KiB a copy from pinned memory to cuda:0")),
                    Contains(HasSubstr("KiB a copy from cuda:0 to pinned memory"))));
}

TEST(GpuCopies, BothWaysAreToldAgainstOneWay) {
  Rows rows = {
      host_copy({.how = "async", .both_ways = true}, 64 * kMebibyte, 64 * kMebibyte / 44e9)};
  for (const Measurement& m : one_gpu()) rows.push_back(m);
  EXPECT_THAT(notes(rows), Contains(HasSubstr("Both ways at once: to cuda:0 44 GB/s, 0.80x the "
                                              "55.0 GB/s alone (64 MiB).")));
  const auto json = to_json(advise_transfer(rows), rows);  // excludes concurrent copies
  EXPECT_NEAR(json["devices"][0]["to_device"]["pinned_async_bytes_per_s"].get<double>(), 55e9, 1e8);
}

TEST(GpuCopies, OfOtherMemoriesAreToldAgainstPinned) {
  Rows rows = one_gpu();
  rows.push_back(
      host_copy({.memory = "registered", .how = "async"}, 64 * kMebibyte, 64 * kMebibyte / 54.8e9));
  rows.push_back(host_copy({.memory = "write_combined", .how = "async"}, 64 * kMebibyte,
                           64 * kMebibyte / 66e9));
  EXPECT_THAT(notes(rows),
              AllOf(Contains(HasSubstr(
                        "Registered memory: to cuda:0 54.8 GB/s, within noise of pinned memory's")),
                    Contains(HasSubstr(
                        "Write-combined memory: to cuda:0 66.0 GB/s, 1.20x pinned memory's"))));
}

TEST(GpuCopies, ManySmallOnesAreToldAgainstOneOfAsManyBytes) {
  Rows rows = one_gpu();
  for (const auto& [bytes, count] : {std::pair{"4096", "1024"}, {"256", "16384"}})
    rows.push_back(timed("small_copies_to_device", 38.1e-3,
                         {{"device", "cuda:0"}, {"bytes", bytes}, {"count", count}}));
  const double whole = 8e-6 + 4 * kMebibyte / 55e9;
  EXPECT_THAT(notes(rows),
              Contains(HasSubstr(fmt::format(
                  "16384 copies of 256 B to cuda:0 take 38.1 ms, {:.0f}x", 38.1e-3 / whole))));
}

TEST(GpuCopies, TellOfFurtherGpusWhatIsUnlikeTheFirst) {
  Rows rows = one_gpu();
  rows.push_back(
      host_copy({.device = "cuda:1", .how = "async"}, 64 * kMebibyte, 64 * kMebibyte / 54.5e9));
  EXPECT_THAT(notes(rows), Each(Not(HasSubstr("cuda:1"))));
  rows.push_back(
      host_copy({.device = "cuda:2", .how = "async"}, 64 * kMebibyte, 64 * kMebibyte / 11e9));
  EXPECT_THAT(
      notes(rows),
      Contains(HasSubstr("Pinned copies to cuda:2 move 11 GB/s, 0.20x the 55.0 GB/s to cuda:0")));
}

TEST(GpuCopies, BetweenGpusAreToldAgainstTheHostsWay) {
  const Rows rows = {
      between("cuda:0", "same", "cuda:0", 2e12), between("cuda:0", "peer", "cuda:1", 390e9),
      between("cuda:0", "staged", "cuda:1", 26e9), between("cuda:0", "staged", "cuda:2", 25e9),
      between("cuda:0", "peer", "cuda:3", 39e9)};
  EXPECT_THAT(
      notes(rows),
      ::testing::ElementsAre(
          "Copies within cuda:0 move 2 TB/s (64 MiB).",
          "Peer copies from cuda:0 to cuda:1 move 390 GB/s, 15x the 26 GB/s through the "
          "host (64 MiB).",
          "Copies from cuda:0 to cuda:2 go through the host: 25 GB/s (64 MiB).",
          "Copies from cuda:0 to cuda:3 move 39 GB/s, 0.10x the 390 GB/s from cuda:0 to cuda:1 "
          "(64 MiB)."));
}

TEST(GpuCopies, AreJudgedByWhatOthersMeasuredOnThatGpu) {
  for (const auto& [rate, words] : {std::pair{55e9, "normal, 0.99 of 55.4 GB/s"},
                                    {40e9, "low, 0.72 of 55.4 GB/s"},
                                    {70e9, "high, 1.26 of 55.4 GB/s"}})
    EXPECT_THAT(notes(one_gpu(18e9, rate), "NVIDIA H200"),
                Contains(AllOf(StartsWith("256 MiB from pinned memory to cuda:0"), HasSubstr(words),
                               HasSubstr("H200, PCIe 5 x16; github.com"))));
  for (const char* unknown : {"", "NVIDIA GeForce RTX 3060", "NVIDIA GH200 480GB"})
    EXPECT_TRUE(advise_transfer(one_gpu(), unknown).gpus.verdicts.empty()) << unknown;
}

TEST(GpuCopies, OfMegabytesAreNotJudged) {
  const Rows small = {host_copy({.how = "async"}, kMebibyte, kMebibyte / 50e9)};
  EXPECT_TRUE(advise_transfer(small, "NVIDIA H200").gpus.verdicts.empty());
}

TEST(GpuCopies, OfCpuDevicesLeaveTheAnswerAsItIs) {
  Rows cpu;
  for (const char* threads : {"1", "2"})
    cpu.push_back(timed("copy", 1e-4, {{"threads", threads}, {"bytes", "1048576"}}));
  Rows both = cpu;
  both.push_back(host_copy({.device = "cpu:0", .memory = "pageable"}, kMebibyte, 1e-4));
  EXPECT_EQ(transfer_because(both), transfer_because(cpu));
  EXPECT_EQ(notes(both), notes(cpu));
  EXPECT_THAT(rendered_transfer(both),
              AllOf(HasSubstr("host_to_device, 1 MiB, cpu:0, sync, pageable"),
                    Not(HasSubstr("Copies to and from"))));
  EXPECT_TRUE(to_json(advise_transfer(both), both)["devices"].empty());
}

TEST(GpuCopies, LeaveThreadsANote) {
  Rows rows = one_gpu();
  rows.push_back(timed("copy", 1e-4, {{"threads", "1"}, {"bytes", "1048576"}}));
  EXPECT_EQ(advise_transfer(rows).reason, reason::kPinnedFaster);
  EXPECT_THAT(notes(rows), Contains(StartsWith("Copy with one thread")));
}

TEST(GpuCopies, ThatFailedAreNoAnswer) {
  Rows rows = one_gpu();
  for (Measurement& m : rows)
    if (parameter_of(m, "memory") == "pinned") m.flags = {"failed: wrong data"};
  EXPECT_EQ(advise_transfer(rows).reason, reason::kNotComparable);
  EXPECT_THAT(notes(rows), Contains(HasSubstr("Failed: host_to_device: wrong data")));
}

TEST(GpuSteps, SayWhatPinMemorySaves) {
  EXPECT_THAT(
      notes({step("batch_in", 3.1e-3), step("batch_in_pinned", 1.86e-3), step("whole", 45.1e-3)}),
      Contains("resnet18, batch 256 on cuda:0: pin_memory saves 1.24 ms of the 45.1 ms "
               "step (a batch takes 3.10 ms to get in from pageable memory, 1.86 ms from "
               "pinned)."));
}

TEST(GpuSteps, SayWherePinMemorySavesNothing) {
  const auto of = [](double pageable, double pinned, double spread) {
    return notes({step("batch_in", pageable, "cuda:0", spread),
                  step("batch_in_pinned", pinned, "cuda:0", spread), step("whole", 45.1e-3)});
  };
  EXPECT_THAT(of(3.1e-3, 3e-3, 0.05),
              Contains(HasSubstr("saves nothing beyond noise of the 45.1")));
  EXPECT_THAT(of(3e-3, 4e-3, 0.01), Contains(HasSubstr("saves nothing of the 45.1")));
}

TEST(GpuSteps, SayThatASavingWithoutIntervalsCouldNotBeTold) {
  const Rows rows = {without_interval(step("batch_in", 3.11e-3)),
                     without_interval(step("batch_in_pinned", 3.1e-3)), step("whole", 45.1e-3)};
  EXPECT_THAT(notes(rows),
              Contains("resnet18, batch 256 on cuda:0: the share of the 45.1 ms step that "
                       "pin_memory saves could not be judged (a batch takes 3.11 ms to get in from "
                       "pageable memory, "
                       "3.10 ms from pinned)."));
}

TEST(GpuSteps, KeepApartFromTheSameStepOnTheCpu) {
  const Rows rows = {step("batch_in", 3e-3, "cpu:0"), step("loss_out", 1e-3, "cpu:0"),
                     step("whole", 40e-3, "cpu:0"),   step("batch_in", 3.1e-3),
                     step("batch_in_pinned", 2e-3),   step("whole", 10e-3)};
  EXPECT_THAT(notes(rows), AllOf(SizeIs(2), Contains(HasSubstr("saves 1.10 ms of the 10 ms step")),
                                 Contains(HasSubstr("resnet18, batch 256: moving a batch in takes "
                                                    "3 ms and the loss out 1 ms, 10 % of"))));
}

TEST(GpuFidelity, IsToldOfBothWays) {
  Rows rows = {timed("fidelity/to_device", 1e-3, {}), timed("fidelity/to_host", 1e-3, {})};
  rows[0].metrics["of_bare"] = {1.002, "ratio", {}, {}, 0, ""};
  rows[1].metrics["of_bare"] = {1.25, "ratio", {}, {}, 0, ""};
  EXPECT_THAT(notes(rows),
              AllOf(Contains("The copy to the device measured takes 1.002 of the time of a bare "
                             "cudaMemcpyAsync loop."),
                    Contains(HasSubstr("The copy to the host measured takes 1.250"))));
}

TEST(GpuRender, ShowsEachCopyOnce) {
  Rows rows = one_gpu();
  rows.push_back(host_copy({.how = "async", .both_ways = true}, 64 * kMebibyte, 1.5e-3));
  rows[0].metrics.clear();
  rows[0].flags = {"skipped: no time left"};
  const std::string text = rendered_transfer(rows);
  EXPECT_THAT(text, AllOf(HasSubstr("Copies to and from cuda:0 (median)"),
                          HasSubstr("256 MiB       14.9 ms  4.89 ms  4.88 ms  55.0 GB/s"),
                          HasSubstr("64 B             -  8.00 us"),
                          HasSubstr("beside other_way, 64 MiB, cuda:0, async, pinned"),
                          HasSubstr("64 B, cuda:0, sync, pageable")));
  EXPECT_THAT(text, Not(HasSubstr("64 MiB, cuda:0, sync")));
}

TEST(GpuJson, HoldsRatesAndVerdictsAndNoNumberThatIsNone) {
  const Rows rows = one_gpu();
  const auto json = to_json(advise_transfer(rows, "NVIDIA H200"), rows);
  ASSERT_EQ(json["devices"].size(), 1u);
  const auto& to = json["devices"][0]["to_device"];
  EXPECT_EQ(json["devices"][0]["device"], "cuda:0");
  EXPECT_NEAR(to["pageable_bytes_per_s"].get<double>(), 18e9, 1e8);
  EXPECT_NEAR(to["pinned_bytes_per_s"].get<double>(), 55e9, 2e8);
  EXPECT_NEAR(to["latency_s"].get<double>(), 8e-6, 1e-7);
  EXPECT_NEAR(to["latency_below_bytes"].get<double>(), 440e3, 60e3);
  EXPECT_TRUE(to["registered_bytes_per_s"].is_null());
  ASSERT_EQ(json["verdicts"].size(), 2u);
  EXPECT_EQ(json["verdicts"][0]["verdict"], "normal");
  EXPECT_NEAR(json["verdicts"][0]["ratio"].get<double>(), 55 / 55.43, 1e-3);
  EXPECT_EQ(json["verdicts"][0]["reference_bytes_per_s"], 55.43e9);
  EXPECT_THAT(dump_json(json), AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
}

TEST(GpuJson, HoldsTheStepOfEachDevice) {
  Rows rows = {step("batch_in", 3e-3), step("batch_in_pinned", 2e-3), step("whole", 1e-2)};
  rows.push_back(step("batch_in", 4e-3));
  rows.back().parameters.erase("device");
  const auto steps = to_json(advise_transfer(rows), rows)["steps"];
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0]["device"], "cuda:0");
  EXPECT_EQ(steps[0]["batch_in_pinned_s"], 2e-3);
  EXPECT_EQ(steps[1]["device"], "cpu:0");
  EXPECT_TRUE(steps[1]["batch_in_pinned_s"].is_null());
}

}  // namespace
}  // namespace howmany::reports
