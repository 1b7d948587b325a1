// timeout: 300
#include "parallel/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

namespace howmany {
namespace {

using ::testing::HasSubstr;

// Element i of what `rank` brings: small integers, so that sums are exact in every dtype.
int value(int rank, int64_t i) { return static_cast<int>((i * 7 + rank * 3) % 11) + 1; }

template <typename T, typename At>
Tensor filled(int64_t n, const At& at) {
  Tensor t = Tensor::empty({n}, dtype_of<T>());
  T* const p = t.mutable_data<T>();
  for (int64_t i = 0; i < n; ++i) p[i] = static_cast<T>(at(i));
  return t;
}

template <typename T, typename At>
void expect_values(const Tensor& t, const At& at) {
  const T* const p = t.data<T>();
  for (int64_t i = 0; i < t.numel(); ++i)
    if (p[i] != static_cast<T>(at(i)))
      FAIL() << "element " << i << " of " << t.numel() << ": " << +p[i] << " is not " << at(i);
}

template <typename OfRank>
int reduced(ReduceOp op, int world, const OfRank& of_rank) {
  int result = of_rank(0);
  for (int r = 1; r < world; ++r) {
    if (op == ReduceOp::sum) result += of_rank(r);
    if (op == ReduceOp::max) result = std::max(result, of_rank(r));
    if (op == ReduceOp::min) result = std::min(result, of_rank(r));
  }
  return result;
}

template <typename T>
void check_collectives(Comm& comm, int64_t n) {
  const int world = comm.size(), rank = comm.rank();
  const auto mine = [&](int64_t i) { return value(rank, i); };
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min}) {
    const auto expected = [&](int64_t i) {
      return reduced(op, world, [&](int r) { return value(r, i); });
    };
    Tensor t = filled<T>(n, mine);
    comm.all_reduce(t, op);
    expect_values<T>(t, expected);

    Tensor part = Tensor::zeros({n}, dtype_of<T>());
    comm.reduce_scatter(filled<T>(n * world, mine), part, op);
    expect_values<T>(part, [&](int64_t i) { return expected(rank * n + i); });
  }
  const Tensor part = filled<T>(n, mine), whole = filled<T>(n * world, mine);
  const auto of_every_rank = [&](int64_t i) { return value(static_cast<int>(i / n), i % n); };
  Tensor all = Tensor::zeros({world, n}, dtype_of<T>());
  comm.all_gather(part, all);
  expect_values<T>(all, of_every_rank);

  Tensor exchanged = Tensor::zeros({world, n}, dtype_of<T>());
  comm.all_to_all(whole, exchanged);
  expect_values<T>(exchanged,
                   [&](int64_t i) { return value(static_cast<int>(i / n), rank * n + i % n); });

  for (int root = 0; root < world; ++root) {
    Tensor t = filled<T>(n, mine);
    comm.broadcast(t, root);
    expect_values<T>(t, [&](int64_t i) { return value(root, i); });

    Tensor gathered = rank == root ? Tensor::zeros({world, n}, dtype_of<T>()) : Tensor();
    comm.gather(part, gathered, root);
    if (rank == root) expect_values<T>(gathered, of_every_rank);

    Tensor scattered = Tensor::zeros({n}, dtype_of<T>());
    comm.scatter(rank == root ? whole : Tensor(), scattered, root);
    expect_values<T>(scattered, [&](int64_t i) { return value(root, rank * n + i); });
  }
}

struct Group {
  std::string_view backend;
  int world;
};
void PrintTo(const Group& g, std::ostream* out) { *out << g.backend << "/" << g.world; }

