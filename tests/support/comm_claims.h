// SPDX-License-Identifier: Apache-2.0
// The claims that every Comm must meet, with any backend and with ranks as threads or processes.
// Every rank calls each function. Data are small integers, so sums are exact.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "parallel/comm/comm.h"

namespace howmany {

// Element i of the input of `rank`: small integers, so that sums are exact in every dtype.
inline int value(int rank, int64_t i) { return static_cast<int>((i * 7 + rank * 3) % 11) + 1; }

template <typename T, typename At>
Tensor filled(int64_t n, const At& at) {
  Tensor t = Tensor::empty({n}, dtype_of<T>());
  T* const p = t.mutable_data<T>();
  for (int64_t i = 0; i < n; ++i) p[i] = static_cast<T>(at(i));
  return t;
}

template <typename T, typename At>
void expect_values(const Tensor& where_it_is, const At& at) {
  const Tensor t = where_it_is.to(Device{});
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

// Reduces into a separate buffer and in place. The inputs of the other ranks must not change.
template <typename T>
void check_reduce(Comm& comm, int64_t n, int root, Device on) {
  const auto mine = [&](int64_t i) { return value(comm.rank(), i); };
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min})
    for (const bool in_place : {false, true}) {
      const Tensor sent = filled<T>(n, mine).to(on);
      const Tensor room = in_place ? sent : Tensor::zeros({n}, dtype_of<T>(), on);
      comm.reduce(sent, comm.rank() == root ? room : Tensor(), root, op);
      if (comm.rank() == root)
        expect_values<T>(room, [&](int64_t i) {
          return reduced(op, comm.size(), [&](int r) { return value(r, i); });
        });
      if (comm.rank() != root || !in_place) expect_values<T>(sent, mine);
    }
}

template <typename T>
void check_collectives(Comm& comm, int64_t n, Device on = {}) {
  const int world = comm.size(), rank = comm.rank();
  const auto mine = [&](int64_t i) { return value(rank, i); };
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min}) {
    const auto expected = [&](int64_t i) {
      return reduced(op, world, [&](int r) { return value(r, i); });
    };
    Tensor t = filled<T>(n, mine).to(on);
    comm.all_reduce(t, op);
    expect_values<T>(t, expected);

    Tensor part = Tensor::zeros({n}, dtype_of<T>(), on);
    comm.reduce_scatter(filled<T>(n * world, mine).to(on), part, op);
    expect_values<T>(part, [&](int64_t i) { return expected(rank * n + i); });
  }
  const Tensor part = filled<T>(n, mine).to(on), whole = filled<T>(n * world, mine).to(on);
  const auto of_every_rank = [&](int64_t i) { return value(static_cast<int>(i / n), i % n); };
  Tensor all = Tensor::zeros({world, n}, dtype_of<T>(), on);
  comm.all_gather(part, all);
  expect_values<T>(all, of_every_rank);

  Tensor exchanged = Tensor::zeros({world, n}, dtype_of<T>(), on);
  comm.all_to_all(whole, exchanged);
  expect_values<T>(exchanged,
                   [&](int64_t i) { return value(static_cast<int>(i / n), rank * n + i % n); });

  for (int root = 0; root < world; ++root) {
    Tensor t = filled<T>(n, mine).to(on);
    comm.broadcast(t, root);
    expect_values<T>(t, [&](int64_t i) { return value(root, i); });

    check_reduce<T>(comm, n, root, on);

    Tensor gathered = rank == root ? Tensor::zeros({world, n}, dtype_of<T>(), on) : Tensor();
    comm.gather(part, gathered, root);
    if (rank == root) expect_values<T>(gathered, of_every_rank);

    Tensor scattered = Tensor::zeros({n}, dtype_of<T>(), on);
    comm.scatter(rank == root ? whole : Tensor(), scattered, root);
    expect_values<T>(scattered, [&](int64_t i) { return value(root, rank * n + i); });
  }
}

// Each part is at its place in the whole, as in NCCL.
template <typename T>
void check_in_place(Comm& comm, int64_t n, Device on = {}) {
  const int world = comm.size(), rank = comm.rank();
  const auto own = [&](const Tensor& whole) { return whole.flat(rank * n, (rank + 1) * n); };
  const auto mine = [&](int64_t i) { return value(rank, i); };
  const auto of_every_rank = [&](int64_t i) { return value(static_cast<int>(i / n), i % n); };

  Tensor all = Tensor::zeros({world * n}, dtype_of<T>(), on);
  own(all).copy_from(filled<T>(n, mine).to(on));
  comm.all_gather(own(all), all);
  expect_values<T>(all, of_every_rank);

  const Tensor whole = filled<T>(world * n, mine).to(on);
  comm.reduce_scatter(whole, own(whole), ReduceOp::max);
  expect_values<T>(own(whole), [&](int64_t i) {
    return reduced(ReduceOp::max, world, [&](int r) { return value(r, rank * n + i); });
  });

  for (int root = 0; root < world; ++root) {
    Tensor gathered = Tensor::zeros({world * n}, dtype_of<T>(), on);
    own(gathered).copy_from(filled<T>(n, mine).to(on));
    comm.gather(own(gathered), gathered, root);
    if (rank == root) expect_values<T>(gathered, of_every_rank);

    const Tensor sent = filled<T>(world * n, mine).to(on);
    comm.scatter(sent, own(sent), root);
    expect_values<T>(own(sent), [&](int64_t i) { return value(root, rank * n + i); });
  }
}

