// SPDX-License-Identifier: Apache-2.0
#include "reports/why/help.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace howmany::reports {
namespace {

constexpr double kSmall = 1e-9;

// 10 ms of work until the last bucket is ready, and 2 ms after its end. A bucket takes 1 ms and
// 1 ns a byte.
DetailStep recorded(const std::vector<double>& bytes) {
  DetailStep step;
  double ended = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const double at = 0.010 * static_cast<double>(i + 1) / static_cast<double>(bytes.size());
    ended = std::max(at, ended) + 1e-3 + 1e-9 * bytes[i];
    step.buckets.push_back({bytes[i], at, ended});
  }
  step.train = std::max(0.010, ended) + 0.002;
  step.blocked = step.train - 0.012;
  step.backward = step.train - 0.002;
  return step;
}

StepEvidence with_buckets(const std::vector<double>& bytes) {
  StepEvidence e;
  e.ddp = true;
  e.bucket_view = true;
  e.ranks.assign(2, {recorded(bytes).train});
  e.steps.push_back({Mode::kSynced, {recorded(bytes), recorded(bytes)}});
  return e;
}

CountParts with_parts(double step, const std::vector<Lost>& parts) {
  CountParts count;
  count.devices = 2;
  count.step = step;
  count.parts = parts;
  return count;
}

const Help* find_help(const std::vector<Help>& all, const std::string& what) {
  const auto found = std::ranges::find(all, what, &Help::what);
  return found == all.end() ? nullptr : &*found;
}

std::vector<Help> helps(const CountParts& parts, const StepEvidence& e) {
  return help_for(parts, {2, "m", "ddp", "gloo", false, {e}});
}

double gain(const CountParts& parts, const StepEvidence& e, const std::string& what) {
  const std::vector<Help> all = helps(parts, e);
  const Help* const found = find_help(all, what);
  return found == nullptr ? 0 : found->gain;
}

TEST(BucketLine, HasTheTimeOfACallAndOfAByte) {
  const BucketLine line = bucket_line(with_buckets({1e6, 25e6, 4e6}));
  EXPECT_NEAR(line.per_call, 1e-3, kSmall);
  EXPECT_NEAR(line.per_byte, 1e-9, 1e-15);
}

TEST(BucketLine, HasNoTimeOfACallIfAllBucketsAreAlike) {
  const BucketLine line = bucket_line(with_buckets({4e6, 4e6}));
  EXPECT_EQ(line.per_call, 0);
  EXPECT_NEAR(line.per_byte, 5e-3 / 4e6, 1e-15);
}

TEST(ReplayedStep, IsTheRecordedOneWithoutAChange) {
  for (const DetailStep& step : {recorded({1e6, 25e6, 4e6}), recorded({1e6}), DetailStep{}})
    EXPECT_NEAR(replayed_step(step, {2e-3, 3e-9}, {}), step.train, kSmall);
}

TEST(ReplayedStep, WaitsForTheBucketBefore) {
  // Ready at 5 and 10 ms; 11 ms each: they end at 16 and 27 ms. With half of the bytes, 6 ms each:
  // at 11 and 17 ms.
  const DetailStep step = recorded({10e6, 10e6});
  EXPECT_NEAR(step.train, 0.029, kSmall);
  EXPECT_NEAR(replayed_step(step, {1e-3, 1e-9}, {.bytes = 0.5}), 0.019, kSmall);
  EXPECT_NEAR(replayed_step(step, {1e-3, 1e-9}, {.per_byte = 0}), 0.013, kSmall);
}

TEST(ReplayedWithCap, JoinsAndCutsBuckets) {
  const BucketLine line{1e-3, 1e-9};
  // Ready at 2.5, 5, 7.5 and 10 ms; 2 ms each: the last ends at 12 ms. Joined, the second has 3 MB
  // at 10 ms.
  const DetailStep step = recorded({1e6, 1e6, 1e6, 1e6});
  EXPECT_NEAR(replayed_with_cap(step, line, 100e6), step.train + 0.002, kSmall);
  // Ready at 5 and 10 ms. Cut, the second is ready at 7.5 and 10 ms, 5 ms each: 17.5, not 19 ms.
  const DetailStep large = recorded({1e6, 8e6});
  EXPECT_NEAR(replayed_with_cap(large, line, 4e6), large.train - 0.0015, kSmall);
}

TEST(Help, ReplaysTheExchange) {
  StepEvidence e = with_buckets({10e6, 11e6 * 2});
  e.hosts = 2;
  const double step = e.ranks[0].step;
  const CountParts parts = with_parts(step, {{LossPart::kExchange, step - 0.012}});
  EXPECT_GT(gain(parts, e, "bf16_gradients"), 0.015);
  EXPECT_GT(gain(parts, e, "faster_link"), gain(parts, e, "bf16_gradients"));
  EXPECT_NEAR(gain(parts, e, "larger_batch"), (step - 0.012) / 2, kSmall);
  e.hosts = 1;  // no link
  EXPECT_EQ(gain(parts, e, "faster_link"), 0);
  const std::vector<Help> all = helps(parts, e);
  EXPECT_FALSE(find_help(all, "bf16_gradients")->measured);
  EXPECT_TRUE(std::ranges::is_sorted(all, std::ranges::greater(), &Help::gain));
}