std::vector<Group> groups(std::vector<int> worlds) {
  std::vector<Group> all;
  for (const std::string_view backend : comm_names())
    for (const int world : worlds) all.push_back({backend, world});
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
  // The text of the CommError that body ends with.
  static std::string failure_of(const std::function<void()>& body) {
    try {
      body();
    } catch (const CommError& e) {
      return e.what();
    }
    ADD_FAILURE() << "no CommError";
    return "";
  }
};
INSTANTIATE_TEST_SUITE_P(All, EveryComm, ::testing::ValuesIn(groups({1, 2, 3, 4})), name_of_group);

class EveryCommWithPeers : public EveryComm {};
INSTANTIATE_TEST_SUITE_P(All, EveryCommWithPeers, ::testing::ValuesIn(groups({2, 3, 4})),
                         name_of_group);

TEST_P(EveryComm, MovesEveryDtypeAndSize) {
  run([](Comm& comm) {
    for (const int64_t n : {0, 1, 5, 4099}) {
#define X(name, type) check_collectives<type>(comm, n);
      HM_DTYPES(X)
#undef X
    }
    check_collectives<float>(comm, 300'007);
    comm.barrier();
  });
}

TEST_P(EveryComm, ReducesToTheSameBitsOnEveryRank) {
  run([](Comm& comm) {
    const int64_t n = 1'000'003;
    Tensor t = Tensor::empty({n});
    for (int64_t i = 0; i < n; ++i)
      t.mutable_data<float>()[i] = 1.0F / static_cast<float>(value(comm.rank(), i) + i % 97);
    comm.all_reduce(t);
    Tensor first = t.clone();
    comm.broadcast(first, 0);
    EXPECT_EQ(std::memcmp(t.raw(), first.raw(), static_cast<size_t>(t.bytes())), 0);
  });
}

TEST_P(EveryComm, RunsAsynchronousCallsInOrder) {
  run([](Comm& comm) {
    std::vector<Work> works;
    Tensor t = Tensor::full({1000}, 1);
    for (int i = 0; i < 5; ++i) works.push_back(comm.all_reduce_async(t));
    Tensor last = Tensor::full({3}, comm.rank());
    comm.broadcast(last, 0);  // waits behind the queue
    EXPECT_TRUE(works.back().ready());
    for (Work& work : works) work.wait();
    const double expected = std::pow(comm.size(), 5);
    for (const float v : t.values<float>()) ASSERT_EQ(v, expected);
    for (const float v : last.values<float>()) ASSERT_EQ(v, 0);
  });
}

TEST_P(EveryCommWithPeers, PassesMessagesByPeerAndTag) {
  run([](Comm& comm) {
    const int next = (comm.rank() + 1) % comm.size();
    const int previous = (comm.rank() + comm.size() - 1) % comm.size();
    for (const int64_t n : {0, 1, 70'001}) {
      const Tensor mine = filled<int32_t>(n, [&](int64_t i) { return value(comm.rank(), i); });
      Tensor theirs = Tensor::zeros({n}, Dtype::i32);
      if (comm.rank() == 0) comm.send(mine, next, 7);
      comm.receive(theirs, previous, 7);
      if (comm.rank() != 0) comm.send(mine, next, 7);
      expect_values<int32_t>(theirs, [&](int64_t i) { return value(previous, i); });
    }
  });
}

TEST_P(EveryCommWithPeers, MessagesOfOneTagKeepTheirOrder) {
  run([](Comm& comm) {
    for (int i = 0; i < 20; ++i) {
      Tensor t = Tensor::full({3}, i);
      if (comm.rank() == 0) comm.send(t, 1);
      if (comm.rank() == 1) comm.receive(t = Tensor::zeros({3}), 0);
      ASSERT_EQ(t.data<float>()[2], static_cast<float>(i));
    }
  });
}

TEST_P(EveryComm, SplitsIntoGroupsThatWorkAlone) {
  run([](Comm& comm) {
    const auto half = comm.split(comm.rank() % 2, -comm.rank());
    ASSERT_EQ(half->size(), (comm.size() + 1 - comm.rank() % 2) / 2);
    Tensor ranks = Tensor::empty({half->size()}, Dtype::i32);
    half->all_gather(Tensor::from<int32_t>({comm.rank()}, {1}), ranks);
    for (int i = 1; i < half->size(); ++i)  // a negative key turns the order around
      EXPECT_EQ(ranks.data<int32_t>()[i], ranks.data<int32_t>()[i - 1] - 2);

    const auto none = comm.split(comm.rank() == 0 ? -1 : 0);
    EXPECT_EQ(none == nullptr, comm.rank() == 0);
    const auto nested = half->split(0);
    EXPECT_EQ(nested->rank(), half->rank());
    Tensor count = Tensor::full({1}, 1);
    nested->all_reduce(count);
    EXPECT_EQ(count.item(), half->size());
  });
}

TEST_P(EveryCommWithPeers, GroupsWorkAtTheSameTime) {
  run([](Comm& comm) {
    const auto other = comm.split(0);
    Tensor a = Tensor::full({50'000}, 1), b = Tensor::full({50'000}, 2);
    Work first = comm.all_reduce_async(a);
    // The other order on odd ranks: both groups have a thread of their own.
    Work second = other->all_reduce_async(b);
    comm.rank() % 2 == 0 ? first.wait() : second.wait();
    comm.rank() % 2 == 0 ? second.wait() : first.wait();
    EXPECT_EQ(a.data<float>()[7], static_cast<float>(comm.size()));
    EXPECT_EQ(b.data<float>()[7], static_cast<float>(2 * comm.size()));
  });
}

TEST_P(EveryComm, RefusesBadArgumentsWithoutHarm) {
  run([](Comm& comm) {
    const int world = comm.size();
    const auto refused = [](const std::function<void()>& call) {
      EXPECT_THROW(call(), std::invalid_argument);
    };
    Tensor t = Tensor::zeros({2}), whole = Tensor::zeros({2 * world}), none;
    refused([&] { comm.all_reduce(none); });
    refused([&] { comm.broadcast(t, world); });
    refused([&] { comm.broadcast(t, -1); });
    refused([&] { comm.all_gather(t, Tensor::zeros({2 * world + 1})); });
    refused([&] { comm.all_gather(t, Tensor::zeros({2 * world}, Dtype::f64)); });
    refused([&] { comm.all_gather(whole.rows(0, 2), whole); });
    refused([&] { comm.reduce_scatter(t, whole.rows(0, world)); });
    refused([&] { comm.all_to_all(t, whole.rows(0, 1)); });
    refused([&] { comm.send(t, comm.rank()); });
    refused([&] { comm.receive(t, world); });
    EXPECT_FALSE(comm.failed());
    comm.all_reduce(t);
  });
}

TEST_P(EveryCommWithPeers, FailsOnEveryRankWhenOneNeverArrives) {
  run([this](Comm& comm) {
    comm.set_timeout(std::chrono::milliseconds(300));
    const int absent = world() - 1;
    const auto start = std::chrono::steady_clock::now();
    std::string text;
    Tensor t = Tensor::full({1000}, 1);
    if (comm.rank() != absent) {
      text = failure_of([&] { comm.all_reduce(t); });
      EXPECT_THAT(text, HasSubstr("[all_reduce]"));
      EXPECT_THAT(text, HasSubstr(fmt::format("rank {} of {}", comm.rank(), world())));
      EXPECT_THAT(text, HasSubstr(fmt::format("peer {} ", absent)));
      EXPECT_TRUE(comm.failed());
      EXPECT_EQ(failure_of([&] { comm.barrier(); }), text) << "the first error is the one kept";
      EXPECT_EQ(failure_of([&] { comm.all_reduce_async(t).wait(); }), text);
    }
    // It stays until all others gave up, without talking to them through the Comm.
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
      const std::string text = failure_of([&] { comm.all_reduce(t); });
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
    const std::string text = failure_of([&] {
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

}  // namespace
}  // namespace howmany
