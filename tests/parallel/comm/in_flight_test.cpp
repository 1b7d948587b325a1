// SPDX-License-Identifier: Apache-2.0
// Tests a Comm whose engine leaves calls in flight, as nccl does on GPUs.
#include <gtest/gtest.h>

#include <atomic>

#include "parallel/comm/engine.h"

namespace howmany {
namespace {

// An engine whose sums never complete and whose max throws.
class Flying : public CommEngine {
 public:
  Flying() : CommEngine(0, 2) {}
  std::string_view name() const override { return "flying"; }

  void all_reduce(Tensor&, ReduceOp op) override {
    if (op == ReduceOp::max) throw EngineError(1, "cannot");
    ++asked_;
  }
  void broadcast(Tensor&, int) override {}
  void all_gather(const Tensor&, Tensor&) override {}
  void reduce_scatter(const Tensor&, Tensor&, ReduceOp) override {}
  void reduce(const Tensor&, Tensor&, int, ReduceOp) override {}
  void gather(const Tensor&, Tensor&, int) override {}
  void scatter(const Tensor&, Tensor&, int) override {}
  void all_to_all(const Tensor&, Tensor&) override {}
  void send(const Tensor&, int, int) override {}
  void receive(Tensor&, int, int) override {}
  void barrier() override {}
  std::unique_ptr<CommEngine> split(const std::vector<int>&, int, const std::string&) override {
    return nullptr;
  }
  void abort(std::string_view) noexcept override { aborted_ = true; }

  int64_t submitted() const override { return asked_; }
  std::shared_ptr<void> last_event() const override {
    return asked_ > ended_ ? std::make_shared<int>() : nullptr;
  }
  int64_t poll() override {
    if (!aborted_ || ended_ == asked_) return ended_;
    ended_ = asked_.load();
    throw EngineError(-1, "aborted");
  }
  bool flies() const { return asked_ > ended_; }

 private:
  std::atomic<int64_t> asked_ = 0, ended_ = 0;
  std::atomic<bool> aborted_ = false;
};

TEST(InFlight, NothingIsAnyMoreWhenACallBesideItHasFailed) {
  auto engine = std::make_unique<Flying>();
  const Flying& flying = *engine;
  Comm comm(std::move(engine));
  const Work sum = comm.all_reduce_async(Tensor::full({4}, 1));
  const Work largest = comm.all_reduce_async(Tensor::full({4}, 1), ReduceOp::max);
  EXPECT_THROW(largest.finish(), CommError);
  EXPECT_THROW(sum.finish(), CommError);
  EXPECT_FALSE(flying.flies()) << "the memory of its tensors is somebody else's now";
}

TEST(InFlight, ACallThatDoesNotFlyWaitsForThoseThatDo) {
  auto engine = std::make_unique<Flying>();
  const Flying& flying = *engine;
  Comm comm(std::move(engine));
  const Work sum = comm.all_reduce_async(Tensor::full({4}, 1));
  EXPECT_FALSE(sum.ready());
  EXPECT_THROW(comm.all_reduce(Tensor::full({4}, 1), ReduceOp::max), CommError);
  EXPECT_FALSE(flying.flies());
  EXPECT_TRUE(comm.failed());
}

}  // namespace
}  // namespace howmany
