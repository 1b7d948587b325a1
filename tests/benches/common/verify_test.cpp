// SPDX-License-Identifier: Apache-2.0
#include "benches/common/verify.h"
#include "benches/common/device_choice.h"
#include "benches/common/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "tests/support/message_of.h"

namespace howmany::benches {
namespace {

using testing::HasSubstr;

Workload small(const std::string& mode, int devices) {
  Workload work;
  work.model = "mlp:sizes=6-8-7-5-3";
  work.mode = mode;
  work.devices = devices_from("", devices);
  work.global_batch = 7;
  work.steady = true;
  work.kernels = "reference";
  return work;
}

// Runs verify_first_step() on every rank for the trainer of `run`, but compares with a run of
// `told`.
void verify(const Workload& run, const Workload& told) {
  const DatasetPtr data = open_dataset(run);
  launch_threads(run.ranks(), [&](Comm& comm) {
    const KernelScope kernels(run.kernels);
    const Device device = run.devices_of(comm.rank()).front();
    Trainer trainer(run, *data, comm, device);
    verify_first_step(told, *data, trainer, comm, device);
  });
}

TEST(Verify, EveryModeIsRightOnEveryNumberOfDevices) {
  for (const std::string_view mode : mode_names()) {
    const ModeTraits traits = mode_traits(mode);
    const int most = traits.over_ranks || traits.over_devices ? 4 : 1;
    for (int n = 1; n <= most; ++n) {
      const Workload work = small(std::string(mode), n);
      EXPECT_NO_THROW(verify(work, work)) << mode << " on " << n;
    }
  }
}

TEST(Verify, BatchNormIsHeldToWhatEachDeviceSees) {
  for (const char* mode : {"data_parallel", "ddp", "sharded", "sharded:level=1", "model",
                           "pipeline:micro_batches=2"}) {
    Workload work = small(mode, 2);
    work.model = "resnet18:image=32,classes=4,width=4";
    work.global_batch = 4;
    EXPECT_NO_THROW(verify(work, work)) << mode;
  }
}

TEST(Verify, SynchronisedBatchNormIsHeldToTheWholeBatch) {
  for (const char* mode : {"data_parallel", "ddp", "sharded", "hybrid:stages=1"}) {
    Workload work = small(mode, 2);
    work.model = "resnet18:image=32,classes=4,width=4";
    work.global_batch = 4;
    work.sync_batchnorm = true;
    if (work.mode == "hybrid:stages=1") work.mode += ",micro_batches=1";
    EXPECT_NO_THROW(verify(work, work)) << mode;
  }
}

// If the last stage is one pixel, two rows give two values per channel.
TEST(Verify, TheBestKernelsAreRightWhereBatchNormSeesFewValues) {
  for (const int64_t batch : {2, 4, 16})
    for (const uint64_t seed : {1, 2, 3}) {
      Workload work = small("single", 1);
      work.model = "resnet18:width=8,image=16";
      work.kernels = "";
      work.global_batch = batch;
      work.seed = seed;
      EXPECT_NO_THROW(verify(work, work)) << "batch " << batch << ", seed " << seed;
    }
}

// The reference kernels, except that gradients of weights are 1 % too large.
class OffByAHundredth final : public Backend {
 public:
  std::string_view name() const override { return "off"; }
  DeviceType device_type() const override { return DeviceType::cpu; }
  bool supports(Dtype) const override { return true; }
  void linear(const Tensor& x, const Tensor& w, const Tensor& bias, Activation act,
              Tensor& y) const override {
    right_.linear(x, w, bias, act, y);
  }
  void linear_backward(const Tensor& x, const Tensor& w, const Tensor& kept, const Tensor& dy,
                       Activation act, Tensor& dx, GradOut& dw, GradOut& dbias) const override {
    right_.linear_backward(x, w, kept, dy, act, dx, dw, dbias);
    if (dw.value)
      for (float& v : dw.value.mutable_values<float>()) v *= 1.01F;
  }
  Tensor softmax_cross_entropy(const Tensor& logits, const Tensor& labels, double denominator,
                               Tensor& dlogits) const override {
    return right_.softmax_cross_entropy(logits, labels, denominator, dlogits);
  }
  void axpy(double alpha, const Tensor& x, Tensor& y) const override { right_.axpy(alpha, x, y); }

