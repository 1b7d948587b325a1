// timeout: 300
#include "parallel/mode.h"

#include <gtest/gtest.h>

#include <mutex>

#include "core/backend.h"
#include "core/layers.h"
#include "core/optim.h"
#include "parallel/launch.h"
#include "tests/support/tensors.h"

namespace howmany {
namespace {

using testing_support::close;
using testing_support::Draw;

// f32 sums in another order, grown over the steps; f64 shows that nothing else differs.
constexpr double kToleranceF32 = 2e-5, kToleranceF64 = 1e-12;
constexpr uint64_t kSeed = 5;

ModelSpec conv_model() {
  std::vector<LayerPtr> parts;
  parts.push_back(layers::conv2d(2, 4, {3, 1, 1}));
  parts.push_back(layers::relu());
  parts.push_back(layers::max_pool({2, 2, 0}));
  parts.push_back(layers::flatten());
  parts.push_back(layers::linear(36, 5));
  return {.name = "conv",
          .layer = layers::sequential(std::move(parts)),
          .sample = {6, 6, 2},
          .classes = 5};
}

ModelSpec dropout_model() {
  std::vector<LayerPtr> parts;
  parts.push_back(layers::linear(8, 16, Activation::gelu));
  parts.push_back(layers::dropout(0.3));
  parts.push_back(layers::linear(16, 4));
  return {.name = "dropout",
          .layer = layers::sequential(std::move(parts)),
          .sample = {8},
          .classes = 4};
}

ModelSpec batchnorm_model() {
  std::vector<LayerPtr> parts;
  parts.push_back(layers::linear(6, 8));
  parts.push_back(layers::batchnorm(8));
  parts.push_back(layers::linear(8, 3));
  return {.name = "bn", .layer = layers::sequential(std::move(parts)), .sample = {6}, .classes = 3};
}

ModelSpec model_named(const std::string& name) {
  if (name == "conv") return conv_model();
  if (name == "dropout") return dropout_model();
  return make_model(name);
}

const std::vector<std::string> kModels = {"simple_net", "mlp:sizes=12-16-5", "conv", "dropout"};

// Even, uneven over 3 and 4, and ragged at the end.
const std::vector<int64_t> kBatches = {12, 10, 12, 10, 7};

Batch global_batch(const ModelSpec& model, int64_t rows, int step) {
  Draw draw(1000 + static_cast<uint64_t>(step));
  std::vector<int64_t> extents = {rows};
  extents.insert(extents.end(), model.sample.extents().begin(), model.sample.extents().end());
  Batch batch;
  batch.x = draw.normal(Shape(std::span<const int64_t>(extents)));
  batch.y = model.loss == Loss::mse ? draw.normal({rows, model.classes})
                                    : draw.ids({rows}, model.classes);
  batch.global_rows = rows;
  return batch;
}

Batch rows_of(const Batch& whole, Share share) {
  const int64_t begin = share.begin(whole.global_rows), end = share.end(whole.global_rows);
  return {whole.x.rows(begin, end), whole.y.rows(begin, end), whole.global_rows, begin};
}

struct Curve {
  std::vector<double> losses;
  std::map<std::string, Tensor> values;  // of rank 0
};

Curve train(Mode& mode, const std::string& model_name) {
  const ModelSpec model = model_named(model_name);
  const auto optimizer = make_optimizer("sgd", {.lr = 0.1, .momentum = 0.9});
  Curve run;
  for (size_t step = 0; step < kBatches.size(); ++step) {
    const Batch whole = global_batch(model, kBatches[step], static_cast<int>(step));
    run.losses.push_back(mode.step(rows_of(whole, mode.share())));
    optimizer->step(mode.params());
  }
  run.values = mode.gather();
  return run;
}

std::vector<Device> cpus(int count) {
  std::vector<Device> devices;
  for (int i = 0; i < count; ++i) devices.push_back({DeviceType::cpu, i});
  return devices;
}

struct Variation {
  std::string mode, comm;
  int world;
  std::string kernels;
  Dtype dtype;
};

std::string str(const Variation& v) {
  return fmt::format("{}_{}_{}_{}_{}", v.mode, v.comm, v.world, v.kernels, name_of(v.dtype));
}

void PrintTo(const Variation& v, std::ostream* out) { *out << str(v); }

std::vector<Variation> variations() {
  std::vector<Variation> all;
  for (const std::string_view mode : mode_names()) {
    const ModeTraits traits = mode_traits(mode);
    for (const std::string_view comm : thread_comm_names()) {
      if (!traits.over_ranks && comm != "local") continue;
      for (const int world : {1, 2, 3, 4}) {
        if (world > 1 && !traits.over_ranks && !traits.over_devices) continue;
        const auto add = [&](std::string_view kernels, Dtype dtype) {
          all.push_back({std::string(mode), std::string(comm), world, std::string(kernels), dtype});
        };
        for (const std::string_view kernels : backend_names()) add(kernels, Dtype::f32);
        add("reference", Dtype::f64);
      }
    }
  }
  return all;
}

Curve run_mode(const Variation& v, const std::string& model) {
  Curve result;
  std::mutex mutex;
  const bool over_ranks = mode_traits(v.mode).over_ranks;
  const auto run = [&](Comm& comm) {
    const BackendScope kernels(backend_named(v.kernels));
    const auto mode =
        make_mode(v.mode, {.model = model_named(model),
                           .seed = kSeed,
                           .dtype = v.dtype,
                           .comm = &comm,
                           .devices = over_ranks ? std::vector{Device{DeviceType::cpu, comm.rank()}}
                                                 : cpus(v.world)});
    Curve mine = train(*mode, model);
    const std::lock_guard lock(mutex);
    if (comm.rank() == 0)
      result = std::move(mine);
    else
      EXPECT_TRUE(mine.values.empty());
  };
  launch_threads(over_ranks ? v.world : 1, run, v.comm);
  return result;
}

class Law : public ::testing::TestWithParam<Variation> {};

TEST_P(Law, SameLossCurveAndParametersAsSingle) {
  const Variation& v = GetParam();
  const double tolerance = v.dtype == Dtype::f64 ? kToleranceF64 : kToleranceF32;
  for (const std::string& model : kModels) {
    SCOPED_TRACE(model);
    const Curve want = run_mode({"single", "local", 1, v.kernels, v.dtype}, model);
    const Curve got = run_mode(v, model);
    ASSERT_EQ(got.losses.size(), kBatches.size());
    for (size_t i = 0; i < got.losses.size(); ++i)
      EXPECT_NEAR(got.losses[i], want.losses[i], tolerance * std::max(1.0, want.losses[i]))
          << "step " << i;
    ASSERT_EQ(got.values.size(), want.values.size());
    for (const auto& [name, value] : want.values) {
      ASSERT_TRUE(got.values.contains(name)) << name;
      EXPECT_TRUE(close(got.values.at(name), value, tolerance)) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, Law, ::testing::ValuesIn(variations()),
                         [](const auto& variation) { return str(variation.param); });

TEST(Law, TrainingChangesTheParameters) {  // or the comparisons above would prove nothing
  for (const std::string& model : kModels) {
    const auto mode = make_mode("single", {.model = model_named(model), .seed = kSeed});
    const auto before = mode->gather();
    const Curve curve = train(*mode, model);
    for (const auto& [name, value] : before)
      EXPECT_FALSE(close(curve.values.at(name), value, 1e-3)) << model << " " << name;
    EXPECT_NE(curve.losses[0], curve.losses[1]);
  }
}

TEST(Ddp, StartsFromRank0WhateverTheSeeds) {
  const Curve want = run_mode({"single", "local", 1, "reference", Dtype::f32}, "dropout");
  std::vector<std::map<std::string, Tensor>> values(3);
  launch_threads(3, [&](Comm& comm) {
    const BackendScope kernels(backend_named("reference"));
    const auto mode = make_mode("ddp", {.model = dropout_model(),
                                        .seed = kSeed + static_cast<uint64_t>(comm.rank()),
                                        .comm = &comm,
                                        .devices = {{DeviceType::cpu, comm.rank()}}});
    train(*mode, "dropout");
    for (const Param* p : mode->params())
      values[static_cast<size_t>(comm.rank())][p->name] = p->value;
  });
  for (const auto& [name, value] : want.values) {
    EXPECT_TRUE(close(values[0].at(name), value, kToleranceF32)) << name;
    for (const auto& other : values)
      EXPECT_TRUE(close(other.at(name), values[0].at(name), 0)) << name;
  }
}

TEST(Ddp, InlineSyncGivesTheSame) {
  const Curve want = run_mode({"single", "local", 1, "reference", Dtype::f64}, "conv");
  launch_threads(2, [&](Comm& comm) {
    const auto mode = make_mode("ddp", {.model = conv_model(),
                                        .seed = kSeed,
                                        .dtype = Dtype::f64,
                                        .comm = &comm,
                                        .devices = {{DeviceType::cpu, comm.rank()}},
                                        .sync = {.bucketed = false}});
    const Curve got = train(*mode, "conv");
    for (const auto& [name, value] : got.values)
      EXPECT_TRUE(close(value, want.values.at(name), kToleranceF64)) << name;
  });
}

TEST(Ddp, RefusesFewerRowsThanRanksOnEveryRankAndGoesOn) {
  launch_threads(3, [](Comm& comm) {
    const auto mode = make_mode("ddp", {.model = make_model("simple_net"),
                                        .comm = &comm,
                                        .devices = {{DeviceType::cpu, comm.rank()}}});
    const ModelSpec model = make_model("simple_net");
    Batch two = global_batch(model, 2, 0);
    EXPECT_THROW(mode->step(rows_of(two, mode->share())), std::invalid_argument);
    EXPECT_GT(mode->step(rows_of(global_batch(model, 3, 0), mode->share())), 0);
  });
}

TEST(DataParallel, FewerRowsThanDevicesMeansFewerParts) {
  const ModelSpec model = conv_model();
  const auto mode =
      make_mode("data_parallel", {.model = conv_model(), .dtype = Dtype::f64, .devices = cpus(4)});
  const auto single = make_mode("single", {.model = conv_model(), .dtype = Dtype::f64});
  for (const int64_t rows : {8, 2, 1, 8}) {
    const Batch batch = global_batch(model, rows, 0);
    EXPECT_NEAR(mode->step(batch), single->step(batch), kToleranceF64) << rows;
    const auto got = mode->params(), want = single->params();
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_TRUE(close(got[i]->grad, want[i]->grad, kToleranceF64)) << rows << want[i]->name;
  }
}

// Running statistics are those of the first part, as torch's are.
template <typename MakeMode>
void expect_statistics_of_first_part(const MakeMode& run, int parts) {
  const ModelSpec model = batchnorm_model();
  const Batch whole = global_batch(model, 9, 0);
  const auto first = make_mode("single", {.model = batchnorm_model(), .dtype = Dtype::f64});
  first->step(rows_of(whole, {0, parts}));
  const std::map<std::string, Tensor> got = run(whole);
  int buffers = 0;
  for (const auto& [name, value] : first->gather()) {
    if (name.find("running") == std::string::npos) continue;
    EXPECT_TRUE(close(got.at(name), value, kToleranceF64)) << name;
    ++buffers;
  }
  EXPECT_EQ(buffers, 2);
}

TEST(BatchNorm, DataParallelKeepsTheHomeStatistics) {
  expect_statistics_of_first_part(
      [](const Batch& whole) {
        const auto mode = make_mode(
            "data_parallel", {.model = batchnorm_model(), .dtype = Dtype::f64, .devices = cpus(2)});
        mode->step(whole);
        return mode->gather();
      },
      2);
}

TEST(BatchNorm, DdpKeepsTheStatisticsOfEachRank) {
  expect_statistics_of_first_part(
      [](const Batch& whole) {
        std::map<std::string, Tensor> values;
        launch_threads(3, [&](Comm& comm) {
          const auto mode = make_mode("ddp", {.model = batchnorm_model(),
                                              .dtype = Dtype::f64,
                                              .comm = &comm,
                                              .devices = {{DeviceType::cpu, comm.rank()}}});
          mode->step(rows_of(whole, mode->share()));
          auto mine = mode->gather();
          if (comm.rank() == 0) values = std::move(mine);
        });
        return values;
      },
      3);
}

TEST(MakeMode, SuggestsTheNearestName) {
  try {
    make_mode("dpp", {.model = make_model("simple_net")});
    FAIL();
  } catch (const std::invalid_argument& e) {
    EXPECT_NE(std::string(e.what()).find("ddp"), std::string::npos) << e.what();
  }
}

TEST(MakeMode, RefusesWhatAModeCannotUse) {
  EXPECT_THROW(make_mode("ddp", {.model = make_model("simple_net")}), std::invalid_argument);
  EXPECT_THROW(make_mode("single", {.model = make_model("simple_net"), .devices = cpus(2)}),
               std::invalid_argument);
  EXPECT_THROW(make_mode("single", {.model = {}}), std::invalid_argument);
}

TEST(Step, RefusesABatchThatDoesNotFit) {
  const auto mode = make_mode("single", {.model = make_model("simple_net")});
  Batch batch = global_batch(make_model("simple_net"), 4, 0);
  batch.global_rows = 3;
  EXPECT_THROW(mode->step(batch), std::invalid_argument);
  batch.global_rows = 4;
  batch.y = batch.y.rows(0, 3);
  EXPECT_THROW(mode->step(batch), std::invalid_argument);
  EXPECT_THROW(mode->step({}), std::invalid_argument);
}

}  // namespace
}  // namespace howmany
