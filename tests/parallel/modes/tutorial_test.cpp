// SPDX-License-Identifier: Apache-2.0
// The tutorial's SimpleNet in several modes, against PyTorch's losses (golden.py, `tutorial`).
#include <gtest/gtest.h>

#include <vector>

#include "core/nn/optim.h"
#include "parallel/launch/launch.h"
#include "parallel/modes/mode.h"
#include "tests/support/golden.h"
#include "tests/support/training.h"

namespace howmany {
namespace {

constexpr int64_t kSamples = 100, kRows = 20;
constexpr int kEpochs = 2;

Tensor labels() {
  Tensor y = Tensor::empty({kSamples}, Dtype::i64);
  int64_t i = 0;
  for (int64_t& label : y.mutable_values<int64_t>()) label = i * i / 3 % 2, ++i;
  return y;
}

void set_parameters(Mode& mode) {
  for (Param* param : mode.params())
    golden::fill_wave(param->value, param->name == "weight" ? 1 : 2);
}

// Returns the mean loss of each epoch.
std::vector<double> train(Mode& mode) {
  const Tensor x = golden::wave({kSamples, 10}, 3), y = labels();
  const auto optimizer = make_optimizer("sgd", {.lr = 0.1});
  std::vector<double> means;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    double total = 0;
    for (int64_t first = 0; first < kSamples; first += kRows) {
      const Batch whole{x.rows(first, first + kRows), y.rows(first, first + kRows), kRows, 0};
      const StepLoss loss = mode.step(testing_support::rows_of(whole, mode.share()));
      optimizer->step(mode.params());
      total += loss.value() * kRows;
    }
    means.push_back(total / kSamples);
  }
  return means;
}

void expect_as_pytorch(Mode& mode) {
  set_parameters(mode);
  const std::vector<double> means = train(mode);
  EXPECT_TRUE(golden::matches("tutorial.losses", Tensor::from(means, {kEpochs})));
  for (Param* param : mode.params())
    EXPECT_TRUE(golden::matches("tutorial." + param->name, param->value)) << param->name;
}

TEST(Tutorial, SingleTrainsAsPyTorch) {
  expect_as_pytorch(*make_mode("single", {.model = make_model("simple_net"), .dtype = Dtype::f64}));
}

TEST(Tutorial, DataParallelTrainsAsPyTorch) {
  for (const int devices : {1, 2, 3})
    expect_as_pytorch(*make_mode("data_parallel", {.model = make_model("simple_net"),
                                                   .dtype = Dtype::f64,
                                                   .devices = testing_support::cpus(devices)}));
}

TEST(Tutorial, DdpTrainsAsPyTorch) {
  for (const int ranks : {1, 2, 3})
    launch_threads(ranks, [](Comm& comm) {
      expect_as_pytorch(*make_mode("ddp", {.model = make_model("simple_net"),
                                           .dtype = Dtype::f64,
                                           .comm = &comm,
                                           .devices = {{DeviceType::cpu, comm.rank()}}}));
    });
}

}  // namespace
}  // namespace howmany
