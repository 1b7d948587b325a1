// SPDX-License-Identifier: Apache-2.0
// Modes that divide the layers: behaviour other than numerical equivalence with `single`.
// timeout: 180
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <mutex>

#include "core/base/error.h"
#include "parallel/launch/launch.h"
#include "tests/support/training.h"

namespace howmany {
namespace {

using namespace testing_support;
using namespace std::chrono_literals;
using testing::HasSubstr;

// Returns its input until it is armed; then it fails.
std::atomic<bool> armed = false;

class Bomb final : public Layer {
 public:
  Tensor forward(const Tensor& x, Tape&) override {
    if (armed) throw std::runtime_error("the bomb went off");
    return x;
  }
  Tensor backward(const Tensor& dy, Tape&) override { return dy; }
  Shape output_shape(const Shape& x) const override { return x; }
  std::string describe() const override { return "bomb()"; }
  LayerPtr clone() const override { return std::make_unique<Bomb>(); }
};

// A model of four units. The last unit contains the layer that fails.
ModelSpec bombed_model() {
  std::vector<LayerPtr> parts, last;
  for (int i = 0; i < 3; ++i) parts.push_back(layers::linear(6, 6));
  parts.push_back(std::make_unique<Bomb>());
  return {
      .name = "bombed", .layer = layers::sequential(std::move(parts)), .sample = {6}, .classes = 6};
}

Batch share_of_batch(const ModelSpec& model, Mode& mode, int64_t rows = 12) {
  return rows_of(global_batch(model, rows, 0), mode.share());
}

std::vector<Device> devices_here(std::string_view mode, int ranks, const Comm& comm) {
  const int each = mode_traits(mode).over_devices ? 2 : 1;
  std::vector<Device> devices = cpus(ranks * each);
  return {devices.begin() + comm.rank() * each, devices.begin() + (comm.rank() + 1) * each};
}

const char* const kModes[] = {"pipeline:micro_batches=4", "hybrid:stages=2,micro_batches=3",
                              "hybrid:across=model,micro_batches=2",
                              "hybrid:stages=2,ways=2,micro_batches=3"};

struct Ends {
  int survived = 0, own = 0, comm_errors = 0;
};

// Runs one step on four ranks, then one that fails.
Ends ends_when_a_stage_throws(const std::string& mode_text, std::string_view backend) {
  Ends ends;
  std::mutex mutex;
  std::latch stepped(4);
  armed = false;
  const auto body = [&](Comm& comm) {
    const auto mode = make_mode(
        mode_text,
        {.model = bombed_model(), .comm = &comm, .devices = devices_here(mode_text, 4, comm)});
    const Batch batch = share_of_batch(bombed_model(), *mode);
    mode->step(batch);
    stepped.arrive_and_wait();
    armed = true;
    const auto count = [&](int Ends::*which) {
      const std::lock_guard lock(mutex);
      ++(ends.*which);
    };
    try {
      mode->step(batch);
      count(&Ends::survived);
    } catch (const CommError&) {
      count(&Ends::comm_errors);
    } catch (const std::runtime_error& e) {
      EXPECT_THAT(e.what(), HasSubstr("bomb"));
      count(&Ends::own);
    }
    EXPECT_THROW(mode->step(batch), std::exception);  // a failed mode stays failed
  };
  launch_threads(4, body, backend);
  armed = false;
  return ends;
}

TEST(Staged, AStageThatThrowsEndsEveryRankBeforeTheTimeout) {
  for (const std::string_view backend : thread_comm_names(4))
    for (const char* mode : kModes) {
      SCOPED_TRACE(fmt::format("{} over {}", mode, backend));
      const auto start = std::chrono::steady_clock::now();
      const Ends ends = ends_when_a_stage_throws(mode, backend);
      EXPECT_LT(std::chrono::steady_clock::now() - start, 25s);  // the timeout is 30 s
      EXPECT_EQ(ends.survived, 0);
      EXPECT_GE(ends.own, 1);
      EXPECT_EQ(ends.own + ends.comm_errors, 4);
    }
}

TEST(Staged, ARankThatHangsEndsTheOthersByTheTimeout) {
  for (const char* mode_text : kModes) {
    SCOPED_TRACE(mode_text);
    std::atomic<int> failed = 0;
    std::latch ended(3);
    launch_threads(4, [&](Comm& comm) {
      comm.set_timeout(300ms);
      const auto mode = make_mode(
          mode_text,
          {.model = bombed_model(), .comm = &comm, .devices = devices_here(mode_text, 4, comm)});
      if (comm.rank() == 1) return ended.wait();
      EXPECT_THROW(mode->step(share_of_batch(bombed_model(), *mode)), CommError);
      ++failed;
      ended.count_down();
    });
    EXPECT_EQ(failed, 3);
  }
}

TEST(Staged, ABatchTooSmallIsRefusedOnEveryRankAndTheModeGoesOn) {
  launch_threads(4, [](Comm& comm) {
    const auto mode = make_mode(
        "hybrid:stages=2",
        {.model = bombed_model(), .comm = &comm, .devices = {{DeviceType::cpu, comm.rank()}}});
    const ModelSpec model = bombed_model();
    Batch one = global_batch(model, 1, 0);
    EXPECT_THROW(mode->step(one), std::invalid_argument);
    EXPECT_GT(mode->step(share_of_batch(model, *mode)).value(), 0);
  });
}

std::string refusal(const std::string& mode, int ranks, std::vector<Device> devices = {}) {
  std::string message = "accepted";
  std::mutex mutex;
  launch_threads(ranks, [&](Comm& comm) {
    try {
      make_mode(mode, {.model = bombed_model(), .comm = &comm, .devices = devices});
    } catch (const std::invalid_argument& e) {
      const std::lock_guard lock(mutex);
      message = e.what();
    }
  });
  return message;
}

TEST(Staged, RefusesWhatCannotBeDivided) {
  EXPECT_THAT(refusal("pipeline", 5), HasSubstr("4 layers to divide, 5 stages were requested"));
  EXPECT_THAT(refusal("hybrid:stages=2", 3), HasSubstr("3 ranks do not divide into replicas of 2"));
  EXPECT_THAT(refusal("model", 1, cpus(5)), HasSubstr("take fewer"));
  EXPECT_THAT(refusal("model:placement=0-3:cpu:2", 1, cpus(1)),
              HasSubstr("cpu:2 is not one of the devices given"));
  EXPECT_THAT(refusal("model:placement=0-3:cpu:0", 1, cpus(2)),
              HasSubstr("cpu:1 is given, but no unit is placed there"));
  EXPECT_THAT(refusal("model:schedule=1f2b", 1), HasSubstr("did you mean '1f1b'?"));
  EXPECT_THAT(refusal("model:stages=2", 1), HasSubstr("unknown option 'stages'"));
  EXPECT_THAT(refusal("data_parallel:stages=2", 1),
              HasSubstr("data_parallel: unknown option 'stages' (known: recompute, accumulate)"));
  EXPECT_THAT(refusal("hybrid:across=ddp", 2), HasSubstr("neither pipeline nor model"));
  EXPECT_THAT(refusal("pipeline:recompute=yes", 1), HasSubstr("neither 0 nor 1"));
  EXPECT_THAT(refusal("pipeline:micro_batches=0", 1), HasSubstr("not a positive integer"));
}

TEST(Model, PutsTheUnitsWhereThePlacementSays) {
  const auto mode = make_mode("model:placement=0:cpu:1+1-2:cpu:0+3:cpu:1",
                              {.model = model_named("mlp:sizes=13-17-9-7-5"), .devices = cpus(2)});
  std::map<std::string, int> where;
  for (const Param* p : mode->params()) where[p->name] = p->value.device().index;
  EXPECT_EQ(where.at("0.weight"), 1);
  EXPECT_EQ(where.at("1.weight"), 0);
  EXPECT_EQ(where.at("2.weight"), 0);
  EXPECT_EQ(where.at("3.weight"), 1);
  EXPECT_EQ(train(*mode, "mlp:sizes=13-17-9-7-5").losses.size(), kBatches.size());
}

TEST(Ranks, AreAsManyAsTheModeNeedsForItsDevices) {
  EXPECT_EQ(ranks_of("single", 1), 1);
  EXPECT_EQ(ranks_of("data_parallel", 4), 1);
  EXPECT_EQ(ranks_of("model", 4), 1);
  EXPECT_EQ(ranks_of("pipeline", 4), 4);
  EXPECT_EQ(ranks_of("hybrid", 4), 4);
  EXPECT_EQ(ranks_of("hybrid:across=model", 4), 2);
  EXPECT_EQ(ranks_of("hybrid:across=model,stages=4", 8), 2);
  EXPECT_THROW(ranks_of("hybrid:across=model,stages=3", 4), std::invalid_argument);
}

TEST(Report, TellsTheTheoreticalBubbleAndAShareThatIsOne) {
  launch_threads(2, [](Comm& comm) {
    const auto mode = make_mode(
        "pipeline:micro_batches=3",
        {.model = bombed_model(), .comm = &comm, .devices = {{DeviceType::cpu, comm.rank()}}});
    mode->step(share_of_batch(bombed_model(), *mode));
    EXPECT_DOUBLE_EQ(mode->report().theoretical_bubble, 0.25);
    EXPECT_GT(mode->report().bubble, 0);
    EXPECT_LT(mode->report().bubble, 1);
    mode->step(share_of_batch(bombed_model(), *mode, 2));  // two rows: two micro-batches
    EXPECT_DOUBLE_EQ(mode->report().theoretical_bubble, 1.0 / 3);
  });
}

// Recompute runs forward twice, but must update running statistics once.
TEST(Recompute, MovesRunningStatisticsOnce) {
  std::map<std::string, Tensor> values[2];
  for (const int recompute : {0, 1}) {
    const auto mode = make_mode(fmt::format("model:recompute={}", recompute),
                                {.model = batchnorm_model(), .devices = cpus(2)});
    mode->step(global_batch(batchnorm_model(), 8, 0));
    values[recompute] = mode->gather();
  }
  for (const auto& [name, value] : values[0])
    EXPECT_TRUE(close(values[1].at(name), value, 0)) << name;
}

TEST(AsyncMessages, BothDirectionsOfAPairAreInFlightAtOnce) {
  for (const std::string_view backend : thread_comm_names(2))
    launch_threads(
        2,
        [](Comm& comm) {
          const auto down = comm.split(0), up = comm.split(0);
          Comm& out = comm.rank() == 0 ? *down : *up;
          Comm& in = comm.rank() == 0 ? *up : *down;
          const int peer = 1 - comm.rank();
          std::vector<Work> works;
          std::vector<Tensor> got;
          for (int i = 0; i < 3; ++i)
            works.push_back(out.send_async(Tensor::full({100'000}, comm.rank() * 10 + i), peer));
          for (int i = 0; i < 3; ++i) {
            got.push_back(Tensor::empty({100'000}));
            works.push_back(in.receive_async(got.back(), peer));
          }
          for (Work& work : works) work.wait();
          for (int i = 0; i < 3; ++i)
            EXPECT_TRUE(
                close(got[static_cast<size_t>(i)], Tensor::full({100'000}, peer * 10 + i), 0));
          EXPECT_THROW((void)out.send_async(Tensor(), peer), std::invalid_argument);
          EXPECT_THROW((void)out.send_async(Tensor::empty({1}), comm.rank()),
                       std::invalid_argument);
        },
        backend);
}

}  // namespace
}  // namespace howmany