TEST(Help, TakesMeasuredStepsIfThereAre) {
  StepEvidence e = with_buckets({10e6, 22e6});
  const double step = e.ranks[0].step;
  e.steps.push_back({Mode::kBf16, std::vector<DetailStep>(2, {step - 0.004, 0, 0, 0, {}, {}})});
  const std::vector<Help> all = helps(with_parts(step, {}), e);
  ASSERT_NE(find_help(all, "bf16_gradients"), nullptr);
  EXPECT_TRUE(find_help(all, "bf16_gradients")->measured);
  EXPECT_NEAR(find_help(all, "bf16_gradients")->gain, 0.004, kSmall);
  e.steps.back().ranks = e.steps[0].ranks;  // it saves nothing
  EXPECT_EQ(gain(with_parts(step, {}), e, "bf16_gradients"), 0);
}

TEST(Help, ChoosesTheCapOfBuckets) {
  StepEvidence e = with_buckets(std::vector<double>(40, 1e6));
  for (DetailStep& rank : e.steps[0].ranks)
    rank = recorded([] {
      std::vector<double> bytes(40, 1e6);
      bytes[3] = 2e6;
      return bytes;
    }());
  e.bucket_cap = 1 << 20;
  const std::vector<Help> all = helps(with_parts(0.1, {}), e);
  ASSERT_NE(find_help(all, "fewer_buckets"), nullptr);
  EXPECT_EQ(find_help(all, "more_buckets"), nullptr);
  EXPECT_THAT(find_help(all, "fewer_buckets")->paste, ::testing::HasSubstr("bucket_cap_mb="));
}

StepEvidence with_loader(int workers, int cores, double cpu) {
  StepEvidence e;
  e.ranks.resize(1);
  e.workers = workers;
  e.cores = cores;
  e.loader_cpu = cpu;
  return e;
}

TEST(Help, WorkersOnOtherCoresOrThatSleep) {
  // A batch takes 60 ms, the rest of the step 40 ms: two workers make them in 30 ms.
  const CountParts parts = with_parts(0.1, {{LossPart::kData, 0.06}});
  EXPECT_EQ(gain(parts, with_loader(0, 1, 0.06), "more_workers"), 0);
  EXPECT_NEAR(gain(parts, with_loader(0, 1, 0.001), "more_workers"), 0.059, kSmall);
  EXPECT_NEAR(gain(parts, with_loader(0, 4, 0.06), "more_workers"), 0.06, kSmall);
  const std::vector<Help> all = helps(parts, with_loader(0, 4, 0.06));
  EXPECT_THAT(find_help(all, "more_workers")->paste, ::testing::HasSubstr("num_workers=2"));
  // One worker makes a batch in 100 ms: three are as fast as the rest of the step.
  const std::vector<Help> three = helps(parts, with_loader(1, 4, 0));
  EXPECT_THAT(find_help(three, "more_workers")->paste, ::testing::HasSubstr("num_workers=3"));
  StepEvidence none = with_loader(0, 4, 0);
  none.workers.reset();
  EXPECT_EQ(gain(parts, none, "more_workers"), 0);
}

TEST(Help, PersistentWorkersSaveTheStartsOfEpochs) {
  const CountParts parts = with_parts(0.1, {{LossPart::kEpochs, 0.02}});
  StepEvidence e = with_loader(2, 4, 0);
  EXPECT_NEAR(gain(parts, e, "persistent_workers"), 0.02, kSmall);
  e.persistent_workers = true;
  EXPECT_EQ(gain(parts, e, "persistent_workers"), 0);
  EXPECT_EQ(gain(parts, with_loader(0, 4, 0), "persistent_workers"), 0);
}

TEST(Help, ViewsOfBucketsSaveTheCopiesOutOfThem) {
  StepEvidence e = with_buckets({1e6});
  const CountParts parts = with_parts(0.1, {{LossPart::kMachinery, 0.02}});
  e.steps.push_back({Mode::kNoop, std::vector<DetailStep>(2, {0.05, 0.02, 0.003, 0, {}, {}})});
  EXPECT_EQ(gain(parts, e, "bucket_view"), 0);
  e.bucket_view = false;
  EXPECT_NEAR(gain(parts, e, "bucket_view"), 0.003, kSmall);
}

