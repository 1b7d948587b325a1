// SPDX-License-Identifier: Apache-2.0
// Several nccl calls in flight on a GPU while the host continues: waits for them, and their
// failures.
// timeout: 300
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>

#include "core/gpu/gpu.h"
#include "parallel/sync/agreement.h"
#include "tests/support/message_of.h"
#include "tests/support/nccl_ranks.h"
#include "tests/support/training.h"

namespace howmany {
namespace {

using namespace std::chrono_literals;
using namespace testing_support;
using testing::AllOf;
using testing::HasSubstr;

using InFlight = NcclOnStreams;

Tensor ones(const Comm& comm) { return Tensor::full({1000}, 1, Dtype::f32, gpu_of(comm)); }

// Starts calls for which only the GPU waits.
std::vector<Work> several(Comm& comm, const Tensor& t, int count = 3) {
  std::vector<Work> works;
  while (std::ssize(works) < count) works.push_back(comm.all_reduce_async(t));
  for (Work& work : works) work.wait();
  return works;
}

// Rank 0 of two makes calls in which rank 1 does not take part.
class LatePeer : public InFlight {
 protected:
  template <typename Begin>
  void meet(const Begin& begin) {
    std::latch gave_up(1);
    run(2, [&](Comm& comm) {
      comm.set_timeout(300ms);
      if (comm.rank() == 1) return gave_up.wait();
      Tensor t = ones(comm);
      begin(comm, t, several(comm, t));
      gave_up.count_down();
    });
  }
};

TEST_F(InFlight, WorkAfterWaitSeesTheSum) {
  std::latch asked(1);
  run(2, [&](Comm& comm) {
    Tensor t = ones(comm);
    if (comm.rank() == 1) {
      asked.wait();
      return comm.all_reduce(t);
    }
    Work work = comm.all_reduce_async(t);
    work.wait();
    const Tensor copy = t.to(Dtype::f64);
    EXPECT_FALSE(work.ready());
    asked.count_down();
    EXPECT_EQ(copy.rows(999, 1000).item(), 2);
    work.finish();
    EXPECT_TRUE(work.ready());
  });
}

TEST_F(InFlight, SeveralCallsAreEnqueuedAtOnce) {
  run(2, [&](Comm& comm) {
    Tensor t = ones(comm);
    Gate gate(comm.rank(), t, static_cast<float>(comm.rank() + 1));
    const std::vector<Work> works = several(comm, t, 4);
    const Tensor after = t.clone();
    EXPECT_TRUE(comes([] { return fake().asked == 2 * 4; }));
    EXPECT_EQ(fake().done, 0);
    gate.open();
    EXPECT_EQ(after.rows(0, 1).item(), 3 * 2 * 2 * 2);
    comm.finish();
    for (const Work& work : works) EXPECT_TRUE(work.ready());
  });
}

TEST_F(InFlight, HostTensorsKeepTheOrder) {
  run(2, [](Comm& comm) {
    Tensor there = ones(comm), here = Tensor::full({3}, comm.rank() + 1);
    const std::vector<Work> works = several(comm, there);
    Work last = comm.all_reduce_async(here);
    last.wait();
    EXPECT_EQ(here.rows(2, 3).item(), 3);
    for (const Work& work : works) EXPECT_TRUE(work.ready());
  });
}

TEST_F(InFlight, AllFailIfARankDies) {
  std::latch begun(2);
  run(3, [&](Comm& comm) {
    Tensor t = ones(comm);
    if (comm.rank() == 1) {
      comm.all_reduce(t);
      begun.wait();
      return comm.abort("its disk is full");
    }
    const std::vector<Work> works = several(comm, t);
    works[0].finish();
    begun.count_down();
    for (size_t i = 1; i < works.size(); ++i)
      EXPECT_THAT(message_of<CommError>([&] { works[i].finish(); }),
                  AllOf(HasSubstr("[all_reduce]"), HasSubstr("peer 1"), HasSubstr("disk is full")));
    EXPECT_THROW(comm.barrier(), CommError);
    EXPECT_EQ(ones(comm).rows(0, 1).item(), 1) << "the GPU goes on";
  });
}

TEST_F(LatePeer, IsNamedByEveryCallAndTheLoss) {
  meet([](Comm& comm, Tensor& t, const std::vector<Work>& works) {
    const StepLoss loss(Tensor::full({1}, 1, Dtype::f32, gpu_of(comm)), works.back());
    const auto late = AllOf(HasSubstr("[all_reduce]"), HasSubstr("peer 1 failed: nothing came"));
    EXPECT_THAT(message_of<CommError>([&] { loss.value(); }), late);
    StepLoss other(Tensor::full({1}, 1, Dtype::f32, gpu_of(comm)));
    other.add(works.front());
    EXPECT_THAT(message_of<CommError>([&] { other.value(); }), late);
    for (const Work& work : works) EXPECT_THAT(message_of<CommError>([&] { work.finish(); }), late);
    EXPECT_THAT(message_of<CommError>([&] { comm.finish(); }), late);
    EXPECT_THAT(message_of<CommError>([&] { comm.all_reduce_async(t).wait(); }), late);
  });
}

TEST_F(LatePeer, TimeoutReleasesHostRead) {
  meet([](Comm&, Tensor& t, const std::vector<Work>& works) {
    t.rows(0, 1).item();  // undefined, because the calls failed
    EXPECT_THROW(works[0].finish(), CommError);
  });
}

// The timeout of a call starts when the previous calls are complete.
TEST_F(InFlight, TheTimeoutIsPerCall) {
  run(2, [](Comm& comm) {
    comm.set_timeout(3s);
    Tensor t = ones(comm);
    if (comm.rank() == 0) return several(comm, t, 4).back().finish();
    for (int call = 0; call < 4; ++call) {
      std::this_thread::sleep_for(1s);
      comm.all_reduce(t);
    }
  });
}

// Staging for the copy would need an allocation that synchronizes with the GPU.
TEST_F(LatePeer, HostTensorIsNotStagedBefore) {
  meet([](Comm& comm, Tensor&, const std::vector<Work>& works) {
    Tensor huge = Tensor::empty({int64_t{1} << 28});
    Work last = comm.all_reduce_async(huge);
    EXPECT_THAT(message_of<CommError>([&] { last.wait(); }), HasSubstr("peer 1 failed: nothing"));
    EXPECT_THROW(works[0].finish(), CommError);
    EXPECT_EQ(ones(comm).rows(0, 1).item(), 1) << "the GPU goes on";
  });
}

TEST_F(InFlight, DestroyingACommCompletesWaitedCalls) {
  std::latch leaving(1);
  run(2, [&](Comm& comm) {
    auto group = comm.split(0);
    Tensor t = ones(comm);
    if (comm.rank() == 1) leaving.wait();
    const std::vector<Work> works = several(*group, t);
    if (comm.rank() == 0) leaving.count_down();
    group.reset();
    for (const Work& work : works) EXPECT_NO_THROW(work.finish());
    EXPECT_EQ(t.rows(0, 1).item(), 8);
  });
}

TEST_F(InFlight, DestroyingACommFailsOtherCalls) {
  std::latch left(1);
  run(2, [&](Comm& comm) {
    auto group = comm.split(0);
    Tensor t = ones(comm);
    if (comm.rank() == 0) {
      std::vector<Work> works{group->all_reduce_async(t), group->all_reduce_async(t)};
      works[0].wait();
      group.reset();
      EXPECT_THAT(message_of<CommError>([&] { works[1].finish(); }), HasSubstr("left while"));
      return left.count_down();
    }
    left.wait();
    EXPECT_THAT(message_of<CommError>([&] { several(*group, t).back().finish(); }),
                HasSubstr("left while an operation was running"));
  });
}

// Steps of ddp with one replica per GPU. The batches are on the GPUs before the steps.
class Trained {
 public:
  explicit Trained(Comm& comm, const std::string& model)
      : mode_(make_mode("ddp", {.model = model_named(model),
                                .comm = &comm,
                                .devices = {gpu_of(comm)},
                                .sync = {.bucket_bytes = 600, .first_bucket_bytes = 600},
                                .sync_batchnorm = true})) {
    for (int step = 0; step < 4; ++step) {
      const Batch whole = global_batch(model_named(model), 8, step);
      batches_.push_back(rows_of(whole, mode_->share()));
      batches_.back().x = batches_.back().x.to(gpu_of(comm));
      batches_.back().y = batches_.back().y.to(gpu_of(comm));
    }
  }
  StepLoss step() {
    StepLoss loss = mode_->step(batches_.at(next_++));
    optimizer_->step(mode_->params());
    return loss;
  }
  Mode& mode() { return *mode_; }

