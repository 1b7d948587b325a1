// SPDX-License-Identifier: Apache-2.0
// labels: in_turns
// timeout: 600
#include "benches/common/step_memory.h"

#include <gtest/gtest.h>

#include "core/backends/backend.h"
#include "core/backends/backend_list.h"
#include "core/backends/selection.h"
#include "core/tensor/meta.h"
#include "parallel/comm/simulation.h"
#include "tests/support/training.h"

namespace howmany::benches {
namespace {

using namespace testing_support;

Workload question(const std::string& model, const std::string& mode, int devices, int64_t batch) {
  Workload work;
  work.model = model;
  work.mode = mode;
  work.devices.assign(static_cast<size_t>(devices), Device{});
  work.global_batch = batch * devices;
  work.optimizer = "adamw";
  return work;
}

// The same on a CPU device that computes. The reference kernels keep nothing.
double measured_peak(const Workload& work) {
  const DeviceScope on(cpus(1)[0]);  // with one thread, as the estimate assumes
  const BackendScope kernels(backend_named(work.kernels.empty() ? "reference" : work.kernels));
  const PrecisionScope precision(work.precision);
  const Simulation others({.world = work.count()});
  const auto comm = others.join(0);
  const int64_t before = memory_use().in_use;
  const auto mode = make_mode(
      work.mode, {.model = make_model(work.model), .comm = comm.get(), .devices = cpus(1)});
  const auto optimizer = make_optimizer(work.optimizer, work.optim);
  const Batch whole = global_batch(make_model(work.model), work.global_batch, 0);
  Batch mine = rows_of(whole, mode->share());
  mine.x = mine.x.clone();
  mine.y = mine.y.clone();
  for (int step = 0; step < 2; ++step) {
    reset_peak_memory();
    std::ignore = mode->step(mine);
    optimizer->step(mode->params());
  }
  comm->finish();
  return static_cast<double>(memory_use().peak - before - whole.x.bytes() - whole.y.bytes());
}

using Case = std::pair<std::string, std::string>;  // model, mode
class StepMemoryOf : public ::testing::TestWithParam<Case> {};

TEST_P(StepMemoryOf, IsThatOfARealStep) {
  const auto& [model, mode] = GetParam();
  const Workload work = question(model, mode, mode.starts_with("single") ? 1 : 4, 4);
  const double measured = measured_peak(work);
  EXPECT_NEAR(static_cast<double>(step_memory(work).peak()), measured, 0.01 * measured);
}

#if HM_HAVE_ONEDNN
using CpuCase = std::tuple<std::string, std::string>;
class StepMemoryOnCpus : public ::testing::TestWithParam<CpuCase> {};

TEST_P(StepMemoryOnCpus, HasWhatItsKernelsKeep) {
  const auto& [model, mode] = GetParam();
  Workload work = question(model, mode, mode.starts_with("single") ? 1 : 4, 8);
  const StepMemory without = step_memory(work);
  work.kernels = "onednn";
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    if (!backend_named(work.kernels).computes_in(precision)) continue;
    SCOPED_TRACE(name_of(precision));
    work.precision = precision;
    const double measured = measured_peak(work);
    EXPECT_NEAR(static_cast<double>(step_memory(work).peak()), measured, 0.01 * measured);
    EXPECT_EQ(step_memory(work).optimizer, without.optimizer);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, StepMemoryOnCpus,
    ::testing::Combine(
        ::testing::Values("mlp:sizes=100-150-50", "resnet18:image=32,width=16,classes=10",
                          "resnet50:image=32,width=8,classes=10",
                          "vgg16:image=32,width=8,classes=10",
                          "vit_b_16:image=32,patch=8,width=24,layers=2,heads=3",
                          "gpt2:width=32,layers=2,heads=4,length=16,vocabulary=50"),
        ::testing::Values("single", "ddp", "single:recompute=1", "ddp:accumulate=2")));

TEST(StepMemory, OnCpusHasTheBufferOfGloo) {
  Workload work = question("mlp:sizes=256-256-256-256", "sharded", 4, 1);
  const int64_t without = step_memory(work).peak();
  work.kernels = "reference";
  EXPECT_EQ(step_memory(work).peak() - without, 4 * (256 * 256 + 256));  // of one layer
  work.kernels = "onednn";
  work.precision = Precision::tf32;
  EXPECT_THROW(step_memory(work), std::invalid_argument);
}
#endif

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::string model :
       {"mlp:sizes=100-150-50", "resnet18:image=32,width=4,classes=10",
        "resnet50:image=32,width=2,classes=10", "vgg16:image=32,width=2,classes=10",
        "vit_b_16:image=16,patch=8,width=24,layers=2,heads=3,classes=10",
        "gpt2:width=32,layers=2,heads=4,length=16,vocabulary=50",
        "gpt2:width=32,layers=2,heads=4,length=16,vocabulary=50,tied=yes",
        "bert_base:width=32,layers=2,heads=4,length=16,vocabulary=50",
        "llama:width=32,layers=2,heads=4,kv_heads=2,hidden=48,length=16,vocabulary=50",
        "embedding_rnn:vocabulary=100,length=4,width=30,hidden=40"})
    for (const std::string mode :
         {"single", "ddp", "sharded:level=1", "sharded:level=2", "sharded", "single:recompute=1",
          "sharded:recompute=1", "ddp:accumulate=2", "sharded:accumulate=2"})
      all.push_back({model, mode});
  // Models with pairs of linear layers.
  for (const std::string model :
       {"mlp:sizes=100-150-50", "gpt2:width=32,layers=2,heads=4,length=16,vocabulary=50",
        "gpt2:width=32,layers=2,heads=4,length=16,vocabulary=50,tied=yes",
        "llama:width=32,layers=2,heads=8,kv_heads=4,hidden=48,length=16,vocabulary=50"})
    for (const std::string mode : {"tensor", "tensor:ways=2", "tensor:recompute=1"})
      all.push_back({model, mode});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, StepMemoryOf, ::testing::ValuesIn(cases()));

