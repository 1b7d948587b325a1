// SPDX-License-Identifier: Apache-2.0
#include "reports/why/parts.h"

#include <gmock/gmock.h>

#include <numeric>

namespace howmany::reports {
namespace {

constexpr double kTiny = 1e-9;

// Milliseconds of a rank. Its step is useful work, then the wait for the slowest and the exchange.
struct Rank {
  double work = 100, data = 0, outside = 0, epochs = 0;
  double all() const { return work + data + outside + epochs; }
};

// Milliseconds that are not the ranks' own work.
struct Costs {
  double exchange = 0, machinery = 0, beside = 0;
};

double most(const std::vector<Rank>& ranks) {
  double all = 0;
  for (const Rank& rank : ranks) all = std::max(all, rank.all());
  return all;
}

DetailStep detail(const Rank& rank, double extra, double blocked, bool recorded) {
  DetailStep step;
  step.train = (rank.work + extra + blocked) / 1000;
  step.backward = ((rank.work + extra) / 2 + blocked) / 1000;
  step.blocked = blocked / 1000;
  if (!recorded) return step;
  step.spans = {{"data", 0, rank.data / 1000},
                {"outside", rank.data / 1000, rank.outside / 1000},
                {"backward", (rank.all() + extra) / 2000, step.backward}};
  step.buckets = {{1e6, 0.06, 0.07}, {2e6, 0.07, 0.08}};
  return step;
}

void add_steps(StepEvidence& e, const std::vector<Rank>& ranks, const Costs& costs) {
  DetailSteps synced{Mode::kSynced, {}}, noop{Mode::kNoop, {}}, alone{Mode::kAlone, {}};
  for (const Rank& rank : ranks) {
    const double wait = most(ranks) - rank.all() + costs.exchange;
    synced.ranks.push_back(detail(rank, costs.machinery + costs.beside, wait, true));
    noop.ranks.push_back(detail(rank, costs.machinery, 0, false));
    alone.ranks.push_back(detail(rank, 0, 0, false));
  }
  for (const DetailSteps& one : {synced, noop, alone}) e.steps.push_back(one);
}

// `turns`: the ranks of successive steps.
StepEvidence evidence(const std::vector<std::vector<Rank>>& turns, const Costs& costs = {}) {
  StepEvidence e;
  e.ddp = true;
  e.samples = 32;
  e.cores = e.threads = 1;
  e.ranks.resize(turns[0].size());
  const auto n = static_cast<double>(turns.size()) * 1000;
  for (const std::vector<Rank>& ranks : turns) {
    for (size_t r = 0; r < ranks.size(); ++r) {
      RankTimes& times = e.ranks[r];
      const double extra = costs.machinery + costs.beside;
      const double wait = most(ranks) - ranks[r].all() + costs.exchange;
      times.step += (most(ranks) + extra + costs.exchange) / n;
      times.data += ranks[r].data / n;
      times.outside += ranks[r].outside / n;
      times.epochs += ranks[r].epochs / n;
      times.backward += ((ranks[r].work + extra) / 2 + wait) / n;
    }
    add_steps(e, ranks, costs);
  }
  return e;
}

StepEvidence single(const Rank& rank = {}) {
  StepEvidence e = evidence({{rank}});
  e.ddp = false;
  e.steps.clear();
  return e;
}

CountParts parts(const StepEvidence& one, const StepEvidence& many) {
  const auto devices = static_cast<int>(many.ranks.size());
  return parts_of(
      {{1, "m", "single", "", true, {one}}, {devices, "m", "ddp", "gloo", false, {many}}})[1];
}

double sum_of(const CountParts& parts) {
  return std::accumulate(parts.parts.begin(), parts.parts.end(), 0.0,
                         [](double sum, const Lost& lost) { return sum + lost.seconds; });
}

void expect_only(const CountParts& p, LossPart part, double seconds) {
  EXPECT_EQ(p.refused, "");
  EXPECT_NEAR(sum_of(p), p.lost(), kTiny);
  ASSERT_NE(cause_of(p), nullptr);
  EXPECT_EQ(cause_of(p)->part, part) << name_of(cause_of(p)->part);
  EXPECT_NEAR(p.of(part).seconds, seconds, 0.01 * seconds);
  EXPECT_NEAR(p.of(part).seconds, p.lost(), 0.01 * p.step);
}

TEST(Parts, OfAHealthyStepNameNoCause) {
  const CountParts p = parts(single(), evidence({{{}, {}}, {{101}, {99}}, {{99}, {101}}}));
  EXPECT_EQ(p.refused, "");
  EXPECT_EQ(cause_of(p), nullptr);
  EXPECT_NEAR(sum_of(p), p.lost(), kTiny);
}

TEST(Parts, NameTheExchange) {
  const CountParts p = parts(single(), evidence({{{}, {}}}, {.exchange = 40}));
  expect_only(p, LossPart::kExchange, 0.04);
  EXPECT_EQ(p.bytes, 3e6);
  EXPECT_EQ(p.buckets, 2);
  EXPECT_EQ(p.last_bucket_bytes, 2e6);
}

TEST(Parts, NameMachineryAndCompute) {
  expect_only(parts(single(), evidence({{{}, {}}}, {.machinery = 30})), LossPart::kMachinery, 0.03);
  expect_only(parts(single(), evidence({{{}, {}}}, {.beside = 30})), LossPart::kCompute, 0.03);
  expect_only(parts(single(), evidence({{{150}, {150}}})), LossPart::kCompute, 0.05);
}

TEST(Parts, TheEndOfBackwardWithoutExchangeIsMachinery) {
  StepEvidence e = evidence({{{}, {}}}, {.exchange = 40});
  for (DetailStep& rank : e.steps[1].ranks) rank.train += 0.03, rank.blocked = 0.03;
  const CountParts p = parts(single(), e);
  EXPECT_NEAR(p.of(LossPart::kMachinery).seconds, 0.03, kTiny);
  EXPECT_NEAR(p.of(LossPart::kExchange).seconds, 0.01, kTiny);
}

TEST(Parts, NameDataOutsideAndEpochs) {
  const Rank data{.data = 20}, outside{.outside = 20}, epochs{.epochs = 20};
  expect_only(parts(single(), evidence({{data, data}})), LossPart::kData, 0.02);
  expect_only(parts(single(), evidence({{outside, outside}})), LossPart::kOutside, 0.02);
  expect_only(parts(single(), evidence({{epochs, epochs}})), LossPart::kEpochs, 0.02);
  // One rank does it, and the others wait.
  expect_only(parts(single(), evidence({{outside, {}, {}}})), LossPart::kOutside, 0.02);
  expect_only(parts(single(), evidence({{{}, data}})), LossPart::kData, 0.02);
}

TEST(Parts, NameTheSlowRank) {
  for (const size_t ranks : {2, 3, 8}) {
    std::vector<Rank> all(ranks);
    all[1].work = 130;
    const CountParts p = parts(single(), evidence({all, all, all}));
    expect_only(p, LossPart::kSlowest, 0.03);
    EXPECT_EQ(p.slowest.rank, 1);
    EXPECT_NEAR(p.slowest.extra, 0.03, kTiny);
    EXPECT_EQ(p.slowest.because, LossPart::kCompute);
    EXPECT_TRUE(p.slowest.always());
  }
}

TEST(Parts, NameARankThatIsSlowInTurn) {
  const CountParts p = parts(single(), evidence({{{130}, {}}, {{}, {130}}, {{130}, {}}}));
  expect_only(p, LossPart::kSlowest, 0.03);
  EXPECT_FALSE(p.slowest.always());
}

TEST(Parts, OfOneDeviceAreThoseThatItHasToo) {
  const Rank waits{.data = 20};
  const auto all =
      parts_of({{1, "m", "single", "", true, {single(waits)}},
                {2, "m", "ddp", "gloo", false, {evidence({{{.data = 30}, {.data = 30}}})}}});
  expect_only(all[0], LossPart::kData, 0.02);
  EXPECT_NEAR(all[1].ideal, 0.1, kTiny);
  EXPECT_NEAR(all[1].of(LossPart::kData).on_one, 0.02, kTiny);
}

TEST(Parts, IdealHasTheSamplesOfARank) {
  StepEvidence half = evidence({{{.work = 50}, {.work = 50}}});
  half.samples = 16;
  const CountParts p = parts(single(), half);
  EXPECT_NEAR(p.ideal, 0.05, kTiny);
  EXPECT_EQ(cause_of(p), nullptr);
}

TEST(Parts, IdealHasNoMoreThreadsThanCores) {
  StepEvidence one = single({.work = 160}), two = evidence({{{170}, {170}}});
  for (StepEvidence* e : {&one, &two}) {
    e->threads = 4;
    e->steps.push_back(
        {Mode::kNarrow, std::vector<DetailStep>(e->ranks.size(), {0.1, 0, 0, 0, {}, {}})});
  }
  const CountParts p = parts(one, two);
  EXPECT_NEAR(p.ideal, 0.1, kTiny);
  EXPECT_NEAR(p.threads.value, 0.07, kTiny);
  expect_only(p, LossPart::kCompute, 0.07);
  EXPECT_NEAR(p.of(LossPart::kCompute).on_one, 0.06, kTiny);
}

TEST(Parts, WithoutOtherStepsComputeIsTheRemainder) {
  StepEvidence e = evidence({{{130}, {}}}, {.exchange = 40});
  e.ddp = false;
  e.steps.clear();
  e.ranks[0].blocked = 0.04;
  e.ranks[1].blocked = 0.07;
  const CountParts p = parts(single(), e);
  EXPECT_TRUE(p.remainder);
  EXPECT_NEAR(p.of(LossPart::kExchange).seconds, 0.04, kTiny);
  EXPECT_NEAR(p.of(LossPart::kSlowest).seconds, 0.03, kTiny);
  EXPECT_NEAR(p.of(LossPart::kRest).seconds, 0, kTiny);
  EXPECT_EQ(p.refused, "");
}

TEST(Parts, TheExchangeIsAtTheEndOfTheLastBackward) {
  StepEvidence e = evidence({{{}, {}}}, {.exchange = 40});
  for (DetailStep& rank : e.steps[0].ranks)
    rank.spans = {{"backward", 0.02, 0.02}, {"backward", 0.06, 0.07}, {"blocked", 0.09, 0.04}};
  expect_only(parts(single(), e), LossPart::kExchange, 0.04);
}

TEST(Parts, WithAnOwnHookTheTailIsThatOfBackward) {
  StepEvidence e = evidence({{{}, {}}}, {.exchange = 40});
  e.own_hook = true;
  std::erase_if(e.steps, [](const DetailSteps& one) { return one.mode != Mode::kAlone; });
  expect_only(parts(single(), e), LossPart::kExchange, 0.04);
}

TEST(Parts, OfFewerStepsThanWorkRecursInAreRefused) {
  StepEvidence one = single({.outside = 10}), many = evidence({{{}, {}}});
  one.cycle = 50;
  many.timed = 20;
  EXPECT_NE(parts(one, many).refused, "");
  many.timed = 170;
  EXPECT_EQ(parts(one, many).refused, "");
  one = single({.outside = 1});  // too little to matter
  one.cycle = 50;
  many.timed = 20;
  EXPECT_EQ(parts(one, many).refused, "");
}

TEST(Parts, RefuseIfTheExchangeWasNotSeen) {
  StepEvidence e = evidence({{{150}, {150}}});
  e.steps.clear();
  EXPECT_NE(parts(single(), e).refused, "");
  e.ddp = false;
  EXPECT_EQ(parts(single(), e).refused, "");
  e.gpu = true;
  EXPECT_NE(parts(single(), e).refused, "");
}

TEST(Parts, RefuseIfTheyMissMoreThanTheRestMayBe) {
  StepEvidence e = evidence({{{}, {}}});
  for (RankTimes& rank : e.ranks) rank.step += 0.02;  // not in its parts
  const CountParts p = parts(single(), e);
  EXPECT_NE(p.refused, "");
  EXPECT_EQ(cause_of(p), nullptr);
  EXPECT_NEAR(p.of(LossPart::kRest).seconds, 0.02, kTiny);
  EXPECT_NEAR(sum_of(p), p.lost(), kTiny);
}

TEST(Parts, RefuseIfRanksDisagreeOnBuckets) {
  StepEvidence e = evidence({{{}, {}}}, {.exchange = 40});
  std::swap(e.steps[0].ranks[1].buckets[0], e.steps[0].ranks[1].buckets[1]);
  EXPECT_NE(parts(single(), e).refused, "");
}

TEST(Parts, RefuseWithoutTheOneDevice) {
  const CountParts p = parts_of({{2, "m", "ddp", "gloo", false, {evidence({{{}, {}}})}}})[0];
  EXPECT_NE(p.refused, "");
  EXPECT_TRUE(p.parts.empty());
}

TEST(Parts, JoinNoiseIntoTheRest) {
  std::vector<RowEvidence> rows = {{1, "m", "single", "", true, {}},
                                   {2, "m", "ddp", "gloo", false, {}}};
  for (const double exchange : {2.0, 30.0, 1.0}) {
    rows[0].rounds.push_back(single());
    rows[1].rounds.push_back(evidence({{{}, {}}}, {.exchange = exchange, .machinery = 40}));
  }
  const CountParts p = parts_of(rows)[1];
  EXPECT_EQ(p.of(LossPart::kExchange).seconds, 0);
  EXPECT_NEAR(p.of(LossPart::kRest).seconds, 0.011, kTiny);
  EXPECT_GT(p.of(LossPart::kRest).error, 0.005);
  EXPECT_EQ(cause_of(p)->part, LossPart::kMachinery);
  EXPECT_EQ(p.refused, "");
}

TEST(Parts, OneDisturbedStepDoesNotMoveThem) {
  StepEvidence e = evidence({{{}, {}}, {{}, {}}, {{}, {}}, {{}, {}}, {{}, {}}}, {.exchange = 40});
  for (DetailStep& rank : e.steps[0].ranks) rank.train += 1;
  for (DetailStep& rank : e.steps[2].ranks) rank.train += 1;
  expect_only(parts(single(), e), LossPart::kExchange, 0.04);
}

}  // namespace
}  // namespace howmany::reports
