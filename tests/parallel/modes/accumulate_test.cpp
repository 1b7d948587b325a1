// SPDX-License-Identifier: Apache-2.0
// The exchanges and the memory of accumulate=n. mode_test.cpp compares its results with `single`.

#include "core/tensor/storage.h"
#include "parallel/comm/simulation.h"
#include "parallel/modes/mode.h"
#include "tests/support/training.h"

namespace howmany {
namespace {

using namespace testing_support;

constexpr int kRanksOfStep = 4;
constexpr int64_t kRowsOfRank = 8;
const std::string kLayers = "mlp:sizes=64-128-128-128-64";
constexpr double kParameters = 64 * 128 + 128 + 2 * (128 * 128 + 128) + 128 * 64 + 64;

// Elements that one of four ranks exchanges in its second step, by kind of call.
std::map<std::string, double> exchanged(const std::string& text) {
  const Simulation simulation({.world = kRanksOfStep});
  const std::unique_ptr<Comm> comm = simulation.join(1);
  const auto mode =
      make_mode(text, {.model = make_model(kLayers), .comm = comm.get(), .devices = cpus(1)});
  const Batch whole = global_batch(make_model(kLayers), kRanksOfStep * kRowsOfRank, 0);
  for (int step = 0; step < 2; ++step) {
    comm->finish();
    simulation.take_log();
    std::ignore = mode->step(rows_of(whole, mode->share()));
  }
  comm->finish();
  std::map<std::string, double> sums;
  for (const SimulatedCall& call : simulation.take_log())
    sums[call.kind] += call.bytes / sizeof(float) / kParameters;
  return sums;
}

TEST(Accumulate, DdpExchangesGradientsOnce) {
  for (const std::string text : {"ddp", "ddp:accumulate=4"})
    EXPECT_NEAR(exchanged(text).at("all_reduce"), 1, 0.01) << text;
}

// As ZeRO: level 1 keeps whole gradients and exchanges them once, the others each micro-batch.
TEST(Accumulate, ShardedExchangesWhatItDoesNotKeep) {
  for (const auto& [level, times] : {std::pair{1, 1}, {2, 4}, {3, 4}}) {
    const auto sums = exchanged(fmt::format("sharded:level={},accumulate=4", level));
    EXPECT_NEAR(sums.at("reduce_scatter"), times, 0.05) << level;
  }
  const double last = (128 * 64 + 64) / kParameters;  // stays between forward and backward
  EXPECT_NEAR(exchanged("sharded:accumulate=4").at("all_gather"), 4 * (2 - last), 0.05);
}

TEST(Accumulate, ASmallBatchHasFewerMicroBatches) {
  const auto mode = make_mode("single:accumulate=4", {.model = make_model(kLayers)});
  EXPECT_EQ(mode->micro_batches(8), 4);
  EXPECT_EQ(mode->micro_batches(3), 3);
  EXPECT_THROW(mode_traits("ddp:accumulate=0"), std::invalid_argument);
  EXPECT_THROW(mode_traits("pipeline:accumulate=2"), std::invalid_argument);
}

// The activations of one micro-batch at a time.
TEST(Accumulate, KeepsFewerActivations) {
  const auto peak_of = [](const std::string& text) {
    const auto mode = make_mode(text, {.model = make_model("mlp:sizes=8-8-8-8-8-8")});
    const Batch batch = global_batch(make_model("mlp:sizes=8-8-8-8-8-8"), 4096, 0);
    std::ignore = mode->step(batch);
    const int64_t before = memory_use().in_use;
    reset_peak_memory();
    std::ignore = mode->step(batch);
    return static_cast<double>(memory_use().peak - before);
  };
  EXPECT_NEAR(peak_of("single:accumulate=4") / peak_of("single"), 0.25, 0.05);
}

}  // namespace
}  // namespace howmany
