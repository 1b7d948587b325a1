// SPDX-License-Identifier: Apache-2.0
#include "benches/comm/collectives.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "benches/comm/cases.h"
#include "benches/comm/collective_timing.h"
#include "benches/common/timing.h"
#include "benches/common/verify.h"
#include "benches/transfer/copies.h"
#include "parallel/launch/launch.h"

namespace howmany::benches {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Collectives, AreRightOverThreadsInEveryDtypeAndNumberOfRanks) {
  for (const int ranks : {1, 2, 3, 4})
    launch_threads(ranks, [&](Comm& comm) {
      for (const std::string_view name : collective_names()) {
        if (name == "send_recv" && ranks == 1) continue;
        for (const Dtype dtype :
             {Dtype::f32, Dtype::f64, Dtype::i32, Dtype::i64, Dtype::u8, Dtype::bf16})
          for (const int64_t bytes : {4, 1000, 40'008}) {
            Collective op(name, dtype, bytes, comm);
            for (int round = 0; round < 2; ++round) {
              op.fill(round);
              op.run();
              op.check(round);
            }
            op.fill_for_timing(1);
            for (int i = 0; i < 3; ++i) op.run();
            op.check(1);
          }
      }
    });
}

// For each operation, one element of the result is changed on one rank. Every rank must report its
// place.
TEST(Collectives, OneWrongElementIsNamedOnEveryRank) {
  for (const std::string_view name : collective_names())
    launch_threads(2, [&](Comm& comm) {
      Collective op(name, Dtype::f32, 4000, comm);
      op.fill(0);
      op.run();
      if (comm.rank() == 0) op.received().mutable_data<float>()[77] += 1;
      try {
        op.check(0);
        ADD_FAILURE() << name << " on rank " << comm.rank();
      } catch (const WrongData& e) {
        EXPECT_THAT(e.what(), AllOf(HasSubstr("wrong data"), HasSubstr(name),
                                    HasSubstr("rank 0 of 2"), HasSubstr("element 77")));
      }
    });
}

TEST(Collectives, ACallThatNeverHappenedIsWrong) {
  for (const std::string_view name : collective_names())
    launch_threads(2, [&](Comm& comm) {
      Collective op(name, Dtype::u8, 4000, comm);
      op.fill(0);
      EXPECT_THROW(op.check(0), WrongData) << name;
    });
}

// Includes many ranks, for which sums have few distinct values. Three results must be wrong: no
// call at all, another rank's part, and the data of an earlier round.
TEST(Collectives, PatternsTellRanksAndRoundsApart) {
  for (const int ranks : {5, 17, 19, 24, 46})
    launch_threads(ranks, [&](Comm& comm) {
      for (const std::string_view name : collective_names()) {
        Collective op(name, Dtype::u8, 1000 * ranks, comm);
        op.fill(0);
        EXPECT_THROW(op.check(0), WrongData) << name << ", " << ranks << " ranks";
        op.fill(0);
        op.run();
        op.check(0);
        EXPECT_THROW(op.check(2), WrongData) << name << ", " << ranks << " ranks";
      }
      Collective op("all_gather", Dtype::u8, 1000 * ranks, comm);
      op.fill(0);
      op.run();
      auto* const all = op.received().mutable_data<uint8_t>();
      std::swap_ranges(all, all + 1000, all + 1000 * (ranks - 1));
      EXPECT_THROW(op.check(0), WrongData) << ranks << " ranks";
    });
}

TEST(Collectives, CountBytesAndFactorsAsNcclTestsDoes) {
  EXPECT_FALSE(bus_factor("all_reduce", 1));
  EXPECT_DOUBLE_EQ(*bus_factor("all_reduce", 2), 1);
  EXPECT_DOUBLE_EQ(*bus_factor("all_reduce", 8), 1.75);
  for (const char* op : {"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"})
    EXPECT_DOUBLE_EQ(*bus_factor(op, 4), 0.75) << op;
  for (const char* op : {"broadcast", "reduce", "send_recv"})
    EXPECT_DOUBLE_EQ(*bus_factor(op, 4), 1) << op;
  EXPECT_EQ(counted_bytes("all_reduce", Dtype::f32, 1024, 3), 1024);
  EXPECT_EQ(counted_bytes("reduce", Dtype::f32, 1024, 3), 1024);
  EXPECT_EQ(counted_bytes("all_gather", Dtype::f32, 1024, 3), 1020);
  EXPECT_EQ(counted_bytes("all_gather", Dtype::f64, 4, 2), 16);
}

TEST(CollectiveTiming, LeavesSamplesOfBothKindsOnRightData) {
  launch_threads(2, [&](Comm& comm) {
    for (const std::string_view name : collective_names()) {
      Collective op(name, Dtype::f32, 4096, comm);
      const CollectiveTimes times = time_collective(comm, op, 0.05);
      EXPECT_GE(times.isolated.seconds.size(), 5u);
      EXPECT_GE(times.chain, 2);
      for (const double s : times.isolated.seconds) EXPECT_GT(s, 0);
    }
    const OverlapTimes overlap = time_overlap(comm, 1 << 16, Device{}, 0.05);
    EXPECT_GT(overlap.comm_beside, 0);
    EXPECT_GT(overlap.gemm_beside, 0);
    EXPECT_GE(overlap.gemms, 1);
  });
}

TEST(CollectiveTiming, NamesTheRankThatIsSlowByItself) {
  launch_threads(4, [&](Comm& comm) {
    const RankPaces paces = compare_paces(comm, comm.rank() == 1 ? 6.0 : 2.0 + comm.rank());
    EXPECT_EQ(paces.slowest, 1);
    EXPECT_DOUBLE_EQ(paces.seconds, 6);
    EXPECT_DOUBLE_EQ(paces.of_others, 6.0 / 4);  // divided by the median of 2, 4 and 5
    const RankPaces timed = time_paces(comm, Device{});
    EXPECT_GT(timed.seconds, 0);
    EXPECT_GE(timed.of_others, 1);
  });
}

TEST(CollectiveTiming, TimesAsManyCallsAsAskedHoweverLittleTimeThereIs) {
  launch_threads(2, [&](Comm& comm) {
    for (const int least : {3, kCallsForAnInterval}) {
      Collective op("all_reduce", Dtype::f32, 1 << 20, comm);
      EXPECT_EQ(time_collective(comm, op, 1e-9, least).isolated.seconds.size(),
                static_cast<size_t>(least));
    }
  });
}

TEST(CollectiveTiming, OneCallIsTimedWhereOneIsAskedForAndThereIsNoTimeForMore) {
  launch_threads(2, [&](Comm& comm) {
    Collective op("all_gather", Dtype::f32, 1 << 20, comm);
    const CollectiveTimes times = time_collective(comm, op, 1e-9, 1);
    EXPECT_EQ(times.isolated.seconds.size(), 1u);
    EXPECT_TRUE(times.pipelined.seconds.empty());
    EXPECT_DOUBLE_EQ(times.cost.call, times.isolated.seconds[0]);
    EXPECT_GT(times.cost.fixed, 0);
    EXPECT_NO_THROW(op.check(2));
  });
}

BackendFlags flags_for(std::vector<std::string> backends) {
  BackendFlags flags;
  flags.backends = std::move(backends);
  flags.work.oversubscribe = true;
  return flags;
}

TEST(BackendCases, AreDistinctAndWithinTheSizesAsked) {
  BackendFlags flags = flags_for({"local"});
  flags.min_bytes = 1000;
  flags.max_bytes = 100'000;
  std::set<std::string> names;
  for (const BackendCase& c : backend_cases(flags, {})) {
    EXPECT_TRUE(names.insert(c.name).second) << c.name;
    if (!c.is_collective()) continue;
    EXPECT_GE(c.bytes, 1000 - 8);
    EXPECT_LE(c.bytes, 100'000);
  }
  EXPECT_TRUE(names.contains("backend/all_reduce/local/dtype:f32/devices:2/bytes:4096"));
}

TEST(BackendCases, OfALauncherAreOverWhatItsProcessesCanUse) {
  if (std::ranges::count(comm_names(), "gloo") == 0) GTEST_SKIP() << "built without Gloo";
  BackendFlags flags = flags_for({});
  flags.devices = "cpu:0";  // on each host
  const Place place{.rank = 1,
                    .world = 2,
                    .rendezvous = "tcp:127.0.0.1:1",
                    .launcher = "torchrun",
                    .local_world = 1};
  const std::vector<BackendCase> cases = backend_cases(flags, place);
  EXPECT_FALSE(cases.empty());
  for (const BackendCase& c : cases) {
    EXPECT_EQ(c.work.backend, "gloo") << "local is threads, mpi not torchrun's, nccl for GPUs";
    EXPECT_EQ(c.work.count(), 2);
  }
}

TEST(BackendCases, HaveEveryDtypeAndTheNamedOperations) {
  BackendFlags flags = flags_for({"local"});
  flags.dtypes = {"f32", "bf16"};
  flags.min_bytes = flags.max_bytes = 4096;
  const auto names = [&] {
    std::set<std::string> all;
    for (const BackendCase& c : backend_cases(flags, {})) all.insert(c.name);
    return all;
  };
  const std::string gather = "backend/all_gather/local/dtype:bf16/devices:2/bytes:4096";
  const std::string overlap = "backend/overlap/local/dtype:f32/devices:2/bytes:4096";
  EXPECT_TRUE(names().contains(gather) && names().contains(overlap));
  flags.ops = {"all_gather"};
  EXPECT_TRUE(names().contains(gather) && !names().contains(overlap));
  flags.ops = {"overlap"};
  EXPECT_TRUE(!names().contains(gather) && names().contains(overlap));
}

TEST(BackendCases, RefuseWhatIsUnknown) {
  EXPECT_THROW(backend_cases(flags_for({"gluu"}), {}), std::invalid_argument);
  BackendFlags pace = flags_for({"local"});
  pace.ops = {"pace"};
  EXPECT_THROW(backend_cases(pace, {}), std::invalid_argument) << "no operation";
  BackendFlags flags = flags_for({"local"});
  flags.ops = {"all_reduse"};
  EXPECT_THROW(backend_cases(flags, {}), std::invalid_argument);
  flags = flags_for({"local"});
  flags.dtypes = {"f32", "f16"};
  EXPECT_THROW(backend_cases(flags, {}), std::invalid_argument);
}

TEST(BackendCases, BucketsHoldAllGradientsAndTheLoss) {
  const ModelSpec model = make_model("resnet18");
  const std::vector<int64_t> buckets = model_buckets("resnet18").bytes;
  const int64_t sum = std::accumulate(buckets.begin(), buckets.end(), int64_t{0});
  EXPECT_GE(sum, 4 * parameter_count(*model.layer));
  EXPECT_LE(sum, 4 * parameter_count(*model.layer) + 64 * 200);
  EXPECT_GT(buckets.size(), 1u);
  EXPECT_EQ(model_buckets("simple_net").bytes.size(), 1u);
}

// The buckets that torch 2.13 (_compute_bucket_assignment_by_size) makes of torchvision's models.
// Here each parameter is at the start of a cache line, and the last bucket holds the loss too.
TEST(BackendCases, BucketsAreThoseOfTorch) {
  EXPECT_EQ(model_buckets("resnet18").bytes, (std::vector<int64_t>{2052032, 28852224, 15853828}));
  EXPECT_EQ(model_buckets("resnet50").bytes,
            (std::vector<int64_t>{8196032, 31502336, 26255360, 26550272, 9724164}));
}

TEST(BackendCases, BucketsOfAnyOtherModelCanBeGiven) {
  const ModelBuckets buckets = model_buckets("train.py=1052672,4239400");
  EXPECT_EQ(buckets.name, "train.py");
  EXPECT_EQ(buckets.bytes, (std::vector<int64_t>{1052672, 4239400}));
  EXPECT_EQ(model_buckets("mlp:sizes=784-10").name, "mlp:sizes=784-10");
  for (const char* bad : {"x=", "=4", "x=4,", "x=4,y", "x=-4", "x=0", "x=9999999999999999999"})
    EXPECT_THROW(model_buckets(bad), std::invalid_argument) << bad;
}

TEST(Copies, ArriveAndTakeTime) {
  const TimingOptions few{.budget_seconds = 0.02, .max_iterations = 20};
  for (const Samples& samples : {time_copy(1, 100, few), time_copy(2, 100'001, few),
                                 time_small_copies(16, 100, few), time_loopback(100'000, few)}) {
    EXPECT_GE(samples.seconds.size(), 5u);
    for (const double s : samples.seconds) EXPECT_GT(s, 0);
  }
}

}  // namespace
}  // namespace howmany::benches
