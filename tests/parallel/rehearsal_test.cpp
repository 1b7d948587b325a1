// SPDX-License-Identifier: Apache-2.0
#include "parallel/rehearsal.h"

#include <gtest/gtest.h>

#include "core/base/clock.h"
#include "parallel/mesh.h"
#include "parallel/mode.h"

namespace howmany {
namespace {

using Points = std::vector<std::pair<double, double>>;

CostTable table_of(double seconds, double per_byte = 0, int world = 4) {
  const Points points = {{1024, seconds}, {1 << 20, seconds + per_byte * ((1 << 20) - 1024)}};
  return {.world = world,
          .groups = {{{world, 1},
                      {{"all_reduce", points},
                       {"reduce_scatter", points},
                       {"all_gather", points},
                       {"broadcast", points}}}}};
}

double seconds_between(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

Tensor tensor_of(const std::vector<float>& values) {
  return Tensor::from<float>(values, {static_cast<int64_t>(values.size())});
}

std::vector<float> values_of(const Tensor& t) {
  const auto values = t.values<float>();
  return {values.begin(), values.end()};
}

TEST(Rehearsal, TimesAreThoseOfTheTable) {
  const CostTable table = table_of(0.001, 1e-9);
  const auto seconds = [&](double bytes) { return table.seconds("all_reduce", bytes, {4, 1}); };
  EXPECT_DOUBLE_EQ(seconds(8), 0.001);
  EXPECT_DOUBLE_EQ(seconds(1024), 0.001);
  EXPECT_DOUBLE_EQ(seconds(2048), 0.001 + 1e-9 * 1024);
  EXPECT_DOUBLE_EQ(seconds(2 << 20), 2 * seconds(1 << 20));
  EXPECT_THROW(table.seconds("all_to_all", 8, {4, 1}), std::out_of_range);
  EXPECT_THROW(table.seconds("all_reduce", 8, {2, 1}), std::out_of_range);
  EXPECT_EQ(CostTable{}.seconds("all_reduce", 8, {2, 1}), 0);
}

TEST(Rehearsal, ACallTakesItsTime) {
  Rehearsal rehearsal(table_of(0.02));
  const auto comm = rehearsal.join(1);
  EXPECT_EQ(comm->rank(), 1);
  EXPECT_EQ(comm->size(), 4);
  EXPECT_EQ(comm->backend(), "rehearsal");
  const Clock::time_point start = Clock::now();
  comm->all_reduce(tensor_of({1, 2, 3}));
  EXPECT_GE(seconds_since(start), 0.02);
  const std::vector<RehearsedCall> log = rehearsal.take_log();
  ASSERT_EQ(log.size(), 1U);
  EXPECT_EQ(log[0].kind, "all_reduce");
  EXPECT_EQ(log[0].bytes, 12);
  EXPECT_EQ(log[0].group, (EvenGroup{4, 1}));
  EXPECT_EQ(log[0].seconds, 0.02);
  EXPECT_EQ(log[0].waited, log[0].at);
  EXPECT_GE(seconds_between(start, log[0].at), 0);
  EXPECT_TRUE(rehearsal.take_log().empty());
}

TEST(Rehearsal, QueuedCallsFollowEachOther) {
  Rehearsal rehearsal(table_of(0.02));
  const auto comm = rehearsal.join(0);
  const Tensor a = tensor_of({1}), b = tensor_of({2}), c = tensor_of({3});
  const Clock::time_point start = Clock::now();
  std::vector<Work> all = {comm->all_reduce_async(a), comm->all_reduce_async(b),
                           comm->all_reduce_async(c)};
  const double called = seconds_since(start);
  for (Work& work : all) work.wait();
  EXPECT_GE(seconds_since(start), 0.06);
  const std::vector<RehearsedCall> log = rehearsal.take_log();
  ASSERT_EQ(log.size(), 3U);
  for (const RehearsedCall& one : log) {
    ASSERT_TRUE(one.waited);
    EXPECT_GE(seconds_between(start, *one.waited), called);
    EXPECT_LE(seconds_between(start, one.at), called);  // of the call, not of its turn
  }
}

TEST(Rehearsal, CollectivesHaveTheirShapes) {
  Rehearsal rehearsal(table_of(0));
  const auto comm = rehearsal.join(2);
  const Tensor own = tensor_of({1, 2}), whole = tensor_of({0, 1, 2, 3, 4, 5, 6, 7});
  Tensor gathered = Tensor::zeros({8}), part = Tensor::zeros({2});
  comm->all_gather(own, gathered);
  EXPECT_EQ(values_of(gathered), (std::vector<float>{1, 2, 1, 2, 1, 2, 1, 2}));
  comm->reduce_scatter(whole, part);
  EXPECT_EQ(values_of(part), (std::vector<float>{4, 5}));
  comm->scatter(whole, part, 2);
  EXPECT_EQ(values_of(part), (std::vector<float>{4, 5}));
  comm->scatter(whole, part, 0);  // of a root that does not exist
  comm->gather(own, gathered, 2);
  comm->all_to_all(whole, gathered);
  EXPECT_EQ(values_of(gathered), values_of(whole));
  comm->broadcast(part, 0);
  comm->reduce(own, part, 2);
  EXPECT_EQ(values_of(part), (std::vector<float>{1, 2}));
  comm->barrier();
  EXPECT_EQ(comm->split(0)->size(), 4);
}

TEST(Rehearsal, KeepsACoreBusy) {
  CostTable table = table_of(0);
  table.core_s_per_call = 0.01;
  table.core_s_per_byte = 0.01 / 4096;
  Rehearsal rehearsal(table);
  const auto comm = rehearsal.join(0);
  const double before = thread_seconds();
  comm->all_reduce(Tensor::zeros({1024}));
  EXPECT_GE(thread_seconds() - before, 0.02);
}

TEST(Rehearsal, OtherRanksCannotBeHeard) {
  Rehearsal rehearsal(table_of(0));
  const auto comm = rehearsal.join(0);
  EXPECT_THROW(comm->send(tensor_of({1}), 1), CommError);
  EXPECT_THROW(rehearsal.join(0)->receive(tensor_of({1}), 1), CommError);
}

TEST(Rehearsal, GroupsOfAMeshHaveTheirOwnTimes) {
  CostTable table = table_of(0, 0, 12);
  table.groups[{2, 1}] = {{"all_reduce", {{1024, 0.002}}}};
  table.groups[{6, 2}] = {{"all_reduce", {{1024, 0.006}}}};
  Rehearsal rehearsal(table);
  const auto world = rehearsal.join(7);
  Mesh mesh(*world, {.data = 6, .tensor = 2});
  EXPECT_EQ(mesh.data().rank(), 3);
  EXPECT_EQ(mesh.tensor().rank(), 1);
  rehearsal.take_log();
  mesh.data().all_reduce(tensor_of({1}));
  mesh.tensor().all_reduce(tensor_of({1}));
  const std::vector<RehearsedCall> log = rehearsal.take_log();
  ASSERT_EQ(log.size(), 2U);
  EXPECT_EQ(log[0].group, (EvenGroup{6, 2}));
  EXPECT_EQ(log[0].seconds, 0.006);
  EXPECT_EQ(log[1].group, (EvenGroup{2, 1}));
  EXPECT_EQ(log[1].seconds, 0.002);
  EXPECT_THROW(world->split([](int rank) { return std::pair(rank == 7 || rank < 2 ? 0 : 1, 0); }),
               CommError);
}

TEST(Rehearsal, TensorTrainsAsOneOfManyRanks) {
  Rehearsal rehearsal({.world = 64});
  const auto comm = rehearsal.join(63);
  const auto mode = make_mode("tensor:ways=4", {.model = make_model("mlp"), .comm = comm.get()});
  EXPECT_EQ(mode->share().index, 15);
  EXPECT_EQ(mode->share().count, 16);
}

TEST(Rehearsal, DdpTrainsAsOneOfManyRanks) {
  Rehearsal rehearsal(table_of(0, 0, 1000));
  const auto comm = rehearsal.join(999);
  const auto mode = make_mode("ddp", {.model = make_model("mlp"), .comm = comm.get()});
  EXPECT_EQ(mode->share().index, 999);
  EXPECT_EQ(mode->share().count, 1000);
}

}  // namespace
}  // namespace howmany
