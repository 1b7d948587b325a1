// SPDX-License-Identifier: Apache-2.0
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/scatter.h>

#include <csignal>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "parallel/comm/comm_list.h"
#include "parallel/engines/combine.h"
#include "parallel/engines/gloo_device.h"
#include "parallel/engines/gloo_failure_board.h"
#include "parallel/engines/gloo_threads.h"
#include "parallel/launch/peer_user.h"

namespace howmany {
namespace {

using Milliseconds = std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// For Gloo's own timeouts. They count per message, and do not stop while the process is suspended,
// so attempt() limits each call instead.
constexpr Milliseconds kUnlimited = std::chrono::hours(48);

// Slots of messages. Gloo's own collectives use slots whose top byte is at most 8.
constexpr uint64_t kMessages = uint64_t{0x10} << 56;

// Returns a tag from the size, dtype and arguments of a call. If the ranks' calls differ, their
// messages do not match and the call times out. With equal tags Gloo would write half a buffer, or
// end the process if a buffer is too short.
uint32_t terms_of(const Tensor& t, int with = 0) {
  const uint64_t terms = (static_cast<uint64_t>(t.bytes()) << 16) +
                         (static_cast<uint64_t>(with) << 4) + static_cast<uint64_t>(t.dtype());
  return static_cast<uint32_t>(terms * 0x9e37'79b9'7f4a'7c15 >> 32);  // Fibonacci hashing
}

uint8_t* bytes_of(Tensor& t) { return static_cast<uint8_t*>(t.mutable_raw()); }
// Gloo takes no const pointers, but does not write to inputs.
uint8_t* bytes_of(const Tensor& t) {
  return static_cast<uint8_t*>(const_cast<void*>(t.raw()));  // NOLINT
}
size_t size_of(const Tensor& t) { return static_cast<size_t>(t.bytes()); }

// Removes the source file from Gloo's message, and the lines after the first.
std::string plain(std::string_view text) {
  const size_t end = text.find("] ");
  if (text.starts_with('[') && end != text.npos) text.remove_prefix(end + 2);
  return std::string(text.substr(0, text.find('\n')));
}

class Gloo : public CommEngine {
 public:
  Gloo(int rank, int size, std::shared_ptr<Rendezvous> rendezvous, std::string prefix,
       Milliseconds timeout)
      : CommEngine(rank, size),
        rendezvous_(std::move(rendezvous)),
        prefix_(std::move(prefix)),
        board_(rendezvous_, prefix_, rank, size) {
    set_timeout(timeout);
    if (size > 1) connect();
  }

  std::string_view name() const override { return "gloo"; }

  void all_reduce(Tensor& t, ReduceOp op) override {
    attempt([&] {
      ::gloo::AllreduceOptions options(context_);
      options.setTag(terms_of(t, static_cast<int>(op)));
      set_output(options, t);
      options.setReduceFunction(combine_of(t.dtype(), op));
      options.setTimeout(kUnlimited);
      ::gloo::allreduce(options);
    });
  }

  void broadcast(Tensor& t, int root) override {
    attempt([&] {
      ::gloo::BroadcastOptions options(context_);
      options.setTag(terms_of(t, root));
      options.setOutput(bytes_of(t), size_of(t));
      options.setRoot(root);
      options.setTimeout(kUnlimited);
      ::gloo::broadcast(options);
    });
  }

  void all_gather(const Tensor& send, Tensor& receive) override {
    attempt([&] {
      ::gloo::AllgatherOptions options(context_);
      options.setTag(terms_of(send));
      if (!is_own_part(send, receive, rank())) options.setInput(bytes_of(send), size_of(send));
      options.setOutput(bytes_of(receive), size_of(receive));
      options.setTimeout(kUnlimited);
      ::gloo::allgather(options);
    });
  }

  // Gloo's reduce_scatter does not take every count, so this is an all_to_all and a local sum in
  // rank order.
  void reduce_scatter(const Tensor& send, Tensor& receive, ReduceOp op) override {
    Tensor parts = Tensor::empty(send.shape(), send.dtype());
    all_to_all(send, parts);
    const Combine combine = combine_of(send.dtype(), op);
    const auto count = static_cast<size_t>(receive.numel());
    const uint8_t* const part = bytes_of(std::as_const(parts));
    uint8_t* const sum = bytes_of(receive);
    combine(sum, part, part + size_of(receive), count);
    for (int r = 2; r < size(); ++r) combine(sum, sum, part + r * receive.bytes(), count);
  }

  // Gloo requires an output on every rank, and sums in it.
  void reduce(const Tensor& send, Tensor& receive, int root, ReduceOp op) override {
    attempt([&] {
      Tensor sum = rank() == root ? receive : Tensor::empty(send.shape(), send.dtype());
      ::gloo::ReduceOptions options(context_);
      options.setTag(terms_of(send, root * kReduceOps + static_cast<int>(op)));
      if (sum.raw() != send.raw()) set_input(options, send);
      set_output(options, sum);
      options.setRoot(root);
      options.setReduceFunction(combine_of(send.dtype(), op));
      options.setTimeout(kUnlimited);
      ::gloo::reduce(options);
    });
  }

  void gather(const Tensor& send, Tensor& receive, int root) override {
    attempt([&] {
      ::gloo::GatherOptions options(context_);
      options.setTag(terms_of(send, root));
      options.setInput(bytes_of(send), size_of(send));
      if (rank() == root) options.setOutput(bytes_of(receive), size_of(receive));
      options.setRoot(root);
      options.setTimeout(kUnlimited);
      ::gloo::gather(options);
    });
  }

  void scatter(const Tensor& send, Tensor& receive, int root) override {
    attempt([&] {
      ::gloo::ScatterOptions options(context_);
      options.setTag(terms_of(receive, root));
      std::vector<uint8_t*> parts;
      for (int r = 0; r < size() && rank() == root; ++r)
        parts.push_back(bytes_of(send) + r * receive.bytes());
      options.setInputs(parts, size_of(receive));
      options.setOutput(bytes_of(receive), size_of(receive));
      options.setRoot(root);
      options.setTimeout(kUnlimited);
      ::gloo::scatter(options);
    });
  }

  void all_to_all(const Tensor& send, Tensor& receive) override {
    attempt([&] {
      ::gloo::AlltoallOptions options(context_);
      options.setTag(terms_of(send));
      options.setInput(bytes_of(send), size_of(send));
      options.setOutput(bytes_of(receive), size_of(receive));
      options.setTimeout(kUnlimited);
      ::gloo::alltoall(options);
    });
  }

  void send(const Tensor& t, int peer, int tag) override {
    attempt([&] {
      const auto buffer = context_->createUnboundBuffer(bytes_of(t), size_of(t));
      buffer->send(peer, slot_of(t, tag));
      buffer->waitSend(kUnlimited);
    });
  }

  void receive(Tensor& t, int peer, int tag) override {
    attempt([&] {
      const auto buffer = context_->createUnboundBuffer(bytes_of(t), size_of(t));
      buffer->recv(peer, slot_of(t, tag));
      buffer->waitRecv(kUnlimited);
    });
  }

  void barrier() override {
    attempt([&] {
      ::gloo::BarrierOptions options(context_);
      options.setTimeout(kUnlimited);
      ::gloo::barrier(options);
    });
  }

  // Each group has its own transport thread.
  std::unique_ptr<CommEngine> split(const std::vector<int>& members, int index,
                                    const std::string& id) override {
    return std::make_unique<Gloo>(index, static_cast<int>(members.size()), rendezvous_,
                                  prefix_ + "/" + id, timeout());
  }

  void abort(std::string_view why) noexcept override {
    if (!context_) return;
    board_.abort(why);
    close();
  }

 private:
  void connect() {
    rendezvous_->set_deadline(Clock::now() + timeout());
    ::gloo::rendezvous::PrefixStore scoped(prefix_, *rendezvous_);
    auto context = std::make_shared<::gloo::rendezvous::Context>(rank(), size());
    context->setTimeout(std::max(timeout() / 5, Milliseconds(1)));  // Gloo waits five times longer
    const NewConnections connections;
    auto device = make_gloo_device(rendezvous_->address());
    try {
      context->connectFullMesh(scoped, device);
    } catch (const std::exception& e) {
      throw EngineError(absent_rank(), plain(e.what()));
    }
    // Gloo accepts the first connection to each of its ports, from any process of the host.
    if (!connections.all_allowed())
      throw EngineError(-1, "another user of this host connected in the place of a rank");
    context_ = std::move(context);
    barrier();  // rank 0 may serve the rendezvous, so no rank may leave before all have connected
  }

  // Returns a rank that never reached the rendezvous, or -1.
  int absent_rank() {
    for (int r = 0; r < size(); ++r)
      if (!board_.has(std::to_string(r))) return r;
    return -1;
  }

  static uint64_t slot_of(const Tensor& t, int tag) {
    return kMessages + (uint64_t{terms_of(t) & 0xff'ffff} << 32) + static_cast<uint32_t>(tag);
  }

  template <typename Call>
  void attempt(Call call) {
    bool late = false;
    try {
      threads_.run(call, timeout(), [&] {
        late = true;
        close();
      });
    } catch (const std::exception& e) {
      fail(late ? "nothing came" : plain(e.what()));
    }
  }

  // Closing the connections fails the calls of the peers.
  [[noreturn]] void fail(const std::string& what) {
    board_.fail(what);
    close();
    throw board_.find_cause(what);
  }

  // Ends every operation, here and on the peers: a wait that times out makes Gloo close all pairs.
  void close() noexcept {
    try {
      context_->createUnboundBuffer(nullptr, 0)->waitRecv(Milliseconds(0));
    } catch (const std::exception&) {
    }
  }

  template <typename Options>
  static void set_output(Options& options, Tensor& t) {
    switch (t.dtype()) {
#define X(name, type) \
  case Dtype::name:   \
    return options.setOutput(t.mutable_data<type>(), static_cast<size_t>(t.numel()));
      HM_DTYPES(X)
#undef X
    }
  }
  template <typename Options>
  static void set_input(Options& options, const Tensor& t) {
    switch (t.dtype()) {
#define X(name, type) \
  case Dtype::name:   \
    return options.setInput(const_cast<type*>(t.data<type>()), static_cast<size_t>(t.numel()));
      HM_DTYPES(X)  // NOLINT: only read
#undef X
    }
  }

  const std::shared_ptr<Rendezvous> rendezvous_;
  const std::string prefix_;
  FailureBoard board_;
  std::shared_ptr<::gloo::Context> context_;
  GlooThreads threads_;
};

// Makes a write to a closed connection an error instead of the end of the process.
void ignore_sigpipe() {
  struct sigaction current {};
  if (sigaction(SIGPIPE, nullptr, &current) == 0 && current.sa_handler == SIG_DFL)
    std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace

std::unique_ptr<CommEngine> comms::gloo(const Place& place, Milliseconds timeout) {
  if (place.world == 1) return std::make_unique<Gloo>(0, 1, nullptr, "", timeout);
  static std::once_flag once;
  std::call_once(once, ignore_sigpipe);
  const std::shared_ptr<Rendezvous> rendezvous =
      make_rendezvous(place.rendezvous, place.rank, Clock::now() + timeout);
  return std::make_unique<Gloo>(place.rank, place.world, rendezvous, "world", timeout);
}

}  // namespace howmany
