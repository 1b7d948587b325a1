// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <numeric>

#include "core/host/copy.h"
#include "core/tensor/device.h"
#include "parallel/comm/comm_list.h"
#include "parallel/engines/combine.h"
#include "parallel/engines/local_group.h"

namespace howmany {
namespace {

constexpr std::array kOperationNames = {"barrier",    "all_reduce",     "broadcast",
                                        "all_gather", "reduce_scatter", "reduce",
                                        "gather",     "scatter",        "all_to_all"};
constexpr uint64_t kOperations = 16;
enum Operation : uint64_t {
  kBarrier,
  kAllReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kReduce,
  kGather,
  kScatter,
  kAllToAll
};

constexpr int kAll = -1, kNone = -2;

void copy(char* to, const char* from, int64_t bytes) {
  if (to != from) copy_host(to, from, static_cast<size_t>(bytes));
}

class Local : public CommEngine {
 public:
  Local(int rank, std::shared_ptr<LocalGroup> group)
      : CommEngine(rank, group->size()), group_(std::move(group)), slot_(group_->slot(rank)) {}
  ~Local() override {
    slot_.left = true;
    group_->notify();
  }

  std::string_view name() const override { return "local"; }

  void all_reduce(Tensor& t, ReduceOp op) override {
    char* const mine = bytes_of(t);
    const Published published{mine, mine, t.bytes(), t.dtype(), static_cast<int>(op)};
    collective(kAllReduce, published, kAll, kAll, [&] {
      add_up_share(t, op, [&](int64_t at, const char* sum, int64_t n) {
        for (int r = 0; r < size(); ++r) copy(peer(r).receive + at, sum, n);
      });
    });
  }

  void broadcast(Tensor& t, int root) override {
    const bool is_root = rank() == root;
    char* const mine = bytes_of(t);
    collective(kBroadcast, {mine, mine, t.bytes(), t.dtype(), root}, is_root ? kNone : root,
               is_root ? kAll : kNone, [&] { copy(mine, peer(root).send, t.bytes()); });
  }

  void all_gather(const Tensor& send, Tensor& receive) override {
    char* const to = bytes_of(receive);
    collective(kAllGather, {bytes_of(send), to, send.bytes(), send.dtype(), 0}, kAll, kAll, [&] {
      for_each_rank([&](int r) { copy(to + r * send.bytes(), peer(r).send, send.bytes()); });
    });
  }

  void reduce_scatter(const Tensor& send, Tensor& receive, ReduceOp op) override {
    char* const to = bytes_of(receive);
    const int64_t begin = rank() * receive.bytes();
    const Published published{bytes_of(send), to, send.bytes(), send.dtype(), static_cast<int>(op)};
    collective(kReduceScatter, published, kAll, kAll, [&] {
      add_up(begin, begin + receive.bytes(), send.dtype(), op,
             [&](int64_t at, const char* sum, int64_t n) { copy(to + (at - begin), sum, n); });
    });
  }

  void reduce(const Tensor& send, Tensor& receive, int root, ReduceOp op) override {
    char* const to = rank() == root ? bytes_of(receive) : nullptr;
    const int terms = root * kReduceOps + static_cast<int>(op);
    collective(kReduce, {bytes_of(send), to, send.bytes(), send.dtype(), terms}, kAll, kAll, [&] {
      add_up_share(send, op, [&](int64_t at, const char* sum, int64_t n) {
        copy(peer(root).receive + at, sum, n);
      });
    });
  }

  void gather(const Tensor& send, Tensor& receive, int root) override {
    const bool is_root = rank() == root;
    char* const to = is_root ? bytes_of(receive) : nullptr;
    collective(
        kGather, {bytes_of(send), to, send.bytes(), send.dtype(), root}, is_root ? kAll : kNone,
        is_root ? kNone : root, [&] {
          for_each_rank([&](int r) { copy(to + r * send.bytes(), peer(r).send, send.bytes()); });
        });
  }

  void scatter(const Tensor& send, Tensor& receive, int root) override {
    const bool is_root = rank() == root;
    char* const to = bytes_of(receive);
    const int64_t bytes = receive.bytes();
    const char* const from = is_root ? bytes_of(send) : nullptr;
    const auto take = [&] { copy(to, peer(root).send + rank() * bytes, bytes); };
    if (is_root) copy(to, from + rank() * bytes, bytes);
    collective(kScatter, {from, to, bytes, receive.dtype(), root}, is_root ? kNone : root,
               is_root ? kAll : kNone, take);
  }

  void all_to_all(const Tensor& send, Tensor& receive) override {
    char* const to = bytes_of(receive);
    const int64_t part = send.bytes() / size();
    collective(kAllToAll, {bytes_of(send), to, send.bytes(), send.dtype(), 0}, kAll, kAll, [&] {
      for_each_rank([&](int r) { copy(to + r * part, peer(r).send + rank() * part, part); });
    });
  }

  void send(const Tensor& t, int to, int tag) override {
    PendingMessage message{rank(), to, tag, bytes_of(t), t.bytes(), t.dtype()};
    if (group_->failed()) group_->throw_failure(rank());
    group_->post(message);
    try {
      group_->wait(rank(), timeout(), [&] { return message.done ? -1 : to; });
    } catch (...) {
      group_->take_back(message);
      throw;
    }
  }

