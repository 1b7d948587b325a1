// SPDX-License-Identifier: Apache-2.0
#include "parallel/pipeline/schedule.h"
#include "tests/support/message_of.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

namespace howmany {
namespace {

std::string str(const std::vector<Task>& tasks) {
  std::string text;
  for (const Task& t : tasks) text += "FBW"[t.kind] + std::to_string(t.micro_batch);
  return text;
}

TEST(Schedule, HandWorkedCases) {
  EXPECT_EQ(str(make_schedule("gpipe", {3, 0, 2})), "F0F1B1B0");
  EXPECT_EQ(str(make_schedule("1f1b", {3, 0, 4})), "F0F1F2B0F3B1B2B3");
  EXPECT_EQ(str(make_schedule("1f1b", {3, 1, 4})), "F0F1B0F2B1F3B2B3");
  EXPECT_EQ(str(make_schedule("1f1b", {3, 2, 4})), "F0B0F1B1F2B2F3B3");
  EXPECT_EQ(str(make_schedule("1f1b", {4, 0, 2})), "F0F1B0B1");
  EXPECT_EQ(str(make_schedule("1f1b", {1, 0, 1})), "F0B0");
  EXPECT_EQ(str(make_schedule("zb", {2, 0, 2})), "F0F1B0B1W0");
}

std::vector<int> order(const std::vector<Task>& tasks, Task::Kind kind) {
  std::vector<int> list;
  for (const Task& t : tasks)
    if (t.kind == kind) list.push_back(t.micro_batch);
  return list;
}

// Simulates stages that run their tasks in order, each as soon as its inputs are available.
struct Simulation {
  int stages, micro_batches;
  // A backward without weight gradients takes as long as a forward.
  double makespan(std::string_view schedule) const {
    const bool waits = make_schedule(schedule, {}).back().kind == Task::weights;
    const double seconds[] = {1, waits ? 1.0 : 2.0, 1.0 * micro_batches};
    std::vector<std::vector<Task>> lists;
    for (int s = 0; s < stages; ++s)
      lists.push_back(make_schedule(schedule, {stages, s, micro_batches}));
    std::map<std::pair<int, int>, double> forwarded, backwarded;  // (stage, micro-batch) -> when
    std::vector<size_t> next(lists.size());
    std::vector<double> free(lists.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t s = 0; s < lists.size(); ++s)
        while (next[s] < lists[s].size()) {
          const Task task = lists[s][next[s]];
          const int stage = static_cast<int>(s), m = task.micro_batch;
          double ready = 0;
          if (task.kind == Task::forward) {
            if (stage > 0 && !forwarded.contains({stage - 1, m})) break;
            if (stage > 0) ready = forwarded[{stage - 1, m}];
          } else if (task.kind == Task::backward) {
            if (!forwarded.contains({stage, m})) break;
            if (stage + 1 < stages && !backwarded.contains({stage + 1, m})) break;
            if (stage + 1 < stages) ready = backwarded[{stage + 1, m}];
          }
          free[s] = std::max(free[s], ready) + seconds[task.kind];
          if (task.kind == Task::forward) forwarded[{stage, m}] = free[s];
          if (task.kind == Task::backward) backwarded[{stage, m}] = free[s];
          ++next[s];
          moved = true;
        }
    }
    for (size_t s = 0; s < lists.size(); ++s)
      if (next[s] < lists[s].size()) return -1;  // deadlock
    return *std::ranges::max_element(free);
  }
};

TEST(EverySchedule, RunsEachMicroBatchOnceInAnOrderAllStagesShareAndWithoutDeadlock) {
  for (const std::string_view name : schedule_names())
    for (const int stages : {1, 2, 3, 4, 7})
      for (const int m : {1, 2, 3, 8}) {
        const auto first = make_schedule(name, {stages, 0, m});
        for (int s = 0; s < stages; ++s) {
          const auto tasks = make_schedule(name, {stages, s, m});
          EXPECT_EQ(order(tasks, Task::backward).size(), static_cast<size_t>(m));
          EXPECT_EQ(order(tasks, Task::forward), order(first, Task::forward));
          EXPECT_EQ(order(tasks, Task::backward), order(first, Task::backward));
        }
        auto forwards = order(first, Task::forward);
        std::ranges::sort(forwards);
        for (int i = 0; i < m; ++i) EXPECT_EQ(forwards[static_cast<size_t>(i)], i);
        EXPECT_GT((Simulation{stages, m}.makespan(name)), 0) << name << stages << m;
      }
}

TEST(EverySchedule, HasTheTheoreticalBubbleWhenStagesAreEqual) {
  for (const std::string_view name : schedule_names())
    for (const int stages : {1, 2, 4})
      for (const int m : {1, 4, 8}) {
        const double busy = 3.0 * m;
        EXPECT_NEAR(1 - busy / (Simulation{stages, m}.makespan(name)),
                    theoretical_bubble(name, stages, m), 1e-12)
            << name << stages << m;
      }
  EXPECT_DOUBLE_EQ(theoretical_bubble("1f1b", 2, 8), 1.0 / 9);
  EXPECT_DOUBLE_EQ(theoretical_bubble("zb", 2, 8), 1.0 / 13);
}

TEST(OneForwardOneBackward, KeepsNoMoreMicroBatchesThanStagesBehind) {
  for (int s = 0; s < 4; ++s) {
    int in_flight = 0, most = 0;
    for (const Task& t : make_schedule("1f1b", {4, s, 16})) {
      in_flight += t.kind == Task::forward ? 1 : -1;
      most = std::max(most, in_flight);
    }
    EXPECT_EQ(most, 4 - s);
  }
}

TEST(Schedule, RefusesNonsense) {
  EXPECT_THROW(make_schedule("1f1b", {2, 2, 1}), std::invalid_argument);
  EXPECT_THROW(make_schedule("1f1b", {2, 0, 0}), std::invalid_argument);
  EXPECT_THAT(message_of<std::invalid_argument>([&] { make_schedule("gpip", {}); }),
              testing::HasSubstr("did you mean 'gpipe'?"));
}

}  // namespace
}  // namespace howmany