// The order of NaN and numbers, and of the two zeros, is not specified. But all ranks must agree.
inline void check_extremes(Comm& comm) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const ReduceOp op : {ReduceOp::max, ReduceOp::min})
    for (const int odd : {0, 1}) {
      const bool is_odd = comm.rank() == odd;
      Tensor t = Tensor::from<float>({is_odd ? nan : 1.0F, is_odd ? -0.0F : 0.0F}, {2});
      comm.all_reduce(t, op);
      Tensor first = t.clone();
      comm.broadcast(first, 0);
      EXPECT_EQ(std::memcmp(t.raw(), first.raw(), static_cast<size_t>(t.bytes())), 0)
          << "rank " << comm.rank() << ": " << t.data<float>()[0] << ", " << t.data<float>()[1];
    }
}

inline void check_every_dtype_and_size(Comm& comm) {
  for (const int64_t n : {0, 1, 5, 4099}) {
#define X(name, type)               \
  check_collectives<type>(comm, n); \
  check_in_place<type>(comm, n);
    HM_DTYPES(X)
#undef X
  }
  check_collectives<float>(comm, 300'007);
  check_in_place<float>(comm, 300'007);
  comm.barrier();
}

// Runs all operations that move bytes, with tensors on the device.
inline void check_on(Comm& comm, Device device) {
  for (const int64_t n : {0, 1, 5, 4099}) {
#define X(name, type)                       \
  check_collectives<type>(comm, n, device); \
  check_in_place<type>(comm, n, device);
    HM_DTYPES(X)
#undef X
  }
  Tensor t = Tensor::full({1000}, comm.rank() + 1, Dtype::f32, device);
  if (comm.rank() == 0 && comm.size() > 1) comm.send(t, 1);
  if (comm.rank() == 1) {
    comm.receive(t, 0);
    EXPECT_EQ(t.rows(999, 1000).item(), 1);
  }
  Work work = comm.all_reduce_async(t);
  work.wait();
  const int without_second = comm.size() * (comm.size() + 1) / 2 - (comm.size() > 1 ? 1 : 0);
  EXPECT_EQ(t.rows(0, 1).item(), without_second);
  comm.barrier();
}

inline void check_same_bits(Comm& comm) {
  const int64_t n = 1'000'003;
  Tensor t = Tensor::empty({n});
  for (int64_t i = 0; i < n; ++i)
    t.mutable_data<float>()[i] = 1.0F / static_cast<float>(value(comm.rank(), i) + i % 97);
  comm.all_reduce(t);
  Tensor first = t.clone();
  comm.broadcast(first, 0);
  EXPECT_EQ(std::memcmp(t.raw(), first.raw(), static_cast<size_t>(t.bytes())), 0);
}

inline void check_asynchronous_order(Comm& comm) {
  std::vector<Work> works;
  Tensor t = Tensor::full({1000}, 1);
  for (int i = 0; i < 5; ++i) works.push_back(comm.all_reduce_async(t));
  Tensor last = Tensor::full({3}, comm.rank());
  comm.broadcast(last, 0);  // runs after all queued calls
  EXPECT_TRUE(works.back().ready());
  for (Work& work : works) work.wait();
  const double expected = std::pow(comm.size(), 5);
  for (const float v : t.values<float>()) ASSERT_EQ(v, expected);
  for (const float v : last.values<float>()) ASSERT_EQ(v, 0);
}

// The part is this rank's part of the whole, as in sharded training.
inline void check_asynchronous_parts(Comm& comm) {
  constexpr int64_t kPart = 70'001;
  Tensor whole = Tensor::empty({kPart * comm.size()});
  Tensor part = whole.flat(comm.rank() * kPart, (comm.rank() + 1) * kPart);
  for (float& v : part.mutable_values<float>()) v = static_cast<float>(comm.rank());
  Work gathered = comm.all_gather_async(part, whole);
  gathered.finish();
  for (int64_t i = 0; i < whole.numel(); ++i)
    ASSERT_EQ(whole.values<float>()[static_cast<size_t>(i)], static_cast<float>(i / kPart));
  Tensor other = Tensor::zeros({kPart});
  Work first = comm.reduce_scatter_async(whole, other);
  Work second = comm.reduce_scatter_async(whole, part);
  second.finish();
  EXPECT_TRUE(first.ready());
  const auto sum = static_cast<float>(comm.rank() * comm.size());
  for (const float v : other.values<float>()) ASSERT_EQ(v, sum);
  for (const float v : part.values<float>()) ASSERT_EQ(v, sum);
}

template <typename T>
void check_messages_of(Comm& comm, int64_t n) {
  const int next = (comm.rank() + 1) % comm.size();
  const int previous = (comm.rank() + comm.size() - 1) % comm.size();
  const Tensor mine = filled<T>(n, [&](int64_t i) { return value(comm.rank(), i); });
  Tensor theirs = Tensor::zeros({n}, dtype_of<T>());
  if (comm.rank() == 0) comm.send(mine, next, 7);
  comm.receive(theirs, previous, 7);
  if (comm.rank() != 0) comm.send(mine, next, 7);
  expect_values<T>(theirs, [&](int64_t i) { return value(previous, i); });
}

inline void check_messages(Comm& comm) {
  for (const int64_t n : {0, 1, 5, 70'001}) {
#define X(name, type) check_messages_of<type>(comm, n);
    HM_DTYPES(X)
#undef X
  }
}

inline void check_message_order(Comm& comm) {
  for (int i = 0; i < 20; ++i) {
    Tensor t = Tensor::full({3}, i);
    if (comm.rank() == 0) comm.send(t, 1);
    if (comm.rank() == 1) comm.receive(t = Tensor::zeros({3}), 0);
    ASSERT_EQ(t.data<float>()[2], static_cast<float>(i));
  }
}

inline void check_splits(Comm& comm) {
  const auto half = comm.split(comm.rank() % 2, -comm.rank());
  ASSERT_EQ(half->size(), (comm.size() + 1 - comm.rank() % 2) / 2);
  Tensor ranks = Tensor::empty({half->size()}, Dtype::i32);
  half->all_gather(Tensor::from<int32_t>({comm.rank()}, {1}), ranks);
  for (int i = 1; i < half->size(); ++i)  // a negative key reverses the order
    EXPECT_EQ(ranks.data<int32_t>()[i], ranks.data<int32_t>()[i - 1] - 2);

  const auto none = comm.split(comm.rank() == 0 ? -1 : 0);
  EXPECT_EQ(none == nullptr, comm.rank() == 0);
  const auto nested = half->split(0);
  EXPECT_EQ(nested->rank(), half->rank());
  Tensor count = Tensor::full({1}, 1);
  nested->all_reduce(count);
  EXPECT_EQ(count.item(), half->size());
}

inline void check_groups_at_once(Comm& comm) {
  const auto other = comm.split(0);
  Tensor a = Tensor::full({50'000}, 1), b = Tensor::full({50'000}, 2);
  Work first = comm.all_reduce_async(a);
  // Odd ranks wait in the other order. Each group has its own thread.
  Work second = other->all_reduce_async(b);
  comm.rank() % 2 == 0 ? first.wait() : second.wait();
  comm.rank() % 2 == 0 ? second.wait() : first.wait();
  EXPECT_EQ(a.data<float>()[7], static_cast<float>(comm.size()));
  EXPECT_EQ(b.data<float>()[7], static_cast<float>(2 * comm.size()));
}

inline void check_refusals(Comm& comm) {
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
  refused([&] { comm.reduce_scatter(t, whole.rows(0, world)); });
  if (world > 1) {  // part of the whole, but not the own part
    const int other = (comm.rank() + 1) % world;
    refused([&] { comm.all_gather(whole.rows(2 * other, 2 * other + 2), whole); });
    refused([&] { comm.reduce_scatter(whole, whole.rows(2 * other, 2 * other + 2)); });
    if (comm.rank() == 0) refused([&] { comm.all_gather(whole.rows(1, 3), whole); });
  }
  refused([&] { comm.reduce(t, t, world); });
  if (comm.rank() == 0) {
    refused([&] { comm.reduce(t, none, 0); });
    refused([&] { comm.reduce(t, Tensor::zeros({3}), 0); });
    refused([&] { comm.reduce(t, Tensor::zeros({2}, Dtype::f64), 0); });
    const Tensor three = Tensor::zeros({3});
    refused([&] { comm.reduce(three.rows(0, 2), three.rows(1, 3), 0); });
  }
  refused([&] { comm.all_to_all(t, whole.rows(0, 1)); });
  refused([&] { comm.send(t, comm.rank()); });
  refused([&] { comm.receive(t, world); });
  EXPECT_FALSE(comm.failed());
  comm.all_reduce(t);
}

// Runs all checks. Requires a world of two ranks or more.
inline void check_everything(Comm& comm) {
  check_every_dtype_and_size(comm);
  check_same_bits(comm);
  if (comm.size() > 1) check_extremes(comm);
  check_asynchronous_order(comm);
  check_asynchronous_parts(comm);
  if (comm.size() > 1) {
    check_messages(comm);
    check_message_order(comm);
    check_groups_at_once(comm);
  }
  check_splits(comm);
  check_refusals(comm);
}

}  // namespace howmany
