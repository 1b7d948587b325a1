// SPDX-License-Identifier: Apache-2.0
// The calls of Comm. They check all arguments first; then the engine communicates.
#include <algorithm>

#include "core/base/error.h"
#include "parallel/comm/call_runner.h"
#include "parallel/comm/comm.h"
#include "parallel/comm/staging.h"

namespace howmany {
namespace {

bool overlap(const Tensor& a, const Tensor& b) {
  if (!a.shares_storage_with(b)) return false;
  const char *first = static_cast<const char*>(a.raw()),
             *second = static_cast<const char*>(b.raw());
  return first < second + b.bytes() && second < first + a.bytes();
}

// The collective of a group of size 1.
void copy_unless_in_place(const Tensor& send, const Tensor& receive) {
  if (send.raw() != receive.raw()) receive.view(send.shape()).copy_from(send);
}

using Input = Operand<const Tensor&>;
using Output = Operand<Tensor>;

// Then there is nothing to move.
bool is_meta(const Tensor& t) { return t.device().type == DeviceType::meta; }

// Returns true if the engine gets the tensor itself.
bool is_passed(const CommEngine& engine, const Tensor& t) {
  return is_meta(t) ? engine.takes_meta() : is_native(engine, t);
}

// Returns true if the call does nothing.
bool is_skipped(const CommEngine& engine, const Tensor& t) {
  return is_meta(t) && !engine.takes_meta();
}

// Calls body(t) with the operand's tensor, or with its copy on the native device.
template <typename T, typename Body>
void with_input(CommEngine& engine, const Operand<T>& operand, Body body) {
  if (is_passed(engine, operand.t)) return body(operand.t);
  if (is_meta(operand.t)) return;
  body(stage_in(engine, operand.t, operand.event));
}

// Calls body(t) with a native tensor that receives the result, and copies it back if it was staged.
// Copies the operand's contents there first if `reads` is true.
template <typename Body>
void with_output(CommEngine& engine, Output& operand, bool reads, Body body) {
  if (is_passed(engine, operand.t)) return body(operand.t);
  if (is_meta(operand.t)) return;
  Tensor staged = reads ? stage_in(engine, operand.t, operand.event)
                        : allocate_staging(engine, operand.t, operand.event);
  body(staged);
  stage_out(engine, staged, operand.t, operand.event);
}

// Calls body(in, out), where out is not read.
template <typename T, typename Body>
void with_both(CommEngine& engine, const Operand<T>& from, Output& to, Body body) {
  with_output(engine, to, false, [&](Tensor& out) {
    with_input(engine, from, [&](const Tensor& in) { body(in, out); });
  });
}

// Argument checks; they throw std::invalid_argument.
void check(const char* operation, const Tensor& t) {
  HM_REQUIRE(t, "[{}] empty tensor handle", operation);
}

// `receive` holds as many elements as `send`.
void check_same(const char* operation, const Tensor& send, const Tensor& receive) {
  check(operation, send);
  check(operation, receive);
  HM_REQUIRE(send.dtype() == receive.dtype() && send.numel() == receive.numel(),
             "[{}] send {} {} and receive {} {} differ", operation, name_of(send.dtype()),
             send.shape().str(), name_of(receive.dtype()), receive.shape().str());
}

// `whole` holds one `part` per rank.
void check_pair(const char* operation, const Comm& comm, const Tensor& part, const Tensor& whole) {
  check(operation, part);
  check(operation, whole);
  HM_REQUIRE(part.dtype() == whole.dtype(), "[{}] dtypes differ: {} and {}", operation,
             name_of(part.dtype()), name_of(whole.dtype()));
  HM_REQUIRE(part.numel() * comm.size() == whole.numel(), "[{}] {} elements for {} ranks of {}",
             operation, whole.numel(), comm.size(), part.numel());
  HM_REQUIRE(!overlap(part, whole) || is_own_part(part, whole, comm.rank()),
             "[{}] send and receive overlap", operation);
}

void check_rank(const char* operation, const Comm& comm, const char* role, int rank) {
  HM_REQUIRE(rank >= 0 && rank < comm.size(), "[{}] {} {} outside 0..{}", operation, role, rank,
             comm.size() - 1);
}

void check_peer(const char* operation, const Comm& comm, const Tensor& t, int peer) {
  check(operation, t);
  check_rank(operation, comm, "peer", peer);
  HM_REQUIRE(peer != comm.rank(), "[{}] rank {} with itself", operation, comm.rank());
}

}  // namespace

void Comm::all_reduce(Tensor t, ReduceOp op) {
  check("all_reduce", t);
  if (size_ == 1 || t.numel() == 0) return calls_->check_not_failed();
  Output operand(*engine_, std::move(t));
  calls_->run("all_reduce", operand.t.bytes(), [&] {
    with_output(*engine_, operand, true, [&](Tensor& out) { engine_->all_reduce(out, op); });
  });
}

Work Comm::all_reduce_async(Tensor t, ReduceOp op) {
  check("all_reduce", t);
  if (size_ == 1 || t.numel() == 0) return calls_->check_not_failed(), Work();
  if (is_skipped(*engine_, t)) return Work();
  const int64_t bytes = t.bytes();
  return calls_->start(
      "all_reduce", bytes, [this, operand = Output(*engine_, std::move(t)), op]() mutable {
        with_output(*engine_, operand, true, [&](Tensor& out) { engine_->all_reduce(out, op); });
      });
}

void Comm::broadcast(Tensor t, int root) {
  check("broadcast", t);
  check_rank("broadcast", *this, "root", root);
  if (size_ == 1 || t.numel() == 0) return calls_->check_not_failed();
  Output operand(*engine_, std::move(t));
  calls_->run("broadcast", operand.t.bytes(), [&] {
    with_output(*engine_, operand, true, [&](Tensor& out) { engine_->broadcast(out, root); });
  });
}

void Comm::all_gather(const Tensor& send, Tensor receive) {
  check_pair("all_gather", *this, send, receive);
  if (size_ == 1) return calls_->check_not_failed(), copy_unless_in_place(send, receive);
  if (send.numel() == 0) return calls_->check_not_failed();
  const Input from(*engine_, send);
  Output to(*engine_, std::move(receive));
  calls_->run("all_gather", to.t.bytes(), [&] {
    with_both(*engine_, from, to,
              [&](const Tensor& in, Tensor& out) { engine_->all_gather(in, out); });
  });
}

Work Comm::all_gather_async(Tensor send, Tensor receive) {
  check_pair("all_gather", *this, send, receive);
  if (size_ == 1 || send.numel() == 0) return all_gather(send, std::move(receive)), Work();
  if (is_skipped(*engine_, send)) return Work();
  const int64_t bytes = receive.bytes();
  return calls_->start("all_gather", bytes,
                       [this, from = Output(*engine_, std::move(send)),
                        to = Output(*engine_, std::move(receive))]() mutable {
                         with_both(*engine_, from, to, [&](const Tensor& in, Tensor& out) {
                           engine_->all_gather(in, out);
                         });
                       });
}

void Comm::reduce_scatter(const Tensor& send, Tensor receive, ReduceOp op) {
  check_pair("reduce_scatter", *this, receive, send);
  if (size_ == 1) return calls_->check_not_failed(), copy_unless_in_place(send, receive);
  if (receive.numel() == 0) return calls_->check_not_failed();
  const std::shared_ptr<void> scratch = engine_->scratch_on_meta(send);
  const Input from(*engine_, send);
  Output to(*engine_, std::move(receive));
  calls_->run("reduce_scatter", send.bytes(), [&] {
    with_both(*engine_, from, to,
              [&](const Tensor& in, Tensor& out) { engine_->reduce_scatter(in, out, op); });
  });
}

Work Comm::reduce_scatter_async(Tensor send, Tensor receive, ReduceOp op) {
  check_pair("reduce_scatter", *this, receive, send);
  if (size_ == 1 || receive.numel() == 0)
    return reduce_scatter(send, std::move(receive), op), Work();
  if (is_skipped(*engine_, send)) return Work(engine_->scratch_on_meta(send));
  const int64_t bytes = send.bytes();
  return calls_->start("reduce_scatter", bytes,
                       [this, op, from = Output(*engine_, std::move(send)),
                        to = Output(*engine_, std::move(receive))]() mutable {
                         with_both(*engine_, from, to, [&](const Tensor& in, Tensor& out) {
                           engine_->reduce_scatter(in, out, op);
                         });
                       });
}

void Comm::reduce(const Tensor& send, Tensor receive, int root, ReduceOp op) {
  check_rank("reduce", *this, "root", root);
  check("reduce", send);
  if (rank_ == root) check_same("reduce", send, receive);
  HM_REQUIRE(rank_ != root || send.raw() == receive.raw() || !overlap(send, receive),
             "[reduce] send and receive overlap, but are not the same");
  if (size_ == 1) return calls_->check_not_failed(), copy_unless_in_place(send, receive);
  if (send.numel() == 0) return calls_->check_not_failed();
  const Input from(*engine_, send);
  Output to(*engine_, std::move(receive));
  calls_->run("reduce", send.bytes(), [&] {
    with_input(*engine_, from, [&](const Tensor& in) {
      if (rank_ != root) return engine_->reduce(in, to.t, root, op);
      with_output(*engine_, to, false, [&](Tensor& out) { engine_->reduce(in, out, root, op); });
    });
  });
}

void Comm::gather(const Tensor& send, Tensor receive, int root) {
  check_rank("gather", *this, "root", root);
  if (rank_ == root) check_pair("gather", *this, send, receive);
  check("gather", send);
  if (size_ == 1) return calls_->check_not_failed(), copy_unless_in_place(send, receive);
  if (send.numel() == 0) return calls_->check_not_failed();
  const Input from(*engine_, send);
  Output to(*engine_, std::move(receive));
  calls_->run("gather", send.bytes() * size_, [&] {
    with_input(*engine_, from, [&](const Tensor& in) {
      if (rank_ != root) return engine_->gather(in, to.t, root);
      with_output(*engine_, to, false, [&](Tensor& out) { engine_->gather(in, out, root); });
    });
  });
}

void Comm::scatter(const Tensor& send, Tensor receive, int root) {
  check_rank("scatter", *this, "root", root);
  if (rank_ == root) check_pair("scatter", *this, receive, send);
  check("scatter", receive);
  if (size_ == 1) return calls_->check_not_failed(), copy_unless_in_place(send, receive);
  if (receive.numel() == 0) return calls_->check_not_failed();
  const Input from(*engine_, send);
  Output to(*engine_, std::move(receive));
  calls_->run("scatter", to.t.bytes() * size_, [&] {
    with_output(*engine_, to, false, [&](Tensor& out) {
      if (rank_ != root) return engine_->scatter(send, out, root);
      with_input(*engine_, from, [&](const Tensor& in) { engine_->scatter(in, out, root); });
    });
  });
}

void Comm::all_to_all(const Tensor& send, Tensor receive) {
  check_same("all_to_all", send, receive);
  HM_REQUIRE(send.numel() % size_ == 0, "[all_to_all] {} elements do not divide by {} ranks",
             send.numel(), size_);
  HM_REQUIRE(!overlap(send, receive), "[all_to_all] send and receive overlap");
  if (size_ == 1) return calls_->check_not_failed(), copy_unless_in_place(send, receive);
  if (send.numel() == 0) return calls_->check_not_failed();
  const Input from(*engine_, send);
  Output to(*engine_, std::move(receive));
  calls_->run("all_to_all", send.bytes(), [&] {
    with_both(*engine_, from, to,
              [&](const Tensor& in, Tensor& out) { engine_->all_to_all(in, out); });
  });
}

void Comm::send(const Tensor& t, int peer, int tag) {
  check_peer("send", *this, t, peer);
  if (t.numel() == 0) return calls_->check_not_failed();
  const Output operand(*engine_, t);
  calls_->run("send", t.bytes(), [&] {
    with_input(*engine_, operand, [&](const Tensor& in) { engine_->send(in, peer, tag); });
  });
}

void Comm::receive(Tensor t, int peer, int tag) {
  check_peer("receive", *this, t, peer);
  if (t.numel() == 0) return calls_->check_not_failed();
  Output operand(*engine_, std::move(t));
  calls_->run("receive", operand.t.bytes(), [&] {
    with_output(*engine_, operand, false, [&](Tensor& out) { engine_->receive(out, peer, tag); });
  });
}

Work Comm::send_async(Tensor t, int peer, int tag) {
  check_peer("send", *this, t, peer);
  if (t.numel() == 0) return calls_->check_not_failed(), Work();
  const int64_t bytes = t.bytes();
  return calls_->start("send", bytes, [=, this, operand = Output(*engine_, std::move(t))] {
    with_input(*engine_, operand, [&](const Tensor& in) { engine_->send(in, peer, tag); });
  });
}

Work Comm::receive_async(Tensor t, int peer, int tag) {
  check_peer("receive", *this, t, peer);
  if (t.numel() == 0) return calls_->check_not_failed(), Work();
  const int64_t bytes = t.bytes();
  return calls_->start("receive", bytes,
                       [=, this, operand = Output(*engine_, std::move(t))]() mutable {
                         with_output(*engine_, operand, false,
                                     [&](Tensor& out) { engine_->receive(out, peer, tag); });
                       });
}

void Comm::barrier() {
  if (size_ == 1) return calls_->check_not_failed();
  calls_->run("barrier", 0, [&] { engine_->barrier(); });
}

void Comm::assemble() {
  if (size_ > 1) calls_->run("split", 0, [this] { engine_->assemble(); });
}

std::unique_ptr<Comm> Comm::split(int color, int key) {
  assemble();
  Tensor mine = Tensor::from<int64_t>({color, key}, {2});
  Tensor all = Tensor::empty({2 * size_}, Dtype::i64);
  all_gather(mine, all);
  const int64_t* const values = all.data<int64_t>();
  return form_groups([values](int rank) {
    return ColorAndKey{values[2 * rank], values[2 * rank + 1]};
  });
}

std::unique_ptr<Comm> Comm::split(const std::function<ColorAndKey(int rank)>& of) {
  assemble();
  return form_groups(of);
}

std::unique_ptr<Comm> Comm::form_groups(const std::function<ColorAndKey(int rank)>& of) {
  const int color = of(rank_).first;
  const std::string id = fmt::format("{}.{}", ++splits_, color);
  if (color < 0) return nullptr;

  std::vector<int> members;
  for (int r = 0; r < size_; ++r)
    if (of(r).first == color) members.push_back(r);
  std::ranges::stable_sort(members, {}, [&](int r) { return of(r).second; });
  const int index = static_cast<int>(std::ranges::find(members, rank_) - members.begin());
  std::unique_ptr<CommEngine> engine;
  calls_->run("split", 0, [&] { engine = engine_->split(members, index, id); });
  engine->set_roster(engine_->roster().of(members));
  auto group = std::make_unique<Comm>(std::move(engine));
  group->set_timeout(timeout());
  return group;
}

}  // namespace howmany
