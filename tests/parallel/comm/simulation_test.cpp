// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/simulation.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "parallel/modes/mesh.h"
#include "parallel/modes/mode.h"
#include "tests/support/training.h"

namespace howmany {
namespace {

using namespace testing_support;

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

Tensor tensor_of(const std::vector<float>& values) {
  return Tensor::from<float>(values, {static_cast<int64_t>(values.size())});
}

std::vector<float> values_of(const Tensor& t) {
  const auto values = t.values<float>();
  return {values.begin(), values.end()};
}

TEST(Simulation, TimesAreThoseOfTheTable) {
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

TEST(Simulation, ACallTakesItsTimeOnTheClock) {
  const Simulation world(table_of(20));
  const auto clock = std::make_shared<VirtualClock>();
  const auto comm = world.join(1, clock);
  EXPECT_EQ(comm->rank(), 1);
  EXPECT_EQ(comm->size(), 4);
  EXPECT_EQ(comm->backend(), "simulation");
  clock->charge(3);
  comm->all_reduce(tensor_of({1, 2, 3}));
  EXPECT_DOUBLE_EQ(clock->now(), 23);
  const std::vector<SimulatedCall> log = world.take_log();
  ASSERT_EQ(log.size(), 1U);
  EXPECT_EQ(log[0].kind, "all_reduce");
  EXPECT_EQ(log[0].bytes, 12);
  EXPECT_EQ(log[0].group, (EvenGroup{4, 1}));
  EXPECT_TRUE(world.take_log().empty());
}

TEST(Simulation, QueuedCallsFollowEachOtherAndHideBehindWork) {
  const Simulation world(table_of(20));
  const auto clock = std::make_shared<VirtualClock>();
  const auto comm = world.join(0, clock);
  const Tensor a = tensor_of({1}), b = tensor_of({2}), c = tensor_of({3});
  std::vector<Work> all = {comm->all_reduce_async(a), comm->all_reduce_async(b)};
  clock->charge(30);
  all[0].wait();
  EXPECT_DOUBLE_EQ(clock->now(), 30);
  all[1].wait();
  EXPECT_DOUBLE_EQ(clock->now(), 40);
  clock->charge(5);
  comm->all_reduce_async(c).wait();
  EXPECT_DOUBLE_EQ(clock->now(), 65);
}

TEST(Simulation, CollectivesHaveTheirShapes) {
  Simulation world(table_of(0));
  const auto comm = world.join(2);
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

TEST(Simulation, ACallTakesCoreTimeOnce) {
  CostTable table = table_of(0);
  table.core_s_per_call = 1;
  table.core_s_per_byte = 1.0 / 4096;
  const Simulation world(table);
  const auto clock = std::make_shared<VirtualClock>();
  const auto comm = world.join(0, clock);
  comm->all_reduce(Tensor::zeros({1024}));
  EXPECT_DOUBLE_EQ(clock->now(), 2);
  Work queued = comm->all_reduce_async(Tensor::zeros({1024}));
  queued.finish();
  queued.wait();
  EXPECT_DOUBLE_EQ(clock->now(), 4);
}

TEST(Simulation, OtherRanksCannotBeHeard) {
  Simulation world(table_of(0));
  const auto comm = world.join(0);
  EXPECT_THROW(comm->send(tensor_of({1}), 1), CommError);
  EXPECT_THROW(world.join(0)->receive(tensor_of({1}), 1), CommError);
}

TEST(Simulation, GroupsOfAMeshHaveTheirOwnTimes) {
  CostTable table = table_of(0, 0, 12);
  table.groups[{2, 1}] = {{"all_reduce", {{1024, 0.002}}}};
  table.groups[{6, 2}] = {{"all_reduce", {{1024, 0.006}}}};
  const Simulation world(table);
  const auto clock = std::make_shared<VirtualClock>();
  const auto comm = world.join(7, clock);
  Mesh mesh(*comm, {.data = 6, .tensor = 2});
  EXPECT_EQ(mesh.data().rank(), 3);
  EXPECT_EQ(mesh.tensor().rank(), 1);
  world.take_log();
  clock->restart(0);
  mesh.data().all_reduce(tensor_of({1}));
  EXPECT_DOUBLE_EQ(clock->now(), 0.006);
  mesh.tensor().all_reduce(tensor_of({1}));
  EXPECT_DOUBLE_EQ(clock->now(), 0.008);
  const std::vector<SimulatedCall> log = world.take_log();
  ASSERT_EQ(log.size(), 2U);
  EXPECT_EQ(log[0].group, (EvenGroup{6, 2}));
  EXPECT_EQ(log[1].group, (EvenGroup{2, 1}));
  EXPECT_THROW(comm->split([](int rank) { return std::pair(rank == 7 || rank < 2 ? 0 : 1, 0); }),
               CommError);
}

TEST(Simulation, TensorTrainsAsOneOfManyRanks) {
  Simulation world({.world = 64});
  const auto comm = world.join(63);
  const auto mode = make_mode("tensor:ways=4", {.model = make_model("mlp"), .comm = comm.get()});
  EXPECT_EQ(mode->share().index, 15);
  EXPECT_EQ(mode->share().count, 16);
}

// Ranks of a world that exist, each with its clock.
class ExistingRanks {
 public:
  ExistingRanks(const Simulation& world, const std::vector<int>& ranks) {
    for (size_t i = 0; i < ranks.size(); ++i) clocks_.push_back(std::make_shared<VirtualClock>());
    comms_ = world.join(ranks, clocks_);
  }

  // Calls body(comm, clock) on a thread for each, and returns their clocks.
  std::vector<double> operator()(const std::function<void(Comm&, VirtualClock&)>& body) {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < clocks_.size(); ++i)
      threads.emplace_back([&, i] { body(*comms_[i], *clocks_[i]); });
    threads.clear();
    std::vector<double> ends;
    for (const auto& clock : clocks_) ends.push_back(clock->now());
    return ends;
  }

 private:
  std::vector<std::shared_ptr<VirtualClock>> clocks_;
  std::vector<std::unique_ptr<Comm>> comms_;
};

CostTable table_of_messages(int world) {
  CostTable table = table_of(100, 0, world);
  table.groups[{world, 1}]["send"] = {{1, 200}, {4, 1000}};  // 200 of latency
  table.groups[{world, 1}]["send_between"] = {{1024, 5000}};
  table.groups[{2, 1}] = table.groups[{world, 1}];
  table.devices_per_node = 2;
  return table;
}

TEST(Simulation, AMessageArrivesAfterItsTime) {
  const Simulation world(table_of_messages(3));
  ExistingRanks run(world, {0, 1, 2});
  const std::vector<double> ends = run([](Comm& comm, VirtualClock& clock) {
    const Tensor t = tensor_of({static_cast<float>(comm.rank())});
    if (comm.rank() > 0) comm.receive(t, comm.rank() - 1);
    EXPECT_EQ(values_of(t), std::vector<float>{0});
    clock.charge(10'000);
    if (comm.rank() < 2) comm.send(t, comm.rank() + 1);
  });
  EXPECT_DOUBLE_EQ(ends[0], 11'000);
  EXPECT_DOUBLE_EQ(ends[1], 26'000);  // rank 2 is on another node
  EXPECT_DOUBLE_EQ(ends[2], 36'000);
}

TEST(Simulation, WorkHidesATransferThatWasExpected) {
  const Simulation world(table_of_messages(2));
  ExistingRanks run(world, {0, 1});
  const std::vector<double> ends = run([](Comm& comm, VirtualClock& clock) {
    const Tensor first = tensor_of({1}), second = tensor_of({2});
    if (comm.rank() == 0) {
      Work one = comm.send_async(first, 1), two = comm.send_async(second, 1);
      clock.charge(500);
      EXPECT_FALSE(one.ready());
      one.finish();
      EXPECT_TRUE(one.ready());
      two.finish();
    } else {
      Work one = comm.receive_async(first, 0), two = comm.receive_async(second, 0);
      one.finish();
      clock.charge(10'000);
      two.finish();
    }
  });
  EXPECT_DOUBLE_EQ(ends[0], 1'800);   // 200 + 800 + 800
  EXPECT_DOUBLE_EQ(ends[1], 11'000);  // the second arrived meanwhile
}

// As of a middle stage: it sends to both neighbours over one link.
TEST(Simulation, MessagesToTwoRanksShareTheLink) {
  CostTable table = table_of_messages(3);
  table.devices_per_node = 0;
  const Simulation world(table);
  ExistingRanks run(world, {0, 1, 2});
  const std::vector<double> ends = run([](Comm& comm, VirtualClock& clock) {
    const Tensor t = tensor_of({1});
    const auto pair = comm.split(comm.rank() < 2 ? 0 : 1), other = comm.split(comm.rank() > 0);
    const double begin = clock.now();
    if (comm.rank() == 0) return pair->receive(t, 1), clock.charge(-begin);
    if (comm.rank() == 2) return other->receive(t, 0), clock.charge(-begin);
    Work one = pair->send_async(t, 0), two = other->send_async(t, 1);
    one.finish();
    two.finish();
    clock.charge(-begin);
  });
  EXPECT_DOUBLE_EQ(std::max(ends[0], ends[2]), 1'800);
  EXPECT_DOUBLE_EQ(std::min(ends[0], ends[2]), 1'000);
}

TEST(VirtualClock, AMessageTakesTheFirstGapOfTheLink) {
  VirtualClock clock;
  EXPECT_EQ(clock.reserve_link(5, 2), 5);
  EXPECT_EQ(clock.reserve_link(1, 3), 1);
  EXPECT_EQ(clock.reserve_link(1, 1), 4);
  EXPECT_EQ(clock.reserve_link(1, 2), 7);
  clock.restart(20);
  EXPECT_EQ(clock.reserve_link(0, 9), 0) << "earlier messages are forgotten";
}

TEST(VirtualClock, WaitsOnlyMoveItForward) {
  VirtualClock clock;
  clock.restart(20);
  clock.charge(3);
  EXPECT_EQ(clock.now(), 23);
  clock.wait_until(10);
  EXPECT_EQ(clock.now(), 23);
  clock.wait_until(30);
  EXPECT_EQ(clock.now(), 30);
}

TEST(Simulation, CollectivesBeginWithTheLastRankHere) {
  const Simulation world(table_of(1000, 0, 4));
  ExistingRanks run(world, {1, 3});  // 0 and 2 do not exist
  const std::vector<double> ends = run([](Comm& comm, VirtualClock& clock) {
    clock.charge(comm.rank() * 1000);
    const Tensor sum = tensor_of({static_cast<float>(comm.rank())});
    comm.all_reduce(sum);
    EXPECT_EQ(values_of(sum), std::vector<float>{4});
    const Tensor all = tensor_of({0, 0, 0, 0});
    comm.all_gather(tensor_of({static_cast<float>(comm.rank())}), all);
    EXPECT_EQ(all.values<float>()[1], 1);
    EXPECT_EQ(all.values<float>()[3], 3);
  });
  for (const double end : ends) EXPECT_DOUBLE_EQ(end, 5'000);
}

TEST(Simulation, AFailureEndsTheOthers) {
  const Simulation world(table_of_messages(2));
  ExistingRanks run(world, {0, 1});
  run([](Comm& comm, VirtualClock&) {
    if (comm.rank() == 0) return comm.abort("no reason");
    EXPECT_THROW(comm.receive(tensor_of({1}), 0), CommError);
  });
}

// All stages exist, so the values are true.
TEST(Simulation, APipelineTrainsAsSingle) {
  const std::string model = "mlp:sizes=13-17-9-7-5";
  const Curve single = train(*make_mode("single", {.model = make_model(model)}), model);
  for (const char* const text : {"pipeline", "pipeline:schedule=zb,micro_batches=3"}) {
    const Simulation world(table_of_messages(3));
    ExistingRanks run(world, {0, 1, 2});
    run([&](Comm& comm, VirtualClock&) {
      const auto mode = make_mode(text, {.model = make_model(model), .comm = &comm});
      const Curve curve = train(*mode, model);
      for (size_t step = 0; step < single.losses.size(); ++step)
        EXPECT_NEAR(curve.losses[step], single.losses[step], 1e-5);
      if (comm.rank() > 0) return;
      for (const auto& [name, value] : single.values)
        EXPECT_TRUE(close(curve.values.at(name), value, 1e-5)) << name;
    });
  }
}

TEST(Simulation, OneReplicaOfAHybridTrains) {
  EXPECT_EQ(howmany::stages_of("hybrid:stages=2", 64), 2);
  EXPECT_EQ(howmany::stages_of("hybrid:ways=2", 12), 2);
  EXPECT_EQ(howmany::stages_of("hybrid:across=model", 12), 1);
  EXPECT_EQ(howmany::stages_of("pipeline", 5), 5);
  EXPECT_EQ(howmany::stages_of("ddp", 5), 1);
  CostTable table = table_of(100, 0, 64);
  table.groups[{32, 1}] = table.groups[{2, 32}] = table.groups[{64, 1}];
  table.groups[{2, 32}]["send"] = {{1024, 1000}};
  const Simulation world(table);
  ExistingRanks run(world, {0, 32});
  const std::vector<double> ends = run([&](Comm& comm, VirtualClock&) {
    const auto mode = make_mode("hybrid:stages=2,micro_batches=1",
                                {.model = make_model("mlp:sizes=13-17-9-7-5"), .comm = &comm});
    EXPECT_EQ(mode->share().count, 32);
    const Batch whole = global_batch(make_model("mlp:sizes=13-17-9-7-5"), 64, 0);
    mode->step(rows_of(whole, mode->share())).value();
  });
  // The last gradients are summed over replicas after two messages; so are losses over stages.
  EXPECT_GE(ends[0], 2'200);
}

TEST(Simulation, DdpTrainsAsOneOfManyRanks) {
  Simulation world(table_of(0, 0, 1000));
  const auto comm = world.join(999);
  const auto mode = make_mode("ddp", {.model = make_model("mlp"), .comm = comm.get()});
  EXPECT_EQ(mode->share().index, 999);
  EXPECT_EQ(mode->share().count, 1000);
}

}  // namespace
}  // namespace howmany
