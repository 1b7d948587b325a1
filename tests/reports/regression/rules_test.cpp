// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/rules.h"

#include <gmock/gmock.h>

#include "reports/regression/identical.h"
#include "reports/regression/launcher.h"
#include "reports/regression/trace.h"
#include "reports/results/record.h"
#include "tests/reports/folder.h"
#include "tests/reports/regression/noisy_machine.h"

namespace howmany::reports {
namespace {

using ::testing::ElementsAre;

TEST(Turns, GiveEachSideTheFirstPlaceEquallyOftenInRandomOrder) {
  Turns turns(1);
  int first = 0, abba = 0;
  for (int i = 0; i < 200; i += 2) {
    const bool a = turns.base_first(), b = turns.base_first();
    EXPECT_NE(a, b);
    first += a + b;
    abba += a;
  }
  EXPECT_EQ(first, 100);
  EXPECT_GT(abba, 30);
  EXPECT_LT(abba, 70);
}

TEST(Gate, MeasuresAgainWhatIsSuspectedOrOpenAndOnlyFreshPairsDecide) {
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

TEST(Trace, IsReadBackWithoutALineThatWasCutOff) {
  const TemporaryFolder folder;
  NoisyMachine machine(6);
  const std::vector<Launch> written = machine.trace(3, 2, 0, "candidate");
  {
    TraceFile file(folder / "trace.jsonl");
    for (const Launch& launch : written) file.add(launch);
  }
  std::string text = contents(folder / "trace.jsonl");
  const auto read = trace_from_text(text + "{\"block\": 3, \"arm", "t");
  ASSERT_EQ(read.size(), written.size());
  EXPECT_EQ(read[5].values, written[5].values);
  EXPECT_EQ(read[5].block, 2);
  EXPECT_THROW(trace_from_text("{\"block\": -1}\n", "t"), InputError);
  EXPECT_THROW(trace_from_text("nonsense\n", "t"), InputError);
}

// A repetition that was slowed down by other load does not count.
TEST(Trace, LaunchesCountAsTheirBestRepetition) {
  Launch launch{.block = 7, .arm = "base", .position = 0, .wall_seconds = 1, .values = {}};
  launch.values["a"] = {{"real_time", {3, 1, 2}},
                        {"items_per_second", {30, 10, 20}},
                        {"allocs_per_iter", {5, 5, 5}},
                        {"loss", {0.3, 0.1, 0.2}}};
  const Suite suite = suite_of({launch}, "base");
  const auto sample = [&](const char* metric) {
    const Sample& only = suite.benchmarks.at(0).metrics.at(metric).at(0);
    EXPECT_EQ(only.index, 7);
    return only.value;
  };
  EXPECT_EQ(sample("real_time"), 1);
  EXPECT_EQ(sample("items_per_second"), 30);
  EXPECT_EQ(sample("allocs_per_iter"), 5);
  EXPECT_EQ(sample("loss"), 0.2);
  const MetricKinds said = {{"loss", {Better::kLess, false, ""}}};
  const Suite by_said = suite_of({launch}, "base", said);
  EXPECT_EQ(by_said.benchmarks.at(0).metrics.at("loss").at(0).value, 0.1);
}

TEST(Trace, BecomesFilesThatComparePairsAgain) {
  NoisyMachine machine(7);
  const auto launches = machine.trace(12, 2, 0, "candidate");
  const Suite base = suite_of(launches, "base");
  const Suite again = suite_from_text(bench_json(base), "f");
  const Comparison c =
      judge(again, suite_from_text(bench_json(suite_of(launches, "candidate")), "g"), {});
  EXPECT_TRUE(c.paired);
  EXPECT_EQ(c.rows.at(0).base_samples, 12);
  EXPECT_DOUBLE_EQ(again.benchmarks[0].metrics.at("real_time")[11].value,
                   base.benchmarks[0].metrics.at("real_time")[11].value);
}

TEST(Command, IsSplitAsAShellWould) {
  EXPECT_THAT(split_command("--base", "a 'b c' \"d\\\"e\" f\\ g ''"),
              ElementsAre("a", "b c", "d\"e", "f g", ""));
  EXPECT_THROW(split_command("--base", "  "), InputError);
  EXPECT_THROW(split_command("--base", "a 'b"), InputError);
}

TEST(Identical, FilesAreTheSameByWhatIsLoaded) {
  const TemporaryFolder folder;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  std::filesystem::copy_file(self, folder / "copy");
  std::string bytes = contents(self);
  EXPECT_TRUE(same_program(self, folder / "copy"));
  std::ofstream(folder / "longer", std::ios::binary) << bytes << "debug information";
  EXPECT_TRUE(same_program(self, folder / "longer"));
  bytes[bytes.find("FilesAreTheSameByWhatIsLoaded")] = 'G';  // in .rodata
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
