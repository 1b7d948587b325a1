// SPDX-License-Identifier: Apache-2.0
// timeout: 300
#include "parallel/launch/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "core/base/private_folder.h"
#include "core/gpu/event.h"
#include "core/gpu/gpu.h"
#include "core/ops/ops.h"
#include "core/tensor/precision.h"
#include "parallel/comm/comm_list.h"
#include "tests/support/comm_claims.h"
#include "tests/support/message_of.h"
#include "tests/support/pairs.h"
#include "tests/support/tensors.h"

namespace howmany {
namespace {

using ::testing::HasSubstr;
using testing_support::close;
using testing_support::Draw;

struct Group {
  std::string_view backend;
  int world;
};
void PrintTo(const Group& g, std::ostream* out) { *out << g.backend << "/" << g.world; }

std::vector<Group> groups(std::vector<int> worlds) {
  std::vector<Group> all;
  if (testing_support::pairs_only()) worlds = {2, 3};
  for (const int world : worlds)
    for (const std::string_view backend : thread_comm_names(world)) all.push_back({backend, world});
  return all;
}

std::string name_of_group(const ::testing::TestParamInfo<Group>& info) {
  return fmt::format("{}_{}", info.param.backend, info.param.world);
}

class EveryComm : public ::testing::TestWithParam<Group> {
 protected:
  std::atomic<int> finished_ = 0;
  int world() const { return GetParam().world; }
  void run(const std::function<void(Comm&)>& body) {
    launch_threads(world(), body, GetParam().backend);
  }
};
INSTANTIATE_TEST_SUITE_P(All, EveryComm, ::testing::ValuesIn(groups({1, 2, 3, 4})), name_of_group);

class EveryCommWithPeers : public EveryComm {};
INSTANTIATE_TEST_SUITE_P(All, EveryCommWithPeers, ::testing::ValuesIn(groups({2, 3, 4})),
                         name_of_group);

TEST_P(EveryComm, MovesEveryDtypeAndSize) { run(check_every_dtype_and_size); }

TEST_P(EveryComm, MovesWhatIsOnGpus) {
  if (gpu::count() < world()) GTEST_SKIP() << gpu::count() << " GPUs are here";
  run([](Comm& comm) { check_on(comm, {DeviceType::cuda, comm.rank()}); });
}

// As for ranks with several GPUs.
TEST_P(EveryComm, MovesWhatIsOnGpusOfOthers) {
  if (gpu::count() < 2 || gpu::count() < world()) GTEST_SKIP() << gpu::count() << " GPUs are here";
  run([](Comm& comm) { check_on(comm, {DeviceType::cuda, (comm.rank() + 1) % gpu::count()}); });
}

// A bf16 copy is cached with weights.
TEST_P(EveryComm, WritesToGpusAreReadByTheNextProduct) {
  if (gpu::count() < world()) GTEST_SKIP() << gpu::count() << " GPUs are here";
  run([](Comm& comm) {
    const PrecisionScope scope(Precision::bf16);
    const Device gpu{DeviceType::cuda, comm.rank()};
    Draw draw(static_cast<uint64_t>(comm.rank()));
    const Tensor x = draw.normal({3, 16}).to(gpu);
    Tensor w = draw.normal({16, 8}).to(gpu);
    const auto check = [&] {
      EXPECT_TRUE(close(ops::matmul(x, w), ops::matmul(x.clone(), w.clone()), 0));
    };
    check();
    comm.broadcast(w, 0);
    check();
    comm.all_reduce(w);
    check();
  });
}

TEST_P(EveryComm, ReducesToTheSameBitsOnEveryRank) { run(check_same_bits); }

TEST_P(EveryComm, RunsAsynchronousCallsInOrder) { run(check_asynchronous_order); }

TEST_P(EveryComm, GathersAndScattersPartsAsynchronously) { run(check_asynchronous_parts); }

TEST_P(EveryCommWithPeers, PassesMessagesByPeerAndTag) { run(check_messages); }

TEST_P(EveryCommWithPeers, MessagesOfOneTagKeepTheirOrder) { run(check_message_order); }

TEST_P(EveryComm, SplitsIntoGroupsThatWorkAlone) { run(check_splits); }

TEST_P(EveryCommWithPeers, GroupsWorkAtTheSameTime) { run(check_groups_at_once); }

TEST_P(EveryComm, RefusesBadArgumentsWithoutHarm) { run(check_refusals); }

TEST_P(EveryCommWithPeers, FailsOnEveryRankWhenOneNeverArrives) {
  run([this](Comm& comm) {
    comm.set_timeout(std::chrono::milliseconds(300));
    const int absent = world() - 1;
    const auto start = std::chrono::steady_clock::now();
    std::string text;
    Tensor t = Tensor::full({1000}, 1);
    if (comm.rank() != absent) {
      text = message_of<CommError>([&] { comm.all_reduce(t); });
      EXPECT_THAT(text, HasSubstr("[all_reduce]"));
      EXPECT_THAT(text, HasSubstr(fmt::format("rank {} of {}", comm.rank(), world())));
      EXPECT_THAT(text, HasSubstr(fmt::format("peer {} ", absent)));
      EXPECT_TRUE(comm.failed());
      EXPECT_EQ(message_of<CommError>([&] { comm.barrier(); }), text)
          << "the first error is the one kept";
      EXPECT_EQ(message_of<CommError>([&] { comm.all_reduce_async(t).wait(); }), text);
    }
    // Stays until all others have failed, and makes no calls of the Comm.
    finished_.fetch_add(1);
    while (finished_ < world()) std::this_thread::yield();
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  });
}

TEST_P(EveryCommWithPeers, FailsAtOnceWhenAPeerThrows) {
  const auto start = std::chrono::steady_clock::now();
  std::atomic<int> told = 0;
  try {
    run([&](Comm& comm) {
      if (comm.rank() == 1) throw std::runtime_error("rank 1 is out of luck");
      Tensor t = Tensor::full({1000}, 1);
      const std::string text = message_of<CommError>([&] { comm.all_reduce(t); });
      EXPECT_THAT(text, HasSubstr("peer 1 failed: rank 1 is"));
      ++told;
    });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "rank 1 is out of luck");
  }
  EXPECT_EQ(told, world() - 1);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST_P(EveryCommWithPeers, FailsAtOnceWhenAPeerHasLeft) {
  const auto start = std::chrono::steady_clock::now();
  run([&](Comm& comm) {
    if (comm.rank() == 1) return comm.barrier();
    const std::string text = message_of<CommError>([&] {
      for (;;) comm.barrier();
    });
    EXPECT_THAT(text, HasSubstr("peer 1 "));
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST_P(EveryCommWithPeers, AbandonedWorkHoldsNobodyUp) {
  EXPECT_THROW(run([](Comm& comm) {
                 const auto group = comm.split(0);
                 if (comm.rank() == 0) {
                   const Work dropped = group->all_reduce_async(Tensor::full({1000}, 1));
                   throw std::runtime_error("out");
                 }
                 group->barrier();
                 group->barrier();
               }),
               std::exception);
}

#if HM_HAVE_NCCL
// NCCL refuses two ranks on one GPU, so this is all that one GPU can try of the library.
TEST(OneRank, of_nccl_calls_the_library) {
  if (gpu::count() == 0) GTEST_SKIP() << gpu::unavailable();
  const PrivateFolder folder;
  const auto engine =
      comms::nccl({.rendezvous = "file:" + folder.path(), .gpu = 0}, std::chrono::seconds(60));
  ASSERT_EQ(engine->native_device().str(), "cuda:0");
  const Tensor host = Tensor::from<float>({1, 2, 3, 4}, {4});
  Tensor sum = host.to(engine->native_device());
  const Tensor sent = sum.clone();
  Tensor received = Tensor::zeros({4}, Dtype::f32, engine->native_device());
  engine->set_start_event(gpu::record_event(0));
  engine->all_reduce(sum, ReduceOp::sum);
  engine->all_to_all(sent, received);  // a message to itself
  engine->finish();
  EXPECT_EQ(engine->submitted(), 2);
  for (const Tensor* t : {&sum, &received})
    EXPECT_TRUE(std::ranges::equal(t->to(Device{}).values<float>(), host.values<float>()));
}
#endif

}  // namespace
}  // namespace howmany
