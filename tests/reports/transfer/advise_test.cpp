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
using ::testing::HasSubstr;
using ::testing::Not;
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

Measurement step(const char* part, double seconds, const char* device = "cuda:0",
                 double spread = 0.01) {
  return timed("step", seconds,
               {{"model", "resnet18"}, {"batch", "256"}, {"device", device}, {"part", part}},
               spread);
}

std::string transfer_because(const Rows& rows) { return advise_transfer(rows).because; }
std::vector<std::string> notes(const Rows& rows) { return advise_transfer(rows).notes; }
std::string rendered_transfer(const Rows& rows) {
  return render_transfer(advise_transfer(rows), rows, false);
}

TEST(GpuCopies, ArePinnedIfThatIsFaster) {
  EXPECT_EQ(advise_transfer(one_gpu()).reason, reason::kPinnedFaster);
  EXPECT_THAT(transfer_because(one_gpu()),
              AllOf(HasSubstr("54.9 GB/s"), HasSubstr("3.05x"), HasSubstr("18.0 GB/s")));
}

TEST(GpuCopies, AreNotPinnedForLessThanTenPercent) {
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

TEST(GpuCopies, AreNotComparedWithoutIntervals) {
  Rows rows = {without_interval(host_copy({.memory = "pageable"}, 4 * kMebibyte, 4.2e-4)),
               without_interval(host_copy({}, 4 * kMebibyte, 1e-4))};
  EXPECT_EQ(advise_transfer(rows).reason, reason::kNotComparable);
  rows.push_back(host_copy({.memory = "pageable"}, kMebibyte, 2e-4));
  rows.push_back(host_copy({}, kMebibyte, 1e-4));
  EXPECT_THAT(transfer_because(rows), HasSubstr("5.24 GB/s from pageable (1 MiB; 2.00x)"));
}

TEST(GpuCopies, AreComparedAtTheLargestCommonSize) {
  Rows rows;
  add_line(rows, {.memory = "pageable"}, 0, 10e9, kMebibyte);
  add_line(rows, {}, 0, 20e9);
  EXPECT_THAT(transfer_because(rows), HasSubstr("10 GB/s from pageable (1 MiB; 2.00x)"));
}

TEST(GpuCopies, HaveRatesPerDirection) {
  Rows rows = {
      host_copy({.how = "async", .both_ways = true}, 64 * kMebibyte, 64 * kMebibyte / 44e9)};
  for (const Measurement& m : one_gpu()) rows.push_back(m);
  rows.push_back(
      host_copy({.memory = "registered", .how = "async"}, 64 * kMebibyte, 64 * kMebibyte / 54.8e9));
  rows.push_back(host_copy({.memory = "write_combined", .how = "async"}, 64 * kMebibyte,
                           64 * kMebibyte / 66e9));
  const DirectionRates to = rates_of(gpu_copies_of(rows), "cuda:0", kToDevice);
  EXPECT_NEAR(to.pinned_async, 55e9, 1e8) << "without concurrent copies";
  EXPECT_NEAR(to.both_ways, 44e9, 1e7);
  EXPECT_NEAR(to.registered, 54.8e9, 1e7);
  EXPECT_NEAR(to.write_combined, 66e9, 1e7);
  EXPECT_THAT(
      rendered_transfer(rows),
      HasSubstr("to cuda:0    18.0 GB/s  54.9 GB/s  55.0 GB/s   54.8 GB/s       66.0 GB/s"));
}

TEST(GpuCopies, OfCpuDevicesDoNotChangeTheAnswer) {
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

TEST(GpuCopies, MakeThreadsANote) {
  Rows rows = one_gpu();
  rows.push_back(timed("copy", 1e-4, {{"threads", "1"}, {"bytes", "1048576"}}));
  EXPECT_EQ(advise_transfer(rows).reason, reason::kPinnedFaster);
  EXPECT_THAT(notes(rows), Contains(StartsWith("Copy with one thread")));
}

TEST(GpuCopies, HaveNoAnswerIfAllFailed) {
  Rows rows = one_gpu();
  for (Measurement& m : rows)
    if (parameter_of(m, "memory") == "pinned") m.flags = {"failed: wrong data"};
  EXPECT_EQ(advise_transfer(rows).reason, reason::kNotComparable);
  EXPECT_THAT(notes(rows), Contains(HasSubstr("Failed: host_to_device: wrong data")));
}

TEST(GpuSteps, ShowWhatPinningSaves) {
  const auto table = [](double pageable, double pinned, double spread) {
    return rendered_transfer({step("batch_in", pageable, "cuda:0", spread),
                              step("batch_in_pinned", pinned, "cuda:0", spread),
                              step("whole", 45.1e-3)});
  };
  EXPECT_THAT(table(3.1e-3, 1.86e-3, 0.01),
              HasSubstr("resnet18  cuda:0    256   3.10 ms  1.86 ms        1.24 ms"));
  EXPECT_THAT(table(3.1e-3, 3e-3, 0.05), HasSubstr("within noise"));
  EXPECT_THAT(table(3e-3, 4e-3, 0.01), HasSubstr("4 ms            0 s"));
}

TEST(GpuSteps, WithoutIntervalsSaveNothingBeyondNoise) {
  EXPECT_THAT(rendered_transfer({without_interval(step("batch_in", 3.11e-3)),
                                 without_interval(step("batch_in_pinned", 3.1e-3))}),
              HasSubstr("within noise"));
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

TEST(GpuJson, HasRatesAndNullForUndefined) {
  const Rows rows = one_gpu();
  const auto json = to_json(advise_transfer(rows), rows);
  ASSERT_EQ(json["devices"].size(), 1u);
  const auto& to = json["devices"][0]["to_device"];
  EXPECT_EQ(json["devices"][0]["device"], "cuda:0");
  EXPECT_NEAR(to["pageable_bytes_per_s"].get<double>(), 18e9, 1e8);
  EXPECT_NEAR(to["pinned_bytes_per_s"].get<double>(), 55e9, 2e8);
  EXPECT_NEAR(to["latency_s"].get<double>(), 8e-6, 1e-7);
  EXPECT_NEAR(to["latency_below_bytes"].get<double>(), 440e3, 60e3);
  EXPECT_TRUE(to["registered_bytes_per_s"].is_null());
  EXPECT_THAT(dump_json(json), AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
}

TEST(GpuJson, HasTheStepOfEachDevice) {
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
