// SPDX-License-Identifier: Apache-2.0
// Bytes, memory and parts of mode `sharded`. mode_test.cpp compares its results with `single`.
#include <gmock/gmock.h>

#include "core/tensor/storage.h"
#include "parallel/comm/simulation.h"
#include "parallel/launch/launch.h"
#include "parallel/modes/mode.h"
#include "tests/support/message_of.h"
#include "tests/support/training.h"

namespace howmany {
namespace {

using namespace testing_support;

constexpr int kRanks = 4;
constexpr double kTolerance = 1e-12;
const std::string kModel = "mlp:sizes=256-512-512-512-256";
const std::vector<int64_t> kUnits = {256 * 512 + 512, 512 * 512 + 512, 512 * 512 + 512,
                                     512 * 256 + 256};

std::string text_of(int level) { return fmt::format("sharded:level={}", level); }

double all_units() {
  double sum = 0;
  for (const int64_t numel : kUnits) sum += static_cast<double>(numel);
  return sum;
}

// One of four ranks, of which the others do not exist.
class OneOfFour : public ::testing::TestWithParam<int> {
 protected:
  std::unique_ptr<Mode> make() {
    return make_mode(text_of(GetParam()),
                     {.model = make_model(kModel), .comm = comm_.get(), .devices = cpus(1)});
  }
  void step(Mode& mode) {
    const Batch whole = global_batch(make_model(kModel), kRanks, 0);
    std::ignore = mode.step(rows_of(whole, mode.share()));
    optimizer_->step(mode.params());
  }