TEST(Help, FewerThreadsAreMeasured) {
  const StepEvidence e = with_buckets({1e6});
  CountParts parts = with_parts(0.1, {});
  EXPECT_EQ(gain(parts, e, "fewer_threads"), 0);
  parts.threads = {0.02, 0.001};
  const std::vector<Help> all = helps(parts, e);
  ASSERT_NE(find_help(all, "fewer_threads"), nullptr);
  EXPECT_TRUE(find_help(all, "fewer_threads")->measured);
  EXPECT_NEAR(find_help(all, "fewer_threads")->gain, 0.02, kSmall);
  // Ranks that wait for each other in turn do so because of the threads.
  parts.parts = {{LossPart::kSlowest, 0.01}};
  EXPECT_NEAR(gain(parts, e, "fewer_threads"), 0.03, kSmall);
}

TEST(Help, OfPartsThatAreLost) {
  CountParts parts = with_parts(0.1, {{LossPart::kSlowest, 0.03}, {LossPart::kOutside, 0.02}});
  const StepEvidence e = with_buckets({1e6});
  EXPECT_NEAR(gain(parts, e, "equal_ranks"), 0.03, kSmall);
  EXPECT_NEAR(gain(parts, e, "less_outside"), 0.01, kSmall);
  parts.refused = "too noisy";
  EXPECT_TRUE(helps(parts, e).empty());
}

// Makes evidence of values that no run has: 0, equal and far apart.
class AnyEvidence {
 public:
  explicit AnyEvidence(unsigned seed) : random_(seed) {}

  StepEvidence next(size_t ranks) {
    StepEvidence e;
    e.ddp = coin();
    e.gpu = coin();
    e.samples = pick({0, 8, 32});
    e.cores = static_cast<int>(pick({0, 1, 4}));
    e.threads = static_cast<int>(pick({0, 1, 8}));
    if (coin()) e.workers = static_cast<int>(pick({0, 1, 9}));
    e.bucket_cap = pick({0, 1, 25e6});
    for (size_t i = 0; i < ranks; ++i)
      e.ranks.push_back(
          {seconds() + 1e-9, seconds(), seconds(), seconds(), seconds(), seconds(), seconds()});
    for (int steps = static_cast<int>(pick({0, 1, 9})); steps > 0; --steps)
      e.steps.push_back(step(ranks));
    return e;
  }

 private:
  bool coin() { return random_() % 2 == 0; }
  double pick(std::initializer_list<double> values) {
    return *(values.begin() + random_() % values.size());
  }
  double seconds() { return pick({0, 0, 1e-9, 0.01, 0.011, 0.5, 1e6}); }

  DetailSteps step(size_t ranks) {
    DetailSteps all{static_cast<Mode>(random_() % 5), {}};
    const auto buckets = static_cast<int>(pick({0, 1, 4}));
    for (size_t i = 0; i < ranks; ++i) {
      DetailStep one{seconds(), seconds(), seconds(), 0, {{"backward", seconds(), seconds()}}, {}};
      one.spans.push_back({"blocked", seconds(), seconds()});
      for (int k = 0; k < buckets; ++k) one.buckets.push_back({1e6 * k, 0.01 * k, seconds()});
      all.ranks.push_back(std::move(one));
    }
    return all;
  }

  std::mt19937 random_;
};

TEST(PartsAndHelp, OfAnyEvidenceAddUpAndAreFinite) {
  AnyEvidence any(7);
  for (int round = 0; round < 3000; ++round) {
    const auto ranks = static_cast<size_t>(1 + round % 3);
    const std::vector<RowEvidence> rows = {
        {1, "m", "single", "", true, {any.next(1), any.next(1)}},
        {static_cast<int>(ranks), "m", "ddp", "gloo", false, {any.next(ranks)}}};
    const std::vector<CountParts> all = parts_of(rows);
    for (size_t i = 0; i < rows.size(); ++i) {
      double sum = 0;
      for (const Lost& lost : all[i].parts) {
        sum += lost.seconds;
        EXPECT_GE(lost.seconds, lost.part == LossPart::kRest ? -INFINITY : 0);
        EXPECT_TRUE(lost.error >= 0 && std::isfinite(lost.error));
      }
      EXPECT_NEAR(sum, all[i].lost(), 1e-9 * (1e7 + std::abs(all[i].lost())));
      for (const Help& help : help_for(all[i], rows[i]))
        EXPECT_TRUE(help.gain > 0 && std::isfinite(help.gain)) << help.what;
    }
  }
}

TEST(Help, LeavesOutSmallAndUncertainGains) {
  const StepEvidence e = with_buckets({1e6});
  EXPECT_EQ(gain(with_parts(0.1, {{LossPart::kSlowest, 0.0019}}), e, "equal_ranks"), 0);
  EXPECT_EQ(gain(with_parts(0.1, {{LossPart::kSlowest, 0.03, 0.02}}), e, "equal_ranks"), 0);
}

}  // namespace
}  // namespace howmany::reports
