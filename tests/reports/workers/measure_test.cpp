// SPDX-License-Identifier: Apache-2.0
// Tests the runs of `howmany workers` and their time budget, with a simulated bench and clock.
#include "reports/workers/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/workers/advise.h"
#include "tests/reports/workers/examples.h"

namespace howmany::reports {
namespace {

using ::testing::ElementsAre;

// A turn takes a second. A run gives as many rounds as fit into its time, at least one.
class SlowBench : public WorkersBench {
 public:
  bool measure(WorkersFacts& facts, const std::vector<int>& numbers, double seconds) override {
    if (interrupted) return false;
    runs.push_back(numbers);
    const auto count = static_cast<double>(numbers.size());
    const int rounds = std::max(1, static_cast<int>(seconds / count));
    const int begin = next_round(facts.points);
    for (int round = begin; round < begin + rounds; ++round)
      for (const int workers : numbers)
        add_example_turn(facts, workers, round,
                         500 * std::min(2, std::max(1, workers)) * noise(1, workers, round, 0.01));
    now += rounds * count;
    return true;
  }
  double seconds_of(size_t turns) const override {
    return runs.empty() ? 0 : static_cast<double>(turns);
  }
  Budget budget(double seconds) {
    return Budget(seconds, [this] { return now; });
  }
  Order runs;
  double now = 0;
  bool interrupted = false;
};

int least_turns(const WorkersFacts& facts) {
  int least = 1000;
  for (const WorkersPoint& p : facts.points)
    if (may_win(facts.points, p)) least = std::min(least, p.turns());
  return least;
}

TEST(MeasureWorkers, MeasuresEachNumberOnceHoweverShortTheTime) {
  SlowBench bench;
  WorkersFacts facts = example_facts();
  measure_workers(bench, facts, bench.budget(1));
  EXPECT_THAT(bench.runs, ElementsAre(ElementsAre(0, 1, 2, 4, 8)));
  EXPECT_FALSE(advise_workers(facts).certain);
}

TEST(MeasureWorkers, KeepsTheBudget) {
  for (const double seconds : {20, 60, 200}) {
    SlowBench bench;
    WorkersFacts facts = example_facts();
    measure_workers(bench, facts, bench.budget(seconds));
    EXPECT_LE(bench.now, seconds);
  }
}

// After the sweep, only those that can win get more turns: a round of all would not fit.
TEST(MeasureWorkers, GivesThreeTurnsToThoseThatCanWinIfThereIsTime) {
  for (const double seconds : {8, 14, 60}) {
    SlowBench bench;
    WorkersFacts facts = example_facts();
    measure_workers(bench, facts, bench.budget(seconds));
    EXPECT_EQ(least_turns(facts) >= kMinTurns, seconds > 8) << seconds;
    EXPECT_LE(bench.now, seconds);
    EXPECT_TRUE(seconds > 8 || facts.enough_seconds > seconds);
  }
}

TEST(MeasureWorkers, EndsIfInterrupted) {
  SlowBench bench;
  bench.interrupted = true;
  WorkersFacts facts = example_facts();
  measure_workers(bench, facts, bench.budget(60));
  EXPECT_TRUE(bench.runs.empty() && facts.points.empty());
}

}  // namespace
}  // namespace howmany::reports
