// SPDX-License-Identifier: Apache-2.0
// timeout: 1800
#include "parallel/modes/mode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>

#include "core/backends/backend.h"
#include "core/backends/selection.h"
#include "core/gpu/gpu.h"
#include "core/nn/cut.h"
#include "core/tensor/precision.h"
#include "parallel/launch/launch.h"
#include "tests/support/message_of.h"
#include "tests/support/pairs.h"
#include "tests/support/training.h"

namespace howmany {
namespace {

using namespace testing_support;

const std::string kMlp = "mlp:sizes=13-17-9-7-5";

// f32 sums differ by their order, and differences grow over the steps. f64 shows that nothing else
// differs.
constexpr double kToleranceF32 = 2e-5, kToleranceF64 = 1e-12;
// If products read rounded inputs, a different last bit may become one of the shorter format: a few
// units of 2^-11 (tf32) or 2^-8 (bf16).
constexpr double kToleranceTf32 = 2e-3, kToleranceBf16 = 2e-2;
constexpr uint64_t kSeed = 5;
// Kernels of several threads on an imitated GPU are slow on a loaded machine.
constexpr std::chrono::minutes kPatience(5);
// One world and one or two models per mode.
const bool kPairs = testing_support::pairs_only();

// Returns all of them, or the first for pairs.
template <typename T>
std::vector<T> these(std::vector<T> all) {
  if (kPairs) all.resize(1);
  return all;
}

// one_gpu: all share one GPU. mixed: CPUs and GPUs; the first and last of four are of one type, the
// other two of the other.
enum class Places { of_one_type, one_gpu, mixed };

struct Variation {
  std::string mode, comm;  // mode with options
  int world;
  std::string kernels;  // the type of the first device
  Dtype dtype;
  Precision precision = Precision::f32;
  Places places = Places::of_one_type;
};

std::string str(const Variation& v) {
  std::string text =
      fmt::format("{}_{}_{}_{}_{}", v.mode, v.comm, v.world, v.kernels, name_of(v.dtype));
  if (v.precision != Precision::f32) text += fmt::format("_{}", name_of(v.precision));
  if (v.places == Places::one_gpu) text += "_shared";
  if (v.places == Places::mixed) text += "_mixed";
  for (char& c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return text;
}

void PrintTo(const Variation& v, std::ostream* out) { *out << str(v); }

// Every mode in HM_MODES is tested. Texts with options that change its computation are added here.
std::vector<std::string> texts_of(std::string_view mode) {
  std::vector<std::string> texts{std::string(mode)};
  if (mode == "model") texts.push_back("model:micro_batches=3,schedule=gpipe,recompute=1");
  if (mode == "pipeline") {
    texts.push_back("pipeline:micro_batches=3,recompute=1");
    texts.push_back("pipeline:micro_batches=5,schedule=gpipe");
    texts.push_back("pipeline:micro_batches=5,schedule=zb");
  }
  if (mode == "single" || mode == "data_parallel" || mode == "ddp" || mode == "sharded")
    texts.push_back(std::string(mode) + ":recompute=1");
  if (mode == "single" || mode == "data_parallel" || mode == "ddp" || mode == "sharded" ||
      mode == "tensor")
    texts.push_back(std::string(mode) + ":accumulate=2");
  if (mode == "sharded") {
    texts.push_back("sharded:level=1");
    texts.push_back("sharded:level=2");
    texts.push_back("sharded:level=1,accumulate=3");
    texts.push_back("sharded:level=2,accumulate=2,recompute=1");
  }
  if (mode == "tensor") {
    texts.push_back("tensor:recompute=1");
    texts.push_back("tensor:ways=2");
    texts.push_back("tensor:ways=2,accumulate=3,recompute=1");
  }
  if (mode == "hybrid") {
    texts.push_back("hybrid:across=model,micro_batches=2,schedule=zb");
    texts.push_back("hybrid:ways=2");
    texts.push_back("hybrid:ways=2,micro_batches=3,recompute=1,schedule=zb");
  }
  return texts;
}

std::vector<int> worlds_of(std::string_view text) {
  if (kPairs) {  // replicas of two stages or ranks; a stage between two others
    if (text.starts_with("hybrid") || text.starts_with("tensor:ways=2")) return {4};
    if (text.starts_with("pipeline") || text.starts_with("model")) return {3};
    return {text.starts_with("single") ? 1 : 2};
  }
  if (text.starts_with("hybrid:ways=2")) return {2, 4, 8};
  if (text.starts_with("hybrid")) return {1, 2, 3, 4, 6, 8};
  if (text.starts_with("tensor:ways=2")) return {2, 4};
  return {1, 2, 3, 4};
}

// Statistics cover at most a micro-batch, so statistics of the whole batch need micro_batches=1.
std::vector<std::string> batchnorm_texts_of(std::string_view mode) {
  if (mode == "pipeline")
    return {"pipeline:micro_batches=1", "pipeline:micro_batches=1,recompute=1"};
  if (mode == "hybrid") return {"hybrid:micro_batches=1", "hybrid:across=model,recompute=1"};
  if (mode == "ddp" || mode == "sharded")
    return {std::string(mode), std::string(mode) + ":recompute=1"};
  if (mode == "tensor") return {};  // batch norm between two linear layers: nothing to divide
  return {std::string(mode)};
}

using TextsOf = std::vector<std::string> (*)(std::string_view);

// Replicas that recompute or accumulate make the same calls of a comm, so one comm is enough for
// them.
bool needs_only_local(const std::string& mode) {
  const bool same_calls = mode.ends_with(":recompute=1") || mode.find("accumulate") != mode.npos;
  return same_calls && mode_traits(mode).equal_ranks;
}

// Returns whether these compute on the host what the reference kernels do.
bool only_faster(std::string_view kernels) {
  return kernels != "reference" && backend_named(kernels).device_type() == DeviceType::cpu;
}

std::vector<Variation> variations(TextsOf texts) {
  std::vector<Variation> all;
  const auto add_mode = [&](const std::string& mode, int world) {
    const ModeTraits traits = mode_traits(mode);
    if (world > 1 && !traits.over_ranks && !traits.over_devices) return;
    for (const std::string_view comm : thread_comm_names(std::max(2, world))) {
      if (comm != "local" && (!traits.over_ranks || needs_only_local(mode))) continue;
      const auto add = [&](std::string_view kernels, Dtype dtype) {
        all.push_back({mode, std::string(comm), world, std::string(kernels), dtype});
      };
      // A comm sees the same calls whatever the kernels of the host.
      const bool all_kernels = comm == "local";
      for (const std::string_view kernels : backend_names())
        if (all_kernels || !only_faster(kernels)) add(kernels, Dtype::f32);
      if (all_kernels && !kPairs) add("reference", Dtype::f64);
    }
  };
  for (const std::string_view mode : mode_names())
    for (const std::string& text : texts(mode))
      for (const int world : worlds_of(text)) add_mode(text, world);
  return all;
}

bool divides_layers(std::string_view mode) {
  return mode.starts_with("tensor") || mode.find("ways=") != mode.npos;
}

// Returns the number of ranks that divide a layer.
int ways_of(const Variation& v) {
  if (!divides_layers(v.mode)) return 1;
  return v.mode.find("ways=2") != v.mode.npos ? 2 : v.world;
}

// Returns the number of stages.
int stages_of(const Variation& v) {
  if (v.mode.starts_with("hybrid")) return default_stages(v.world / ways_of(v));
  return v.mode.starts_with("model") || v.mode.starts_with("pipeline") ? v.world : 1;
}

// Attention needs a head for each rank.
bool can_cut(const Variation& v, const std::string& model) try {
  check_model(v.mode, model_named(model), v.world);
  return true;
} catch (const std::invalid_argument&) {
  return false;
}

bool fits(const Variation& v, const std::string& model) {
  if (divides_layers(v.mode) && !can_cut(v, model)) return false;
  return static_cast<int>(units(*model_named(model).layer).size()) >= stages_of(v);
}

// A comm handles a transformer's tensors like those of any model, so one comm is enough. One world
// size is enough on imitated GPUs, because transformers have many kernels.
bool chosen(const Variation& v, const std::string& model) {
  const bool of_pairs = model == kMlp || (model == kTiedGpt2 && v.mode.find(':') == v.mode.npos);
  if (kPairs && !of_pairs) return false;
  const bool transformer = model.starts_with("gpt2") || model.starts_with("llama");
  const bool whole = !transformer || (v.comm == "local" && (v.kernels != "cuda" || v.world == 2));
  return whole && fits(v, model);
}

Device device_of(int index, const Variation& v) {
  const DeviceType first = backend_named(v.kernels).device_type();
  const DeviceType other = first == DeviceType::cpu ? DeviceType::cuda : DeviceType::cpu;
  const bool turned = v.places == Places::mixed && (index % 4 == 1 || index % 4 == 2);
  return {turned ? other : first, v.places == Places::one_gpu ? 0 : index};
}

// Returns the devices of a rank: the ranks divide the devices evenly, in order.
std::vector<Device> devices_of(int rank, int ranks, const Variation& v) {
  std::vector<Device> mine;
  const int each = v.world / ranks;
  for (int i = rank * each; i < (rank + 1) * each; ++i) mine.push_back(device_of(i, v));
  return mine;
}

int gpus_of(const Variation& v) {
  int most = 0;
  for (const Device& device : devices_of(0, 1, v))
    if (device.type == DeviceType::cuda) most = std::max(most, device.index + 1);
  return most;
}

Curve run_mode(const Variation& v, const std::string& model) {
  Curve result;
  std::mutex mutex;
  const int ranks = ranks_of(v.mode, v.world);
  const auto run = [&](Comm& comm) {
    comm.set_timeout(kPatience);
    const BackendScope kernels(backend_named(v.kernels));
    const PrecisionScope precision(v.precision);
    const auto mode = make_mode(v.mode, {.model = model_named(model),
                                         .seed = kSeed,
                                         .dtype = v.dtype,
                                         .comm = &comm,
                                         .devices = devices_of(comm.rank(), ranks, v),
                                         .sync_batchnorm = true});
    Curve mine = train(*mode, model);
    const std::lock_guard lock(mutex);
    if (comm.rank() == 0)
      result = std::move(mine);
    else
      EXPECT_TRUE(mine.values.empty());
  };
  launch_threads(ranks, run, v.comm);
  return result;
}

class Law : public ::testing::TestWithParam<Variation> {
 protected:
  void SetUp() override {
    const Backend& kernels = backend_named(GetParam().kernels);
    const std::string why = kernels.unavailable();
    if (!why.empty()) GTEST_SKIP() << kernels.name() << ": " << why;
    if (gpus_of(GetParam()) > gpu::count()) GTEST_SKIP() << gpu::count() << " GPUs are here";
    if (gpus_of(GetParam()) == 0 && !kernels.computes_in(GetParam().precision))
      GTEST_SKIP() << kernels.name() << " does not compute in it on this CPU";
  }
};

double tolerance_of(const Variation& v) {
  if (v.precision == Precision::tf32) return kToleranceTf32;
  if (v.precision == Precision::bf16) return kToleranceBf16;
  return v.dtype == Dtype::f64 ? kToleranceF64 : kToleranceF32;
}

// Trains each model once with the same kernels and types. Tests do not change the result.
const Curve& run_single(const Variation& like, const std::string& model) {
  static auto& known = *new std::map<std::string, Curve>;  // outlives all backends
  const Variation v{"single", "local", 1, like.kernels, like.dtype, like.precision};
  const std::string key = str(v) + model;
  if (!known.contains(key)) known.emplace(key, run_mode(v, model));
  return known.at(key);
}

void expect_as_single(const Variation& v, const std::string& model) {
  SCOPED_TRACE(model);
  const double tolerance = tolerance_of(v);
  const Curve& want = run_single(v, model);
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

TEST_P(Law, SameLossCurveAndParametersAsSingle) {
  int compared = 0;
  for (const std::string& model : kModels) {
    if (!chosen(GetParam(), model)) continue;
    expect_as_single(GetParam(), model);
    ++compared;
  }
  EXPECT_GE(compared, kPairs ? 1 : 2);
}

const auto name_of_variation = [](const auto& variation) { return str(variation.param); };
INSTANTIATE_TEST_SUITE_P(Modes, Law, ::testing::ValuesIn(variations(texts_of)), name_of_variation);

class LawOfBatchNorm : public Law {};

TEST_P(LawOfBatchNorm, SynchronisedItIsThatOfSingle) { expect_as_single(GetParam(), "batchnorm"); }

INSTANTIATE_TEST_SUITE_P(Modes, LawOfBatchNorm, ::testing::ValuesIn(variations(batchnorm_texts_of)),
                         name_of_variation);

bool is_built_in(std::string_view kernels) {
  const std::vector<std::string_view> names = backend_names();
  return std::ranges::find(names, kernels) != names.end();
}
bool cuda_is_built_in() { return is_built_in("cuda"); }

// Selects engines that work on the host. One is enough if the options do not matter to engines.
bool moves_over(std::string_view text, std::string_view mode, std::string_view comm) {
  const bool other = comm != "local" && (text != mode || !mode_traits(mode).over_ranks);
  return mode != "single" && comm != "nccl" && !other;
}

// Shared-GPU runs, so that every mode can be tested with one GPU.
std::vector<Variation> variations_on_one_gpu() {
  std::vector<Variation> all;
  if (!cuda_is_built_in()) return all;
  for (const std::string_view mode : mode_names())
    for (const std::string& text : texts_of(mode))
      for (const std::string_view comm : thread_comm_names(2)) {
        if (!moves_over(text, mode, comm)) continue;
        all.push_back({.mode = text,
                       .comm = std::string(comm),
                       .world = 2,
                       .kernels = "cuda",
                       .dtype = Dtype::f32,
                       .places = Places::one_gpu});
      }
  return all;
}

class LawOnOneGpu : public Law {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LawOnOneGpu);  // built without cuda

TEST_P(LawOnOneGpu, RanksThatShareItTrainAsSingle) {
  for (const std::string& model : these<std::string>({kMlp, "dropout"}))
    expect_as_single(GetParam(), model);
}

INSTANTIATE_TEST_SUITE_P(Modes, LawOnOneGpu, ::testing::ValuesIn(variations_on_one_gpu()),
                         name_of_variation);

// A CPU with a GPU, and a GPU with a CPU.
std::vector<Variation> mixed_variations(TextsOf texts, std::vector<Precision> precisions) {
  std::vector<Variation> all;
  if (!cuda_is_built_in()) return all;
  for (const std::string_view mode : mode_names())
    for (const std::string& text : texts(mode))
      for (const std::string_view comm : thread_comm_names(2)) {
        if (!moves_over(text, mode, comm) || divides_layers(text)) continue;  // refused, see below
        for (const std::string kernels : {"cuda", "reference"})
          for (const Precision precision : precisions)
            all.push_back({.mode = text,
                           .comm = std::string(comm),
                           .world = mode == "hybrid" ? 4 : 2,
                           .kernels = kernels,
                           .dtype = Dtype::f32,
                           .precision = precision,
                           .places = Places::mixed});
      }
  return all;
}

class LawOfMixes : public Law {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LawOfMixes);  // built without cuda

TEST_P(LawOfMixes, ACpuAndAGpuTrainAsSingle) {
  std::vector<std::string> models = {kMlp, "dropout"};
  // Rounding may change the maximum that max_pool takes, and the CPU does not round.
  if (GetParam().precision == Precision::f32) models.push_back("conv");
  for (const std::string& model : these(models)) expect_as_single(GetParam(), model);
}

INSTANTIATE_TEST_SUITE_P(Modes, LawOfMixes,
                         ::testing::ValuesIn(mixed_variations(texts_of,
                                                              {Precision::f32, Precision::bf16})),
                         name_of_variation);

TEST(TensorOverAMix, IsRefused) {
  if (!cuda_is_built_in() || gpu::count() == 0) GTEST_SKIP() << "no GPU";
  launch_threads(2, [](Comm& comm) {
    const Device device{comm.rank() == 0 ? DeviceType::cpu : DeviceType::cuda, 0};
    EXPECT_THROW(make_mode("tensor",
                           {.model = make_model("simple_net"), .comm = &comm, .devices = {device}}),
                 std::invalid_argument);
  });
}

class LawOfMixedBatchNorm : public Law {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LawOfMixedBatchNorm);  // built without cuda

TEST_P(LawOfMixedBatchNorm, SynchronisedItIsThatOfSingle) {
  expect_as_single(GetParam(), "batchnorm");
}

INSTANTIATE_TEST_SUITE_P(Modes, LawOfMixedBatchNorm,
                         ::testing::ValuesIn(mixed_variations(batchnorm_texts_of,
                                                              {Precision::f32})),
                         name_of_variation);

// Precision is a property of the thread. Modes with threads of their own must pass it on, or their
// losses would be those of f32.
std::vector<Variation> precise_variations() {
  std::vector<Variation> all;
  const auto add = [&](const char* kernels, Precision precision) {
    for (const std::string_view mode : mode_names())
      for (const std::string& text : texts_of(mode))
        if (text == mode || precision == Precision::bf16)  // stages exchange activations in bf16
          all.push_back({text, "local", mode == "single" ? 1 : 2, kernels, Dtype::f32, precision});
  };
  if (cuda_is_built_in())
    for (const Precision precision : {Precision::tf32, Precision::bf16}) add("cuda", precision);
#ifndef __SANITIZE_THREAD__  // the threads are those of f32
  if (is_built_in("onednn")) add("onednn", Precision::bf16);
#endif
  return all;
}

class LawOfPrecision : public Law {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LawOfPrecision);  // built without both

TEST_P(LawOfPrecision, SameAsSingleInThatPrecisionAndUnlikeF32) {
  Variation plain = GetParam();
  plain.precision = Precision::f32;
  expect_as_single(GetParam(), kMlp);  // sizes that may not fit tensor cores
  for (const std::string& model : these<std::string>({"mlp:sizes=16-32-16-8-8", "conv"})) {
    if (!fits(GetParam(), model)) continue;
    expect_as_single(GetParam(), model);
    const Curve rounded = run_mode(GetParam(), model), exact = run_mode(plain, model);
    double most = 0;
    for (size_t i = 0; i < exact.losses.size(); ++i)
      most = std::max(most, std::abs(rounded.losses[i] - exact.losses[i]));
    EXPECT_GT(most, 5e-6) << model;  // the order of f32 sums causes at most a tenth of it
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, LawOfPrecision, ::testing::ValuesIn(precise_variations()),
                         name_of_variation);

// CPUs store f32 in any precision, so stages on CPUs exchange it. Activations rounded to bf16
// between stages would differ by about 2^-8.
TEST(Law, StagesOnCpusExchangeWholeActivations) {
  constexpr double kBetween = 5e-4;
  if (!is_built_in("onednn") || !backend_named("onednn").computes_in(Precision::bf16))
    GTEST_SKIP() << "no CPU kernels for bf16";
  for (const char* mode : {"pipeline", "hybrid", "model"}) {
    SCOPED_TRACE(mode);
    const Variation v{mode, "local", 2, "onednn", Dtype::f32, Precision::bf16};
    Variation alone = v;
    alone.mode = "single";
    alone.world = 1;
    const std::string model = "gpt2:width=16,layers=2,heads=2,length=6,vocabulary=24,deviation=0.2";
    const Curve want = run_mode(alone, model), got = run_mode(v, model);
    for (size_t i = 0; i < want.losses.size(); ++i)
      EXPECT_NEAR(got.losses[i], want.losses[i], kBetween * want.losses[i]) << i;
    for (const auto& [name, value] : want.values)
      EXPECT_TRUE(close(got.values.at(name), value, kBetween)) << name;
  }
}

// Values that each use rounds are gathered in bf16.
std::vector<Variation> gathered_variations() {
  std::vector<Variation> all;
  if (!cuda_is_built_in()) return all;
  for (const char* mode : {"sharded", "sharded:recompute=1", "sharded:accumulate=2"})
    for (const int world : these<int>({2, 3}))
      all.push_back({mode, "local", world, "cuda", Dtype::f32, Precision::bf16});
  return all;
}

class LawOfGathers : public Law {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LawOfGathers);  // built without cuda

TEST_P(LawOfGathers, ModelsWithTablesAndNormsTrainAsSingle) {
  const std::string sizes = "width=16,layers=2,heads=2,length=6,vocabulary=24,deviation=0.2";
  for (const std::string& model :
       {"gpt2:" + sizes, "gpt2:" + sizes + ",tied=yes", "llama:" + sizes + ",kv_heads=1,hidden=24",
        std::string("vit_b_16:layers=1,width=16,heads=2,image=32,classes=5"),
        std::string("bert_base:layers=1,width=16,heads=2,vocabulary=11,length=6"),
        std::string("embedding_rnn:vocabulary=11,length=5,width=4,hidden=8,classes=4")})
    expect_as_single(GetParam(), model);
}

INSTANTIATE_TEST_SUITE_P(Modes, LawOfGathers, ::testing::ValuesIn(gathered_variations()),
                         name_of_variation);

std::vector<std::string> positions_texts_of(std::string_view mode) {
  if (mode != "tensor") return {};
  return {"tensor:sequence=1", "tensor:ways=2,sequence=1,accumulate=2,recompute=1"};
}

std::vector<Variation> positions_variations() {
  std::vector<Variation> all = variations(positions_texts_of);
  for (const char* kernels : {"cuda", "onednn"})
    if (is_built_in(kernels))
      all.push_back({"tensor:sequence=1", "local", 2, kernels, Dtype::f32, Precision::bf16});
  return all;
}

class LawOfPositions : public Law {};

TEST_P(LawOfPositions, ModelsOfTokensTrainAsSingle) {
  const std::string sizes = "layers=1,width=24,heads=12,length=12,vocabulary=24";
  std::vector<std::string> models = {"gpt2:deviation=0.2,tied=yes," + sizes};
  // Its initial weights are small. In bf16 some gradients are then rounding errors, in plain
  // `tensor` as well.
  if (GetParam().precision == Precision::f32) models.push_back("bert_base:" + sizes);
  if (!kPairs)
    models.insert(models.end(),
                  {"gpt2:deviation=0.2," + sizes, "llama:deviation=0.2,hidden=24," + sizes,
                   "vit_b_16:layers=1,width=16,heads=4,image=24,patch=8,classes=5"});
  size_t compared = 0;
  for (const std::string& model : models) {
    if (!fits(GetParam(), model)) continue;
    expect_as_single(GetParam(), model);
    ++compared;
  }
  EXPECT_GE(compared + 1, models.size());  // not every number divides the positions of vit_b_16
}

INSTANTIATE_TEST_SUITE_P(Modes, LawOfPositions, ::testing::ValuesIn(positions_variations()),
                         name_of_variation);

TEST(Law, TrainingChangesTheParameters) {  // else the comparisons above would be void
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
    EXPECT_GT(mode->step(rows_of(global_batch(model, 3, 0), mode->share())).value(), 0);
  });
}

TEST(DataParallel, FewerRowsThanDevicesMeansFewerParts) {
  const ModelSpec model = conv_model();
  const auto mode =
      make_mode("data_parallel", {.model = conv_model(), .dtype = Dtype::f64, .devices = cpus(4)});
  const auto single = make_mode("single", {.model = conv_model(), .dtype = Dtype::f64});
  for (const int64_t rows : {8, 2, 1, 8}) {
    const Batch batch = global_batch(model, rows, 0);
    EXPECT_NEAR(mode->step(batch).value(), single->step(batch).value(), kToleranceF64) << rows;
    const auto got = mode->params(), want = single->params();
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_TRUE(close(got[i]->grad, want[i]->grad, kToleranceF64)) << rows << want[i]->name;
  }
}

// Running statistics are those of the first part, as in torch.
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
  EXPECT_EQ(buffers, 4);
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
  EXPECT_THAT(message_of<std::invalid_argument>(
                  [&] { make_mode("dpp", {.model = make_model("simple_net")}); }),
              testing::HasSubstr("ddp"));
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
