// SPDX-License-Identifier: Apache-2.0
#include "examples/adding/delayed.h"

#include <thread>

namespace howmany {
namespace {

// Passes every call on to another engine after a fixed delay, as a link with that latency would.
class Delayed : public CommEngine {
 public:
  Delayed(std::unique_ptr<CommEngine> inner, std::chrono::microseconds delay)
      : CommEngine(inner->rank(), inner->size()), inner_(std::move(inner)), delay_(delay) {}

  std::string_view name() const override { return "delayed"; }

  void all_reduce(Tensor& t, ReduceOp op) override { next().all_reduce(t, op); }
  void broadcast(Tensor& t, int root) override { next().broadcast(t, root); }
  void all_gather(const Tensor& send, Tensor& receive) override {
    next().all_gather(send, receive);
  }
  void reduce_scatter(const Tensor& send, Tensor& receive, ReduceOp op) override {
    next().reduce_scatter(send, receive, op);
  }
  void reduce(const Tensor& send, Tensor& receive, int root, ReduceOp op) override {
    next().reduce(send, receive, root, op);
  }
  void gather(const Tensor& send, Tensor& receive, int root) override {
    next().gather(send, receive, root);
  }
  void scatter(const Tensor& send, Tensor& receive, int root) override {
    next().scatter(send, receive, root);
  }
  void all_to_all(const Tensor& send, Tensor& receive) override {
    next().all_to_all(send, receive);
  }
  void send(const Tensor& t, int peer, int tag) override { next().send(t, peer, tag); }
  void receive(Tensor& t, int peer, int tag) override { next().receive(t, peer, tag); }
  void barrier() override { next().barrier(); }

  std::unique_ptr<CommEngine> split(const std::vector<int>& members, int index,
                                    const std::string& id) override {
    return std::make_unique<Delayed>(inner_->split(members, index, id), delay_);
  }
  void abort(std::string_view why) noexcept override { inner_->abort(why); }

 private:
  // The inner engine, once the delay is over. It must end a call at the timeout of this one.
  CommEngine& next() {
    std::this_thread::sleep_for(delay_);
    inner_->set_timeout(timeout());
    return *inner_;
  }

  std::unique_ptr<CommEngine> inner_;
  const std::chrono::microseconds delay_;
};

}  // namespace

std::unique_ptr<CommEngine> comms::delayed(std::unique_ptr<CommEngine> inner,
                                           std::chrono::microseconds delay) {
  return std::make_unique<Delayed>(std::move(inner), delay);
}

}  // namespace howmany