 private:
  const Backend& right_ = backend_named("reference");
};

TEST(Verify, WrongKernelsAreCaughtWhateverRowsAreTried) {
  Workload work = small("single", 1);
  const DatasetPtr data = open_dataset(work);
  const OffByAHundredth wrong;
  launch_threads(1, [&](Comm& comm) {
    const BackendScope kernels(wrong);
    Trainer trainer(work, *data, comm, work.devices[0]);
    const auto first_step = [&] { verify_first_step(work, *data, trainer, comm, work.devices[0]); };
    EXPECT_THAT(message_of<WrongData>(first_step),
                HasSubstr("the kernels differ from the reference: gradient of"));
  });
}

TEST(Verify, CutsEveryShareIntoMicroBatches) {
  EXPECT_EQ(cuts_of(7, 2, 1), (std::vector<int64_t>{0, 4, 7}));
  EXPECT_EQ(cuts_of(7, 2, 2), (std::vector<int64_t>{0, 2, 4, 6, 7}));
}

TEST(Modes, OptionsBehindACommaBelongToTheModeBefore) {
  const std::vector<std::string> pieces = {"single",         "pipeline:micro_batches=8",
                                           "schedule=gpipe", "model:placement=0:cpu:0",
                                           "1-:cpu:1",       "ddp"};
  EXPECT_EQ(join_options(pieces),
            (std::vector<std::string>{"single", "pipeline:micro_batches=8,schedule=gpipe",
                                      "model:placement=0:cpu:0,1-:cpu:1", "ddp"}));
}

TEST(Verify, WrongDataIsAnErrorOnEveryRank) {
  const Workload run = small("ddp", 2);
  Workload told = run;
  told.seed = 2;  // other parameters and so other gradients
  const DatasetPtr data = open_dataset(run);
  std::atomic<int> thrown = 0;
  launch_threads(2, [&](Comm& comm) {
    const Device device = run.devices[static_cast<size_t>(comm.rank())];
    Trainer trainer(run, *data, comm, device);
    try {
      verify_first_step(told, *data, trainer, comm, device);
    } catch (const WrongData&) {
      ++thrown;
    }
  });
  EXPECT_EQ(thrown, 2);
}

class Difference : public ::testing::Test {
 protected:
  Difference() : data_(open_dataset(work_)) {
    Loader loader(*data_, loader_options(work_, {}, {}));
    loader.start_epoch(0);
    const Batch batch = *loader.next();
    expected_ = expected_step(work_, batch, cuts_of(7, 2, 1), {});
    mode_ = make_mode("single", {.model = make_model(work_.model), .seed = work_.seed});
    loss_ = mode_->step(batch).value();
  }

  const Workload work_ = small("single", 1);
  const DatasetPtr data_;
  StepResult expected_;
  std::unique_ptr<Mode> mode_;
  double loss_;
};

TEST_F(Difference, NothingForTheSameStep) {
  EXPECT_EQ(difference(expected_, loss_, mode_->gradients(), 1e-5), "");
}

TEST_F(Difference, NamesAWrongLoss) {
  for (const double wrong : {loss_ * 1.01, std::nan("")})
    EXPECT_NE(difference(expected_, wrong, mode_->gradients(), 1e-3).find("loss"),
              std::string::npos);
}

TEST_F(Difference, NamesTheParameterWithAWrongGradient) {
  Param& last = *mode_->params().back();
  for (const float wrong : {1.0f, std::nanf("")}) {
    last.grad.mutable_values<float>()[0] = wrong;
    const std::string what = difference(expected_, loss_, mode_->gradients(), 1e-3);
    EXPECT_NE(what.find(last.name), std::string::npos) << what;
  }
}

TEST(Check, RefusesWhatCannotRunAndSaysTheNearestName) {
  const auto message = [](auto change) {
    Workload work = small("ddp", 1);
    change(work);
    return message_of<std::invalid_argument>([&] { check(work); });
  };
  EXPECT_NO_THROW(check(small("ddp", 1)));
  EXPECT_THAT(message([](Workload& w) { w.mode = "dpp"; }), HasSubstr("'ddp'"));
  EXPECT_THAT(message([](Workload& w) { w.backend = "lokal"; }), HasSubstr("'local'"));
  EXPECT_THAT(message([](Workload& w) { w.model = "mpl"; }), HasSubstr("'mlp'"));
  EXPECT_THAT(message([](Workload& w) { w.optimizer = "sdg"; }), HasSubstr("'sgd'"));
  EXPECT_THAT(message([](Workload& w) { w.kernels = "referense"; }), HasSubstr("'reference'"));
  EXPECT_THAT(message([](Workload& w) { w.global_batch = 0; }), HasSubstr("smaller than 1 device"));
  EXPECT_THAT(message([](Workload& w) {
                w.devices = {{DeviceType::cuda, 0}};
              }),
              HasSubstr("cuda:0"));
  EXPECT_THAT(message([](Workload& w) {
                w.devices = devices_from("", cpu_device_count() + 1);
                w.global_batch = 1000;
              }),
              HasSubstr("--oversubscribe"));
  EXPECT_THAT(message([](Workload& w) { w.devices = parse_devices("cpu:4000"); }),
              HasSubstr("--oversubscribe"));
}

}  // namespace
}  // namespace howmany::benches