TEST(StepMemory, HasPartsAsTheoryTells) {
  const double weights = 4 * (300.0 * 500 + 500 + 500 * 200 + 200);
  const auto of = [](const std::string& mode, int devices) {
    return step_memory(question("mlp:sizes=300-500-200", mode, devices, 1));
  };
  for (const std::string mode : {"single", "ddp"}) {
    const StepMemory all = of(mode, mode == "ddp" ? 4 : 1);
    EXPECT_NEAR(static_cast<double>(all.model), 2 * weights, 0.01 * weights) << mode;
    EXPECT_NEAR(static_cast<double>(all.optimizer), 2 * weights, 0.01 * weights) << mode;
  }
  EXPECT_NEAR(static_cast<double>(of("sharded", 4).model), weights / 2, 0.01 * weights);
  EXPECT_NEAR(static_cast<double>(of("sharded:level=2", 4).model), 1.25 * weights, 0.01 * weights);
  EXPECT_NEAR(static_cast<double>(of("sharded:level=1", 4).model), 2 * weights, 0.01 * weights);
  EXPECT_NEAR(static_cast<double>(of("sharded:level=1", 4).optimizer), weights / 2, 0.01 * weights);
  const double biases = 4 * 200.0;  // of the second layer, whole on each rank
  EXPECT_NEAR(static_cast<double>(of("tensor", 4).model), (weights + 3 * biases) / 2,
              0.01 * weights);
  EXPECT_NEAR(static_cast<double>(of("pipeline", 2).model), 2 * 4 * (300.0 * 500 + 500),
              0.01 * weights);  // the larger stage
}

TEST(StepMemory, NeedsNoMemory) {  // of 6 GB of weights
  Workload work = question("gpt2:size=xl", "sharded", 1000, 2);
  const int64_t before = memory_use().peak;
  EXPECT_GT(step_memory(work).peak(), int64_t{6} << 30);
  EXPECT_LT(memory_use().peak - before, 1 << 20);
  EXPECT_EQ(meta_memory_use(0).in_use, 0);
}

TEST(StepMemory, Bf16HalvesActivationsAndKeepsCopiesOfWeights) {
  Workload work = question("mlp:sizes=256-256-256", "single", 1, 4096);
  const StepMemory f32 = step_memory(work);
  work.precision = Precision::bf16;
  const StepMemory bf16 = step_memory(work);
  EXPECT_EQ(bf16.model, f32.model);
  EXPECT_LT(static_cast<double>(bf16.step), 0.8 * static_cast<double>(f32.step));
}

TEST(StepMemory, RecomputeKeepsOnlyTheInputsOfUnits) {
  for (const std::string model : {"gpt2:width=64,layers=6,heads=4,length=64",
                                  "gpt2:width=64,layers=6,heads=4,length=64,tied=yes"})
    for (const std::string mode : {"single", "sharded"}) {
      const int devices = mode == "single" ? 1 : 4;
      const StepMemory plain = step_memory(question(model, mode, devices, 32));
      const StepMemory again = step_memory(question(model, mode + ":recompute=1", devices, 32));
      EXPECT_EQ(again.model, plain.model) << model << mode;
      EXPECT_LT(static_cast<double>(again.step), 0.6 * static_cast<double>(plain.step)) << model;
    }
}

TEST(StepMemory, LargestBatchIsTheLastThatFits) {
  const Workload work = question("mlp:sizes=300-500-200", "ddp", 2, 1);
  constexpr int64_t kBytes = 10 << 20;
  const int64_t rows = largest_batch(work, kBytes);
  EXPECT_LE(step_memory(question(work.model, "ddp", 2, rows)).peak(), kBytes);
  EXPECT_GT(step_memory(question(work.model, "ddp", 2, rows + 1)).peak(), kBytes);
  EXPECT_EQ(largest_batch(work, 1 << 20), 0);
}

TEST(StepMemory, RefusesWhatCannotRun) {
  EXPECT_THROW(step_memory(question("simple_net", "pipeline", 2, 4)), std::invalid_argument);
  for (const std::string mode : {"data_parallel", "hybrid"})
    EXPECT_THROW(step_memory(question("mlp:sizes=8-8-8", mode, 257, 1)), std::invalid_argument);
  Workload few = question("simple_net", "ddp", 4, 1);
  few.global_batch = 3;
  EXPECT_THROW(step_memory(few), std::invalid_argument);
}

}  // namespace
}  // namespace howmany::benches
