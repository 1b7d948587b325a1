// SPDX-License-Identifier: Apache-2.0
// Asynchronous steps on imitated GPUs, which can be delayed and count the waits of the host.
// timeout: 300
#include <gtest/gtest.h>

#include "core/backends/cuda/runtime/runtime.h"
#include "parallel/launch/launch.h"
#include "tests/fakes/fake_gpu.h"
#include "tests/support/held.h"
#include "tests/support/training.h"

namespace howmany {
namespace {

using namespace testing_support;

const std::string kStepMlp = "mlp:sizes=13-17-9-7-5";

std::vector<Device> gpus(int count) {
  std::vector<Device> devices = cpus(count);
  for (Device& device : devices) device.type = DeviceType::cuda;
  return devices;
}

Batch on_gpu(Batch batch) {
  batch.x = batch.x.to(gpus(1)[0]);
  batch.y = batch.y.to(gpus(1)[0]);
  return batch;
}

// A mode with its optimizer and batches, which are on the GPU before the steps.
class SteppedMode {
 public:
  SteppedMode(const std::string& mode, const std::string& model, int devices = 1)
      : mode_(make_mode(mode, {.model = model_named(model), .devices = gpus(devices)})),
        optimizer_(make_optimizer("adamw", {.lr = 0.01})) {
    for (int step = 0; step < 6; ++step)
      batches_.push_back(on_gpu(global_batch(model_named(model), 8, step)));
  }
  StepLoss step() {
    StepLoss loss = mode_->step(batches_.at(next_++));
    optimizer_->step(mode_->params());
    return loss;
  }
  std::vector<double> losses_read_at_once(int steps) {
    std::vector<double> losses;
    while (steps-- > 0) losses.push_back(step().value());
    return losses;
  }

 private:
  std::unique_ptr<Mode> mode_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<Batch> batches_;
  size_t next_ = 0;
};

TEST(AStepOnAGpu, WaitsForTheGpuOnlyToReadTheLoss) {
  for (const std::string& model : kModels) {
    SteppedMode trained("single", model);
    trained.step().value();  // warm-up: creates the state of later steps
    const int before = hm_fake_gpu_waits();
    const StepLoss first = trained.step(), second = trained.step();
    EXPECT_EQ(hm_fake_gpu_waits(), before) << model;
    EXPECT_GT(first.value(), 0);
    EXPECT_EQ(hm_fake_gpu_waits(), before + 1) << model;
  }
}

TEST(AStepOnAGpu, IsEnqueuedWhileEarlierStepsRun) {
  for (const std::string& model : kModels) {
    SteppedMode trained("single", model), other("single", model);
    const std::vector<double> want = other.losses_read_at_once(4);
    std::vector<StepLoss> got{trained.step()};
    {
      Held held(0);
      for (int step = 1; step < 4; ++step) got.push_back(trained.step());
      EXPECT_EQ(got[0].value(), want[0]) << "of a step before those that are held up";
    }
    for (size_t step = 0; step < want.size(); ++step)
      EXPECT_EQ(got[step].value(), want[step]) << model << " step " << step;
  }
}

TEST(AStepOnGpus, OfDataParallelKeepsItsLossOnTheFirst) {
  SteppedMode trained("data_parallel", kStepMlp, 2), other("data_parallel", kStepMlp, 2);
  const std::vector<double> want = other.losses_read_at_once(3);
  std::vector<StepLoss> got;
  for (int step = 0; step < 3; ++step) got.push_back(trained.step());
  for (size_t step = 0; step < want.size(); ++step) EXPECT_EQ(got[step].value(), want[step]);
}

TEST(StepLoss, CanBeReadAgainAndCopied) {
  SteppedMode trained("single", kStepMlp);
  const StepLoss loss = trained.step(), copy = loss;
  const double value = loss.value();
  trained.step();
  EXPECT_EQ(loss.value(), value);
  EXPECT_EQ(copy.value(), value);
}

TEST(StepLoss, AcceptsValuesOfTheHost) {
  EXPECT_EQ(StepLoss().value(), 0);
  EXPECT_EQ(StepLoss(0.1).value(), 0.1);
  EXPECT_EQ(StepLoss(Tensor::full({1}, 0.1, Dtype::f64)).value(), 0.1);
  EXPECT_EQ(StepLoss(Tensor::full({1}, 0.25)).value(), 0.25);
  EXPECT_THROW(StepLoss(Tensor::zeros({2})), std::invalid_argument);
  EXPECT_THROW(StepLoss(Tensor::zeros({1}, Dtype::i64)), std::invalid_argument);
}

}  // namespace
}  // namespace howmany
