// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/rules.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "reports/regression/identical.h"
#include "reports/regression/launcher.h"
#include "reports/regression/ranks.h"
#include "reports/results/record.h"
#include "tests/reports/folder.h"
#include "tests/reports/regression/noisy_machine.h"

namespace howmany::reports {
namespace {

using ::testing::ElementsAre;

constexpr int kScreenPairs = 10, kFreshPairs = 30;

struct Tally {
  int hits = 0, of = 0;
  void add(bool hit) { hits += hit, ++of; }
  double value() const { return static_cast<double>(hits) / of; }
};

Comparison judged_blocks(const BothSides& all, int first, int count,
                         const std::vector<std::string>& names = {}) {
  return judge(only(blocks_of(all.base, first, first + count), names),
               only(blocks_of(all.candidate, first, first + count), names), {});
}

struct Gates {
  Tally alarms, gains, inconclusive;  // of the gates, of the gates, of the measurements
};

// Runs gates on successive blocks, each with a screen and fresh pairs.
Gates gates_over(const BothSides& all, int blocks) {
  Gates gates;
  for (int at = 0; at + kScreenPairs + kFreshPairs <= blocks;) {
    Comparison result = judged_blocks(all, at, kScreenPairs);
    at += kScreenPairs;
    if (const std::vector<std::string> open = to_escalate(result); !open.empty()) {
      result = settled(result, judged_blocks(all, at, kFreshPairs, open));
      at += kFreshPairs;
    }
    gates.alarms.add(result.count(Verdict::kSlower) > 0);
    gates.gains.add(result.count(Verdict::kFaster) > 0);
    for (const Row& row : result.rows)
      gates.inconclusive.add(row.verdict == Verdict::kInconclusive);
  }
  return gates;
}

TEST(RunOrder, GivesEachSideTheFirstPlaceEquallyOften) {
  RunOrder order(1);
  int first = 0, abba = 0;
  for (int i = 0; i < 200; i += 2) {
    const bool a = order.base_first(), b = order.base_first();
    EXPECT_NE(a, b);
    first += a + b;
    abba += a;
  }
  EXPECT_EQ(first, 100);
  EXPECT_GT(abba, 30);
  EXPECT_LT(abba, 70);
}

TEST(Gate, MeasuresOpenRowsAgainAndFreshPairsDecide) {
  Comparison screen;
  for (const Verdict v :
       {Verdict::kSlower, Verdict::kFaster, Verdict::kSame, Verdict::kInconclusive}) {
    Row row;
    row.benchmark = name_of(v);
    row.metric = "real_time";
    row.verdict = v;
    screen.rows.push_back(row);
  }
  EXPECT_THAT(to_escalate(screen), ElementsAre("INCONCLUSIVE", "SLOWER"));
  Comparison fresh;
  fresh.rows = {screen.rows[0], screen.rows[3]};
  fresh.rows[0].verdict = fresh.rows[1].verdict = Verdict::kSame;
  const Comparison result = settled(screen, fresh);
  EXPECT_EQ(result.rows.size(), 4u);
  EXPECT_EQ(result.count(Verdict::kSlower), 0);
  EXPECT_EQ(result.count(Verdict::kSame), 3);
  const Comparison late = unsettled(screen, "no time");
  EXPECT_EQ(late.count(Verdict::kSlower), 0);
  EXPECT_EQ(late.count(Verdict::kInconclusive), 2);
}

TEST(Gate, RaisesNoAlarmIfCodeIsUnchanged) {
  NoisyMachine machine(3);
  const Gates gates = gates_over(machine.sides(12000, 4, 0), 12000);
  EXPECT_GE(gates.alarms.of, 300);
  EXPECT_LE(gates.alarms.value(), 0.01);
  EXPECT_LE(gates.gains.value(), 0.01);
  EXPECT_LE(gates.inconclusive.value(), 0.1);
}

TEST(Gate, FindsASlowdownAndItsIntervalsHoldIt) {
  NoisyMachine machine(4);
  const BothSides slow = machine.sides(3000, 4, 0.05);
  Tally windows, slower, covered;
  for (int at = 0; at < 3000; at += kFreshPairs) {
    const Comparison c = judged_blocks(slow, at, kFreshPairs);
    windows.add(c.count(Verdict::kSlower) > 0);
    EXPECT_EQ(c.count(Verdict::kFaster), 0);
    for (const Row& row : c.rows) {
      slower.add(row.verdict == Verdict::kSlower);
      covered.add(row.interval->low <= 0.05 && 0.05 <= row.interval->high);
    }
  }
  EXPECT_EQ(windows.of, 100);
  EXPECT_GE(slower.value(), 0.95);
  EXPECT_NEAR(covered.value(), 0.95, 0.03);
  EXPECT_EQ(gates_over(slow, 3000).alarms.value(), 1);
}

TEST(Gate, FindsSlowdownsAboveTheReportedSmallestOne) {
  NoisyMachine machine(9);
  for (int i = 0; i < 20; ++i) {
    const BothSides same = machine.sides(kFreshPairs, 1, 0);
    const Row row = judged_blocks(same, 0, kFreshPairs).rows.at(0);
    ASSERT_TRUE(row.finds);
    EXPECT_GT(*row.finds, 0.005);
    EXPECT_LT(*row.finds, 0.05);
    for (const double times : {0.9, 1.1}) {
      BothSides slow = same;
      for (Sample& sample : slow.candidate.benchmarks[0].metrics["real_time"]) {
        sample.value *= 1 + times * *row.finds;
      }
      const Verdict verdict = judged_blocks(slow, 0, kFreshPairs).rows.at(0).verdict;
      if (times > 1) {
        EXPECT_EQ(verdict, Verdict::kSlower) << *row.finds;
      } else {
        EXPECT_NE(verdict, Verdict::kFaster);
      }
    }
  }
}

// Shows why sides are paired: without interleaving, drift deceives a valid test on the same
// launches.
TEST(Gate, RaisesNoAlarmUnderDrift) {
  NoisyMachine machine(5);
  const BothSides all =
      machine.sides(2400, 4, 0, [](int block) { return 1 + 0.15 * std::sin(block / 40.0); });
  const auto times = [](const Suite& suite, int first, size_t benchmark) {
    const Suite part = blocks_of(suite, first, first + 20);
    std::vector<double> values;
    for (const Sample& sample : part.benchmarks[benchmark].metrics.at("real_time"))
      values.push_back(sample.value);
    return values;
  };
  Tally apart;
  for (int at = 0; at < 2400; at += 40) {
    bool alarm = false;
    for (size_t i = 0; i < 4; ++i) {
      const auto base = times(all.base, at, i), later = times(all.candidate, at + 20, i);
      alarm |= 2 * rank_sum_above(base, later, 0) < 0.05;  // the test of compare.py and benchstat
    }
    apart.add(alarm);
  }
  EXPECT_GT(apart.value(), 0.2);
  EXPECT_EQ(gates_over(all, 2400).alarms.hits, 0);
}

// A repetition that was slowed down by other load does not count.
TEST(Launches, AreTheirBestRepetition) {
  Suite launch;
  Benchmark& a = launch.benchmarks.emplace_back();
  a.name = "a";
  a.metrics["real_time"] = {{0, 3}, {1, 1}, {2, 2}};
  a.metrics["items_per_second"] = {{0, 30}, {1, 10}, {2, 20}};
  a.metrics["allocs_per_iter"] = {{0, 5}, {1, 5}, {2, 5}};
  a.metrics["loss"] = {{0, 0.3}, {1, 0.1}, {2, 0.2}};
  Suite side;
  add_launch(side, launch, 7);
  const auto sample = [&](const char* metric) {
    const Sample& only = side.benchmarks.at(0).metrics.at(metric).at(0);
    EXPECT_EQ(only.index, 7);
    return only.value;
  };
  EXPECT_EQ(sample("real_time"), 1);
  EXPECT_EQ(sample("items_per_second"), 30);
  EXPECT_EQ(sample("allocs_per_iter"), 5);
  EXPECT_EQ(sample("loss"), 0.2);
  Suite less;
  add_launch(less, launch, 7, {{"loss", {Better::kLess, false, ""}}});
  EXPECT_EQ(less.benchmarks.at(0).metrics.at("loss").at(0).value, 0.1);
}

TEST(Launches, JoinBenchmarksByNameInAnyOrder) {
  Suite side;
  for (const auto& names : {std::vector<const char*>{"a", "b", "c"}, {"c", "a"}, {"d", "b"}}) {
    Suite launch;
    for (const char* name : names) {
      launch.benchmarks.emplace_back().name = name;
      launch.benchmarks.back().metrics["real_time"] = {{0, 1}};
    }
    add_launch(side, launch, 0);
  }
  std::map<std::string, size_t> counts;
  for (const Benchmark& b : side.benchmarks) counts[b.name] = b.metrics.at("real_time").size();
  EXPECT_EQ(counts, (std::map<std::string, size_t>{{"a", 2}, {"b", 2}, {"c", 2}, {"d", 1}}));
}

TEST(Launches, BecomeFilesThatComparePairsAgain) {
  NoisyMachine machine(7);
  const BothSides all = machine.sides(12, 2, 0);
  const Suite again = suite_from_text(bench_json(all.base), "f");
  const Comparison c = judge(again, suite_from_text(bench_json(all.candidate), "g"), {});
  EXPECT_TRUE(c.paired);
  EXPECT_EQ(c.rows.at(0).base_samples, 12);
  EXPECT_DOUBLE_EQ(again.benchmarks[0].metrics.at("real_time")[11].value,
                   all.base.benchmarks[0].metrics.at("real_time")[11].value);
}

TEST(Command, IsSplitAsAShellWould) {
  EXPECT_THAT(split_command("--base", "a 'b c' \"d\\\"e\" f\\ g ''"),
              ElementsAre("a", "b c", "d\"e", "f g", ""));
  EXPECT_THROW(split_command("--base", "  "), InputError);
  EXPECT_THROW(split_command("--base", "a 'b"), InputError);
}

TEST(Identical, ComparesLoadedSections) {
  const TemporaryFolder folder;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  std::filesystem::copy_file(self, folder / "copy");
  std::string bytes = contents(self);
  EXPECT_TRUE(same_program(self, folder / "copy"));
  std::ofstream(folder / "longer", std::ios::binary) << bytes << "debug information";
  EXPECT_TRUE(same_program(self, folder / "longer"));
  bytes[bytes.find("ComparesLoadedSections")] = 'G';  // in .rodata
  std::ofstream(folder / "other", std::ios::binary) << bytes;
  EXPECT_FALSE(same_program(self, folder / "other"));
  std::ofstream(folder / "origin1") << "x $ORIGIN/lib";
  std::ofstream(folder / "origin2") << "x $ORIGIN/lib";
  EXPECT_FALSE(same_program(folder / "origin1", folder / "origin2"));
  EXPECT_FALSE(same_program(folder / "none", folder / "none2"));
  EXPECT_TRUE(same_command({self, "-x"}, {folder / "copy", "-x"}));
  EXPECT_FALSE(same_command({self, "-x"}, {folder / "copy", "-y"}));
  EXPECT_FALSE(same_command({self}, {self, "-y"}));
}

}  // namespace
}  // namespace howmany::reports
