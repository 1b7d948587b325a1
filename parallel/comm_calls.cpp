// The calls of Comm: arguments are checked before anything happens, then the engine does the work.
#include <algorithm>

#include "core/base/error.h"
#include "parallel/comm.h"
#include "parallel/engine.h"

namespace howmany {
namespace {

bool overlap(const Tensor& a, const Tensor& b) {
  if (!a.shares_storage_with(b)) return false;
  const char *first = static_cast<const char*>(a.raw()),
             *second = static_cast<const char*>(b.raw());
  return first < second + b.bytes() && second < first + a.bytes();
}

// Of a rank alone.
void hand_over(const Tensor& send, const Tensor& receive) {
  if (send.raw() != receive.raw()) receive.view(send.shape()).copy_from(send);
}

// Where results land, before they go back. `used`: what is there counts.
template <typename Body>
void landed(CommEngine& engine, Guest& guest, bool used, Body body) {
  if (is_home(engine, guest.t)) return body(guest.t);
  Tensor there = used ? at_home(engine, guest) : room_for(engine, guest);
  body(there);
  bring_back(engine, there, guest);
}

}  // namespace

void Comm::check(const char* operation, const Tensor& t) const {
  HM_REQUIRE(t, "[{}] empty tensor handle", operation);
}

// `whole` holds one `part` per rank.
void Comm::check_pair(const char* operation, const Tensor& part, const Tensor& whole) const {
  check(operation, part);
  check(operation, whole);
  HM_REQUIRE(part.dtype() == whole.dtype(), "[{}] dtypes differ: {} and {}", operation,
             name_of(part.dtype()), name_of(whole.dtype()));
  HM_REQUIRE(part.numel() * size_ == whole.numel(), "[{}] {} elements for {} ranks of {}",
             operation, whole.numel(), size_, part.numel());
  HM_REQUIRE(!overlap(part, whole) || is_own_part(part, whole, rank_),
             "[{}] send and receive overlap", operation);
}

// `receive` holds as much as `send`.
void Comm::check_same(const char* operation, const Tensor& send, const Tensor& receive) const {
  check(operation, send);
  check(operation, receive);
  HM_REQUIRE(send.dtype() == receive.dtype() && send.numel() == receive.numel(),
             "[{}] send {} {} and receive {} {} differ", operation, name_of(send.dtype()),
             send.shape().str(), name_of(receive.dtype()), receive.shape().str());
}

void Comm::check_rank(const char* operation, const char* role, int rank) const {
  HM_REQUIRE(rank >= 0 && rank < size_, "[{}] {} {} outside 0..{}", operation, role, rank,
             size_ - 1);
}

void Comm::all_reduce(Tensor t, ReduceOp op) {
  check("all_reduce", t);
  if (size_ == 1 || t.numel() == 0) return check_not_failed();
  Guest guest(*engine_, std::move(t));
  run("all_reduce", guest.t.bytes(), [&] {
    landed(*engine_, guest, true, [&](Tensor& there) { engine_->all_reduce(there, op); });
  });
}

Work Comm::all_reduce_async(Tensor t, ReduceOp op) {
  check("all_reduce", t);
  if (size_ == 1 || t.numel() == 0) return check_not_failed(), Work();
  const int64_t bytes = t.bytes();
  return start("all_reduce", bytes, [this, guest = Guest(*engine_, std::move(t)), op]() mutable {
    landed(*engine_, guest, true, [&](Tensor& there) { engine_->all_reduce(there, op); });
  });
}

void Comm::broadcast(Tensor t, int root) {
  check("broadcast", t);
  check_rank("broadcast", "root", root);
  if (size_ == 1 || t.numel() == 0) return check_not_failed();
  Guest guest(*engine_, std::move(t));
  run("broadcast", guest.t.bytes(), [&] {
    landed(*engine_, guest, true, [&](Tensor& there) { engine_->broadcast(there, root); });
  });
}

void Comm::all_gather(const Tensor& send, Tensor receive) {
  check_pair("all_gather", send, receive);
  if (size_ == 1) return check_not_failed(), hand_over(send, receive);
  if (send.numel() == 0) return check_not_failed();
  const Guest from(*engine_, send);
  Guest to(*engine_, std::move(receive));
  run("all_gather", to.t.bytes(), [&] {
    landed(*engine_, to, false,
           [&](Tensor& there) { engine_->all_gather(at_home(*engine_, from), there); });
  });
}

void Comm::reduce_scatter(const Tensor& send, Tensor receive, ReduceOp op) {
  check_pair("reduce_scatter", receive, send);
  if (size_ == 1) return check_not_failed(), hand_over(send, receive);
  if (receive.numel() == 0) return check_not_failed();
  const Guest from(*engine_, send);
  Guest to(*engine_, std::move(receive));
  run("reduce_scatter", send.bytes(), [&] {
    landed(*engine_, to, false,
           [&](Tensor& there) { engine_->reduce_scatter(at_home(*engine_, from), there, op); });
  });
}

void Comm::reduce(const Tensor& send, Tensor receive, int root, ReduceOp op) {
  check_rank("reduce", "root", root);
  check("reduce", send);
  if (rank_ == root) check_same("reduce", send, receive);
  HM_REQUIRE(rank_ != root || send.raw() == receive.raw() || !overlap(send, receive),
             "[reduce] send and receive overlap, but are not the same");
  if (size_ == 1) return check_not_failed(), hand_over(send, receive);
  if (send.numel() == 0) return check_not_failed();
  const Guest from(*engine_, send);
  Guest to(*engine_, std::move(receive));
  run("reduce", send.bytes(), [&] {
    if (rank_ != root) return engine_->reduce(at_home(*engine_, from), to.t, root, op);
    landed(*engine_, to, false,
           [&](Tensor& there) { engine_->reduce(at_home(*engine_, from), there, root, op); });
  });
}

void Comm::gather(const Tensor& send, Tensor receive, int root) {
  check_rank("gather", "root", root);
  if (rank_ == root) check_pair("gather", send, receive);
  check("gather", send);
  if (size_ == 1) return check_not_failed(), hand_over(send, receive);
  if (send.numel() == 0) return check_not_failed();
  const Guest from(*engine_, send);
  Guest to(*engine_, std::move(receive));
  run("gather", send.bytes() * size_, [&] {
    if (rank_ != root) return engine_->gather(at_home(*engine_, from), to.t, root);
    landed(*engine_, to, false,
           [&](Tensor& there) { engine_->gather(at_home(*engine_, from), there, root); });
  });
}

void Comm::scatter(const Tensor& send, Tensor receive, int root) {
  check_rank("scatter", "root", root);
  if (rank_ == root) check_pair("scatter", receive, send);
  check("scatter", receive);
  if (size_ == 1) return check_not_failed(), hand_over(send, receive);
  if (receive.numel() == 0) return check_not_failed();
  const Guest from(*engine_, send);
  Guest to(*engine_, std::move(receive));
  run("scatter", to.t.bytes() * size_, [&] {
    landed(*engine_, to, false, [&](Tensor& there) {
      engine_->scatter(rank_ == root ? at_home(*engine_, from) : send, there, root);
    });
  });
}

void Comm::all_to_all(const Tensor& send, Tensor receive) {
  check_same("all_to_all", send, receive);
  HM_REQUIRE(send.numel() % size_ == 0, "[all_to_all] {} elements do not divide by {} ranks",
             send.numel(), size_);
  HM_REQUIRE(!overlap(send, receive), "[all_to_all] send and receive overlap");
  if (size_ == 1) return check_not_failed(), hand_over(send, receive);
  if (send.numel() == 0) return check_not_failed();
  const Guest from(*engine_, send);
  Guest to(*engine_, std::move(receive));
  run("all_to_all", send.bytes(), [&] {
    landed(*engine_, to, false,
           [&](Tensor& there) { engine_->all_to_all(at_home(*engine_, from), there); });
  });
}

void Comm::check_peer(const char* operation, const Tensor& t, int peer) const {
  check(operation, t);
  check_rank(operation, "peer", peer);
  HM_REQUIRE(peer != rank_, "[{}] rank {} with itself", operation, rank_);
}

void Comm::send(const Tensor& t, int peer, int tag) {
  check_peer("send", t, peer);
  if (t.numel() == 0) return check_not_failed();
  const Guest guest(*engine_, t);
  run("send", t.bytes(), [&] { engine_->send(at_home(*engine_, guest), peer, tag); });
}

void Comm::receive(Tensor t, int peer, int tag) {
  check_peer("receive", t, peer);
  if (t.numel() == 0) return check_not_failed();
  Guest guest(*engine_, std::move(t));
  run("receive", guest.t.bytes(), [&] {
    landed(*engine_, guest, false, [&](Tensor& there) { engine_->receive(there, peer, tag); });
  });
}

Work Comm::send_async(Tensor t, int peer, int tag) {
  check_peer("send", t, peer);
  if (t.numel() == 0) return check_not_failed(), Work();
  const int64_t bytes = t.bytes();
  return start("send", bytes, [=, this, guest = Guest(*engine_, std::move(t))] {
    engine_->send(at_home(*engine_, guest), peer, tag);
  });
}

Work Comm::receive_async(Tensor t, int peer, int tag) {
  check_peer("receive", t, peer);
  if (t.numel() == 0) return check_not_failed(), Work();
  const int64_t bytes = t.bytes();
  return start("receive", bytes, [=, this, guest = Guest(*engine_, std::move(t))]() mutable {
    landed(*engine_, guest, false, [&](Tensor& there) { engine_->receive(there, peer, tag); });
  });
}

void Comm::barrier() {
  if (size_ == 1) return check_not_failed();
  run("barrier", 0, [&] { engine_->barrier(); });
}

std::unique_ptr<Comm> Comm::split(int color, int key) {
  if (size_ > 1) run("split", 0, [this] { engine_->assemble(); });
  Tensor mine = Tensor::from<int64_t>({color, key}, {2});
  Tensor all = Tensor::empty({2 * size_}, Dtype::i64);
  all_gather(mine, all);
  const auto value = [&](int rank, int which) { return all.data<int64_t>()[2 * rank + which]; };
  const std::string id = fmt::format("{}.{}", ++splits_, color);
  if (color < 0) return nullptr;

  std::vector<int> members;
  for (int r = 0; r < size_; ++r)
    if (value(r, 0) == color) members.push_back(r);
  std::ranges::stable_sort(members, {}, [&](int r) { return value(r, 1); });
  const int index = static_cast<int>(std::ranges::find(members, rank_) - members.begin());
  std::unique_ptr<CommEngine> engine;
  run("split", 0, [&] { engine = engine_->split(members, index, id); });
  engine->set_roster(engine_->roster().of(members));
  auto group = std::make_unique<Comm>(std::move(engine));
  group->set_timeout(timeout());
  return group;
}

}  // namespace howmany