 private:
  std::unique_ptr<Mode> mode_;
  std::unique_ptr<Optimizer> optimizer_ = make_optimizer("adamw", {.lr = 0.01});
  std::vector<Batch> batches_;
  size_t next_ = 0;
};

TEST_F(InFlight, ADdpStepDoesNotWaitForTheGpu) {
  std::vector<std::string> models = kModels;
  models.push_back("batchnorm");  // also shares its statistics
  for (const std::string& model : models) {
    std::barrier<> met(2);
    run(2, [&](Comm& comm) {
      Trained trained(comm, model), other(comm, model);
      std::vector<double> want;
      for (int step = 0; step < 4; ++step) want.push_back(other.step().value());
      std::vector<StepLoss> got{trained.step()};
      got[0].value();  // warm-up: creates the state of later steps
      comm.finish();
      met.arrive_and_wait();
      const int before = hm_fake_gpu_waits();
      met.arrive_and_wait();
      {
        Gate gate(comm.rank(), ones(comm), 1);
        for (int step = 1; step < 4; ++step) got.push_back(trained.step());
        met.arrive_and_wait();
        EXPECT_EQ(hm_fake_gpu_waits(), before) << model;
      }
      for (size_t step = 0; step < want.size(); ++step)
        EXPECT_EQ(got[step].value(), want[step]) << model << " step " << step;
    });
  }
}

TEST_F(InFlight, AgreementDoesNotWaitForTheGpu) {
  run(2, [](Comm& comm) {
    Agreement agreement(comm);
    EXPECT_FALSE(agreement.any(true)) << "the answer to the question before";
    {
      Gate gate(comm.rank(), ones(comm), 1);
      EXPECT_TRUE(agreement.any(comm.rank() == 1));
    }
    EXPECT_TRUE(agreement.any(false));
    EXPECT_FALSE(agreement.any(false));
  });
}

TEST_F(InFlight, AFailedStepHasNoParameters) {
  std::latch gave_up(1);
  run(2, [&](Comm& comm) {
    Trained trained(comm, kModels[1]);
    comm.set_timeout(300ms);
    if (comm.rank() == 1) return gave_up.wait();
    const StepLoss loss = trained.step();
    EXPECT_THROW(trained.mode().gather(), CommError);
    EXPECT_THROW(loss.value(), CommError);
    EXPECT_THROW(trained.step(), CommError);
    gave_up.count_down();
  });
}

}  // namespace
}  // namespace howmany