  void receive(Tensor& t, int from, int tag) override {
    PendingMessage* message = nullptr;
    group_->wait(rank(), timeout(), [&] {
      message = group_->find_message(from, rank(), tag);
      return message == nullptr ? from : -1;
    });
    touch_peers([&] {
      // The sender may have failed and removed the message before this rank was marked busy.
      message = group_->find_message(from, rank(), tag);
      if (message->bytes != t.bytes() || message->dtype != t.dtype()) return;
      copy(bytes_of(t), message->data, t.bytes());
      group_->take_back(*message);
      message->done = true;
      message = nullptr;
    });
    if (message != nullptr) fail(from, "sent another size or dtype than this rank expects");
    group_->notify();
  }

  void barrier() override {
    collective(kBarrier, {}, kAll, kNone, [] {});
  }

  std::unique_ptr<CommEngine> split(const std::vector<int>& members, int index,
                                    const std::string& id) override {
    return std::make_unique<Local>(index, group_->child(id, members));
  }

  void abort(std::string_view why) noexcept override {
    group_->abort(rank(), fmt::format("failed: {}", why));
  }

 private:
  static char* bytes_of(Tensor& t) { return static_cast<char*>(t.mutable_raw()); }
  static const char* bytes_of(const Tensor& t) { return static_cast<const char*>(t.raw()); }
  const Published& peer(int r) const { return group_->slot(r).published; }

  [[noreturn]] void fail(int peer, const std::string& why) {
    group_->fail(peer, why);
    group_->throw_failure(rank());
  }

  // Starts with this rank's successor, so that at first no two ranks read the same buffer.
  template <typename Body>
  void for_each_rank(Body body) {
    for (int i = 1; i <= size(); ++i) body((rank() + i) % size());
  }

  template <typename Body>
  void touch_peers(Body body) {
    group_->enter(rank());
    body();
    group_->leave(rank());
  }

  // Publishes, waits for the ranks in `sources`, runs body over their buffers, and waits until the
  // ranks in `readers` are done with ours. Each is a rank, kAll or kNone.
  template <typename Body>
  void collective(Operation operation, const Published& mine, int sources, int readers, Body body) {
    if (group_->failed()) group_->throw_failure(rank());
    slot_.published = mine;
    const uint64_t turn = ++turn_ * kOperations;
    slot_.arrived = turn + operation;
    group_->notify();
    await(sources, turn, &RankSlot::arrived);
    for_each_in(sources, [&](int r) { check_same(operation, turn, r); });
    if (sources != kNone && operation != kBarrier) touch_peers(body);
    slot_.done = turn;
    group_->notify();
    await(readers, turn, &RankSlot::done);
  }

  template <typename Body>
  void for_each_in(int ranks, Body body) {
    if (ranks >= 0) return body(ranks);
    for (int r = 0; ranks == kAll && r < size(); ++r) body(r);
  }

  void await(int ranks, uint64_t turn, std::atomic<uint64_t> RankSlot::*counter) {
    group_->wait(rank(), timeout(), [&] {
      int missing = -1;
      for_each_in(ranks, [&](int r) {
        if ((group_->slot(r).*counter).load() < turn) missing = r;
      });
      return missing;
    });
  }

  void check_same(Operation operation, uint64_t turn, int r) {
    const uint64_t theirs = group_->slot(r).arrived;
    const bool ahead = theirs >= turn + kOperations;
    if (operation == kBarrier && ahead) return;
    if (theirs != turn + operation)
      fail(r, fmt::format("called {} instead",
                          ahead ? "something else" : kOperationNames[theirs - turn]));
    if (operation != kBarrier && !peer(r).fits(slot_.published))
      fail(r, "called it with another size, dtype, root or op");
  }

  // Calls add_up() for this rank's share of t; all ranks divide the work.
  template <typename Store>
  void add_up_share(const Tensor& t, ReduceOp op, Store store) {
    const auto width = static_cast<int64_t>(size_of(t.dtype()));
    const int64_t begin = t.numel() * rank() / size(), end = t.numel() * (rank() + 1) / size();
    add_up(begin * width, end * width, t.dtype(), op, store);
  }

  // Reduces bytes [begin, end) of all ranks' `send` in rank order, by blocks that fit the cache.
  template <typename Store>
  void add_up(int64_t begin, int64_t end, Dtype dtype, ReduceOp op, Store store) {
    alignas(64) std::array<char, 8192> block;
    const Combine combine = combine_of(dtype, op);
    for (int64_t at = begin; at < end; at += static_cast<int64_t>(block.size())) {
      const int64_t n = std::min<int64_t>(end - at, block.size());
      const size_t count = static_cast<size_t>(n) / size_of(dtype);
      combine(block.data(), peer(0).send + at, peer(1).send + at, count);
      for (int r = 2; r < size(); ++r)
        combine(block.data(), block.data(), peer(r).send + at, count);
      store(at, block.data(), n);
    }
  }

  std::shared_ptr<LocalGroup> group_;
  RankSlot& slot_;
  uint64_t turn_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<CommEngine>> comms::local_group(int world, bool may_spin) {
  std::vector<int> members(static_cast<size_t>(world));
  std::iota(members.begin(), members.end(), 0);
  const auto group =
      std::make_shared<LocalGroup>(members, may_spin && world <= cpu_limits().usable);
  std::vector<std::unique_ptr<CommEngine>> engines;
  for (const int rank : members) engines.push_back(std::make_unique<Local>(rank, group));
  return engines;
}

std::unique_ptr<CommEngine> comms::local(const Place& place, std::chrono::milliseconds) {
  HM_REQUIRE(place.world == 1, "[connect] 'local' joins threads of one process, not {} processes",
             place.world);
  return std::move(local_group(1).front());
}

}  // namespace howmany