  Simulation simulation_{{.world = kRanks}};
  const std::unique_ptr<Comm> comm_ = simulation_.join(1);
  const std::unique_ptr<Optimizer> optimizer_ =
      make_optimizer("sgd", {.lr = 0.01, .momentum = 0.9});
};

// A gather or a scatter sends (n-1)/n of the bytes from each rank. All-reduce sends them twice, so
// ddp sends 2 (n-1)/n. Level 3 gathers again before backward, except for the last unit.
TEST_P(OneOfFour, SendsWhatTheoryTells) {
  const std::unique_ptr<Mode> mode = make();
  step(*mode);
  simulation_.take_log();
  step(*mode);
  comm_->finish();
  double gathered = 0, scattered = 0, other = 0;
  for (const SimulatedCall& call : simulation_.take_log())
    (call.kind == "all_gather"       ? gathered
     : call.kind == "reduce_scatter" ? scattered
                                     : other) += call.bytes / sizeof(float);
  const double again = GetParam() == 3 ? all_units() - static_cast<double>(kUnits.back()) : 0;
  EXPECT_NEAR(gathered, all_units() + again, 0.002 * all_units());  // padding
  EXPECT_NEAR(scattered, all_units(), 0.002 * all_units());
  EXPECT_EQ(other, 2);  // the loss in f64
}

// Values, gradients and momentum; a full one has 4 bytes a parameter.
TEST_P(OneOfFour, KeepsItsPart) {
  const int64_t before = memory_use().in_use;
  const std::unique_ptr<Mode> mode = make();
  step(*mode);
  comm_->finish();
  const double kept = static_cast<double>(memory_use().in_use - before) / sizeof(float);
  const double whole = GetParam() == 1 ? 2 : GetParam() == 2 ? 1 : 0;
  // Level 3 keeps nothing whole between steps.
  EXPECT_NEAR(kept, all_units() * (whole + (3 - whole) / kRanks), 0.02 * all_units());
}

TEST_P(OneOfFour, TheOptimizerSeesOnePartOfEachUnit) {
  const std::unique_ptr<Mode> mode = make();
  const std::vector<Param*> parts = mode->params();
  ASSERT_EQ(parts.size(), kUnits.size());
  for (size_t i = 0; i < parts.size(); ++i)
    EXPECT_NEAR(static_cast<double>(parts[i]->value.numel()),
                static_cast<double>(kUnits[i]) / kRanks, 16);
}

// wte, wpe, two branches in each of two blocks, ln_f
TEST_P(OneOfFour, ATiedHeadIsCutWithin) {
  const auto mode =
      make_mode(text_of(GetParam()), {.model = make_model("gpt2:width=8,layers=2,heads=2,tied=yes"),
                                      .comm = comm_.get(),
                                      .devices = cpus(1)});
  EXPECT_EQ(mode->params().size(), 7);
}

INSTANTIATE_TEST_SUITE_P(Level, OneOfFour, ::testing::Values(1, 2, 3));

class Sharded : public ::testing::TestWithParam<int> {};

TEST_P(Sharded, TrainsAsSingleWithAdamWWhateverTheSeeds) {
  const ModelSpec model = dropout_model();
  const auto train = [&](Mode& mode) {
    const auto optimizer = make_optimizer("adamw", {.lr = 0.01, .weight_decay = 0.1});
    for (int i = 0; i < 4; ++i) {
      std::ignore = mode.step(rows_of(global_batch(model, 7, i), mode.share()));
      optimizer->step(mode.params());
    }
    return mode.gather();
  };
  const auto single =
      make_mode("single", {.model = dropout_model(), .seed = 5, .dtype = Dtype::f64});
  const std::map<std::string, Tensor> want = train(*single), grads = single->gradients();
  launch_threads(3, [&](Comm& comm) {
    const auto mode =
        make_mode(text_of(GetParam()), {.model = dropout_model(),
                                        .seed = 5 + static_cast<uint64_t>(comm.rank()),
                                        .dtype = Dtype::f64,
                                        .comm = &comm,
                                        .devices = {{DeviceType::cpu, comm.rank()}}});
    const std::map<std::string, Tensor> got = train(*mode);
    EXPECT_EQ(got.size(), comm.rank() == 0 ? want.size() : 0);
    for (const auto& [name, value] : got)
      EXPECT_TRUE(close(value, want.at(name), kTolerance)) << name;
    const std::map<std::string, Tensor> summed = mode->gradients();
    EXPECT_EQ(summed.size(), grads.size());
    for (const auto& [name, grad] : summed)
      EXPECT_TRUE(close(grad, grads.at(name), kTolerance)) << name;
  });
}

TEST_P(Sharded, GatheringBetweenStepsChangesNothing) {
  launch_threads(2, [&](Comm& comm) {
    const auto run = [&](bool look) {
      const auto mode = make_mode(
          text_of(GetParam()),
          {.model = conv_model(), .comm = &comm, .devices = {{DeviceType::cpu, comm.rank()}}});
      const auto optimizer = make_optimizer("sgd", {.lr = 0.1});
      for (int i = 0; i < 3; ++i) {
        if (look) mode->gather();
        std::ignore = mode->step(rows_of(global_batch(conv_model(), 6, i), mode->share()));
        optimizer->step(mode->params());
      }
      return mode->gather();
    };
    const auto plain = run(false), looked = run(true);
    for (const auto& [name, value] : plain) EXPECT_TRUE(close(looked.at(name), value, 0)) << name;
  });
}

TEST_P(Sharded, RefusesFewerRowsThanRanksOnEveryRankAndGoesOn) {
  launch_threads(3, [&](Comm& comm) {
    const ModelSpec model = make_model("simple_net");
    const auto mode = make_mode(text_of(GetParam()), {.model = make_model("simple_net"),
                                                      .comm = &comm,
                                                      .devices = {{DeviceType::cpu, comm.rank()}}});
    EXPECT_THROW(mode->step(rows_of(global_batch(model, 2, 0), mode->share())),
                 std::invalid_argument);
    EXPECT_GT(mode->step(rows_of(global_batch(model, 3, 0), mode->share())).value(), 0);
  });
}

INSTANTIATE_TEST_SUITE_P(Level, Sharded, ::testing::Values(1, 2, 3));

TEST(ShardedLevel, IsOneOfThree) {
  for (const std::string text : {"4", "0", "-1", "x", ""})
    EXPECT_THROW(mode_traits("sharded:level=" + text), std::invalid_argument) << text;
  EXPECT_THAT(message_of<std::invalid_argument>([] { mode_traits("sharded:level=4"); }),
              ::testing::HasSubstr("level: 4 is none of 1, 2 and 3"));
  EXPECT_THROW(mode_traits("ddp:level=1"), std::invalid_argument);
}

}  // namespace
}  // namespace howmany
