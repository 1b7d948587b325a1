// SPDX-License-Identifier: Apache-2.0
// Bytes, memory and parts of mode `tensor`. mode_test.cpp compares its results with `single`.
#include <gmock/gmock.h>

#include <map>
#include <mutex>

#include "core/nn/cut.h"
#include "core/tensor/storage.h"
#include "parallel/comm/simulation.h"
#include "parallel/launch/launch.h"
#include "parallel/modes/mode.h"
#include "tests/support/message_of.h"
#include "tests/support/training.h"

namespace howmany {
namespace {

using namespace testing_support;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kWays = 4;
constexpr double kSameF64 = 1e-12;
constexpr int64_t kSamplesOfStep = 8, kBlockWidth = 64, kTokens = 16, kBlockCount = 2;
const std::string kBlocks = fmt::format("gpt2:width={},layers={},heads=4,length={},vocabulary=50",
                                        kBlockWidth, kBlockCount, kTokens);

std::vector<std::string> paths(const CutModel& cut) {
  std::vector<std::string> all;
  for (const CutParam& param : cut.params) all.push_back(param.path);
  return all;
}

TEST(CutChains, PairsOfLinearLayersAndHeadsAreDivided) {
  const ModelSpec gpt2 = make_model(kGpt2);
  const CutModel cut = cut_chains(*gpt2.layer, {.index = 1, .count = 2});
  EXPECT_THAT(paths(cut),
              ::testing::ElementsAre("wte.weight", "h.0.attn.qkv.weight", "h.0.attn.qkv.bias",
                                     "h.0.attn.proj.weight", "h.0.mlp.fc.weight", "h.0.mlp.fc.bias",
                                     "h.0.mlp.proj.weight"));
  EXPECT_THAT(cut.params[1].divided, ::testing::ElementsAre(8, 8, 8)) << "q, k and v";
  EXPECT_EQ(cut.layer->output_shape({2, 5}), gpt2.layer->output_shape({2, 5}));
}

TEST(CutChains, LogitsOfTokensAreDividedAsTheirTable) {
  for (const std::string& text : {kGpt2, kTiedGpt2}) {
    const ModelSpec model = make_model(text);
    ASSERT_TRUE(makes_logits_of_tokens(model));
    const CutModel cut = cut_chains(*model.layer, {.index = 1, .count = 2}, true);
    EXPECT_TRUE(cut.logits);
    EXPECT_EQ(cut.layer->output_shape({2, 5}), (Shape{2, 5, 6})) << "5 to 10 of 11";
    EXPECT_EQ(cut.layer->clone()->output_shape({2, 5}), (Shape{2, 5, 6}));
  }
  EXPECT_FALSE(makes_logits_of_tokens(make_model("bert_base")));
  EXPECT_FALSE(makes_logits_of_tokens(make_model("mlp")));
}

// Whole: what makes [N,T,K] of tokens, and the head. The norms between see a part of the positions.
TEST(CutChains, PositionsAreDividedBetweenThePairs) {
  const std::string norms = "width=8,layers=1,heads=2,length=6,vocabulary=11";
  for (const std::string& text : {"gpt2:" + norms, "gpt2:tied=yes," + norms}) {
    const ModelSpec model = make_model(text);
    const CutModel cut = cut_model(model, {.index = 1, .count = 2, .positions = Positions{}});
    EXPECT_THAT(cut.of_positions, ::testing::ElementsAre("h.0.attn.ln.weight", "h.0.attn.ln.bias",
                                                         "h.0.mlp.ln.weight", "h.0.mlp.ln.bias",
                                                         "ln_f.weight", "ln_f.bias"));
    EXPECT_EQ(cut.layer->output_shape({2, 6}), (Shape{2, 6, 6}));
    EXPECT_EQ(cut.params.size(), text.find("tied") == text.npos ? 8 : 7);
  }
}

TEST(CutChains, HeadsThatShareKeysAreDividedWithThem) {
  const ModelSpec llama = make_model(kLlama);
  const CutModel cut = cut_chains(*llama.layer, {.index = 1, .count = 2});
  EXPECT_THAT(paths(cut),
              ::testing::ElementsAre("embed.weight", "layers.0.attn.qkv.weight",
                                     "layers.0.attn.proj.weight", "layers.0.mlp.gate_up.weight",
                                     "layers.0.mlp.down.weight"));
  EXPECT_THAT(cut.params[1].divided, ::testing::ElementsAre(8, 4, 4)) << "q, k and v";
  EXPECT_THAT(cut.params[3].divided, ::testing::ElementsAre(6, 6)) << "gates and values";
  EXPECT_EQ(cut.layer->output_shape({2, 5}), llama.layer->output_shape({2, 5}));
}

TEST(CutChains, AThirdLayerInARowStaysWhole) {
  const CutModel cut = cut_chains(*make_model("mlp:sizes=8-8-8-4").layer, {.count = 2});
  EXPECT_THAT(paths(cut), ::testing::ElementsAre("0.weight", "0.bias", "1.weight"));
}

TEST(CutChains, WhatIsBetweenMustWorkOnAPart) {
  EXPECT_EQ(cut_chains(*dropout_model().layer, {.count = 2}).params.size(), 3) << "after dropout";
  for (const char* model : {"batchnorm", "conv", "mse"})
    EXPECT_THROW(cut_chains(*model_named(model).layer, {.count = 2}), std::invalid_argument);
}

TEST(CutChains, PartsMayBeOfDifferentSizes) {
  int64_t all = 0;
  for (int rank = 0; rank < 3; ++rank)
    all += parameter_count(
        *cut_chains(*make_model("mlp:sizes=4-7-5").layer, {.index = rank, .count = 3}).layer);
  EXPECT_EQ(all, 4 * 7 + 7 + 7 * 5 + 3 * 5) << "each rank has the bias of the sum";
}

// One of four ranks, of which the others do not exist.
class OneOfFourWays : public ::testing::Test {
 protected:
  std::unique_ptr<Mode> make(const std::string& text) {
    return make_mode(text, {.model = make_model(kBlocks), .comm = comm_.get(), .devices = cpus(1)});
  }
  void train(Mode& mode) {
    std::ignore =
        mode.step(rows_of(global_batch(make_model(kBlocks), kSamplesOfStep, 0), mode.share()));
  }
  void step(Mode& mode) {
    train(mode);
    optimizer_->step(mode.params());
  }

  struct Sent {
    std::map<std::string, int> calls;
    std::map<std::string, double> numbers;  // f32
  };
  Sent second_step(const std::string& text) {
    const std::unique_ptr<Mode> mode = make(text);
    step(*mode);
    simulation_.take_log();
    step(*mode);
    Sent sent;
    for (const SimulatedCall& call : simulation_.take_log()) {
      ++sent.calls[call.kind];
      sent.numbers[call.kind] += call.bytes / sizeof(float);
    }
    return sent;
  }

  Simulation simulation_{{.world = kWays}};
  const std::unique_ptr<Comm> comm_ = simulation_.join(1);
  const std::unique_ptr<Optimizer> optimizer_ =
      make_optimizer("sgd", {.lr = 0.01, .momentum = 0.9});
};

// Attention and the MLP of each block sum their output in forward, and the gradient of their input
// in backward: 4 all-reduces of the activations, which ring all-reduce sends 2 (n - 1) / n times.
// The embedding and the head add one each. Ranks gather two numbers a token for the loss.
TEST_F(OneOfFourWays, SendsFourActivationsPerBlock) {
  auto [calls, numbers] = second_step("tensor");
  EXPECT_EQ(calls["all_reduce"], 4 * kBlockCount + 2);
  EXPECT_EQ(numbers["all_reduce"],
            (4.0 * kBlockCount + 2) * kSamplesOfStep * kTokens * kBlockWidth);
  EXPECT_EQ(calls["all_gather"], 1);
  EXPECT_EQ(numbers["all_gather"], 2.0 * kWays * kSamplesOfStep * kTokens);
}

// A pair gathers its input and scatters its output, as an all-reduce does in its two halves. In
// backward it does the same with gradients. The head does one half of each. The output of the table
// is summed, and the gradient of the blocks' input is gathered. The gradients of norms are summed
// in one call.
TEST_F(OneOfFourWays, GathersAndScattersPositions) {
  auto [calls, numbers] = second_step("tensor:sequence=1");
  const double activation = kSamplesOfStep * kTokens * kBlockWidth;
  EXPECT_EQ(calls["all_reduce"], 2);
  EXPECT_EQ(numbers["all_reduce"], activation + (4 * kBlockCount + 2) * kBlockWidth);
  EXPECT_EQ(calls["reduce_scatter"], 4 * kBlockCount + 1);
  EXPECT_EQ(numbers["reduce_scatter"], (4.0 * kBlockCount + 1) * activation);
  EXPECT_EQ(calls["all_gather"], 4 * kBlockCount + 1 + 1 + 1);  // the last: for the loss
  EXPECT_EQ(numbers["all_gather"],
            (4.0 * kBlockCount + 2) * activation + 2.0 * kWays * kSamplesOfStep * kTokens);
}

TEST_F(OneOfFourWays, KeepsItsPartOfThePositions) {
  const auto peak = [&](const std::string& text) {
    const std::unique_ptr<Mode> mode = make(text);
    train(*mode);
    reset_peak_memory();
    const int64_t before = memory_use().in_use;
    train(*mode);
    return static_cast<double>(memory_use().peak - before);
  };
  EXPECT_LT(peak("tensor:sequence=1"), 0.8 * peak("tensor"));
}

// Values, gradients and momentum: only the table of positions is whole.
TEST_F(OneOfFourWays, KeepsItsPartOfTheBlocks) {
  const int64_t before = memory_use().in_use;
  const std::unique_ptr<Mode> mode = make("tensor");
  step(*mode);
  const double kept = static_cast<double>(memory_use().in_use - before) / (3 * sizeof(float));
  const double positions = kTokens * kBlockWidth, tokens = 2 * 50.0 * kBlockWidth;
  const double blocks = 12.0 * kBlockCount * kBlockWidth * kBlockWidth;
  const double wanted = positions + (tokens + blocks) / kWays;
  EXPECT_NEAR(kept, wanted, 0.05 * wanted);
}

// The gradient of attention's key bias is zero but for rounding, which AdamW would enlarge.
std::map<std::string, Tensor> train_parts(Mode& mode, const std::string& model) {
  const auto optimizer = make_optimizer(model.starts_with("gpt2") ? "sgd" : "adamw",
                                        {.lr = 0.01, .weight_decay = 0.1});
  for (int i = 0; i < 4; ++i) {
    std::ignore = mode.step(rows_of(global_batch(model_named(model), 6, i), mode.share()));
    optimizer->step(mode.params());
  }
  return mode.gather();
}

TEST(TensorMode, TrainsAsSingleWhateverTheSeeds) {
  for (const auto& [model, world, text] :
       {std::tuple{kGpt2, 2, "tensor"},
        {kTiedGpt2, 4, "tensor:ways=2"},
        {kLlama, 4, "tensor:ways=2"},
        {std::string("dropout"), 3, "tensor"},
        {std::string("mlp:sizes=9-7-8-6-5"), 4, "tensor"},
        {std::string("mlp:sizes=9-7-8-6-5"), 6, "tensor:ways=3,recompute=1"}}) {
    SCOPED_TRACE(model);
    const auto single =
        make_mode("single", {.model = model_named(model), .seed = 5, .dtype = Dtype::f64});
    const std::map<std::string, Tensor> want = train_parts(*single, model),
                                        grads = single->gradients();
    launch_threads(world, [&, model = model, text = text](Comm& comm) {
      const auto mode = make_mode(text, {.model = model_named(model),
                                         .seed = 5 + static_cast<uint64_t>(comm.rank()),
                                         .dtype = Dtype::f64,
                                         .comm = &comm,
                                         .devices = {{DeviceType::cpu, comm.rank()}}});
      const std::map<std::string, Tensor> got = train_parts(*mode, model);
      EXPECT_EQ(got.size(), comm.rank() == 0 ? want.size() : 0);
      for (const auto& [name, value] : got)
        EXPECT_TRUE(close(value, want.at(name), kSameF64)) << name;
      const std::map<std::string, Tensor> summed = mode->gradients();
      EXPECT_EQ(summed.size(), grads.size());
      for (const auto& [name, grad] : summed)
        EXPECT_TRUE(close(grad, grads.at(name), kSameF64)) << name;
    });
  }
}

// Two stages of two ranks, which divide the layers of their stage.
TEST(HybridMode, DividesStagesAndLayers) {
  const std::string model = "gpt2:width=16,layers=2,heads=4,length=8,vocabulary=64";
  const auto single =
      make_mode("single", {.model = model_named(model), .seed = 5, .dtype = Dtype::f64});
  train_parts(*single, model);
  const std::map<std::string, Tensor> grads = single->gradients();
  int64_t whole = 0, norms = 0, all = 0;
  for (const auto& [name, grad] : grads) {
    whole += grad.numel();
    if (grad.numel() <= 16 || name.starts_with("position")) norms += grad.numel();
  }
  std::mutex mutex;
  launch_threads(4, [&](Comm& comm) {
    const auto mode =
        make_mode("hybrid:stages=2,ways=2", {.model = model_named(model),
                                             .seed = 5 + static_cast<uint64_t>(comm.rank()),
                                             .dtype = Dtype::f64,
                                             .comm = &comm,
                                             .devices = {{DeviceType::cpu, comm.rank()}}});
    train_parts(*mode, model);
    int64_t mine = 0;
    for (const Param* p : mode->params()) mine += p->value.numel();
    const std::map<std::string, Tensor> joined = mode->gradients();
    EXPECT_LT(joined.size(), grads.size());  // of this stage
    for (const auto& [name, grad] : joined)
      EXPECT_TRUE(close(grad, grads.at(name), kSameF64)) << name;
    const std::lock_guard lock(mutex);
    all += mine;
  });
  EXPECT_GE(all, whole);
  EXPECT_LE(all, whole + 2 * norms);
}

std::string refusal(const std::string& text, const std::string& model, int world) {
  std::string why;
  launch_threads(world, [&](Comm& comm) {
    const std::string mine = message_of<std::invalid_argument>([&] {
      make_mode(text, {.model = model_named(model),
                       .comm = &comm,
                       .devices = {{DeviceType::cpu, comm.rank()}}});
    });
    if (comm.rank() == 0) why = mine;
  });
  return why;
}

TEST(TensorMode, RefusesWithTheNumberTheRuleAndTheNearest) {
  EXPECT_THAT(refusal("tensor", "gpt2:width=12,layers=1,heads=6,length=4,vocabulary=9", 4),
              AllOf(HasSubstr("6 heads"), HasSubstr("4 ranks"), HasSubstr("take 3")));
  EXPECT_THAT(refusal("tensor", kLlama, 4),
              AllOf(HasSubstr("2 heads of keys"), HasSubstr("4 ranks"), HasSubstr("take 2")));
  EXPECT_THAT(refusal("tensor:ways=3", kGpt2, 4), AllOf(HasSubstr("ways=3"), HasSubstr("take 2")));
  EXPECT_THAT(refusal("tensor", "mlp:sizes=4-3-5", 4),
              AllOf(HasSubstr("3 features"), HasSubstr("take 3")));
  EXPECT_THAT(refusal("tensor", "gpt2:width=16,layers=1,heads=4,length=4,vocabulary=3", 4),
              AllOf(HasSubstr("3 rows"), HasSubstr("4 ranks"), HasSubstr("take 3")));
  EXPECT_THAT(refusal("tensor", "conv", 2), HasSubstr("take sharded"));
  EXPECT_THAT(refusal("tensor:sequence=1", "gpt2:width=16,layers=1,heads=4,length=6", 4),
              AllOf(HasSubstr("4 ranks"), HasSubstr("6 positions"), HasSubstr("take ways=3")));
  EXPECT_THAT(refusal("tensor:sequence=1", "mlp:sizes=8-8-8", 2), HasSubstr("leave it out"));
  EXPECT_THAT(refusal("hybrid:ways=3", kGpt2, 4), AllOf(HasSubstr("ways=3"), HasSubstr("take 2")));
  EXPECT_THAT(refusal("hybrid:ways=2,stages=2", kGpt2, 6), HasSubstr("2 stages of 2 ranks"));
  EXPECT_THAT(refusal("hybrid:ways=2,across=model", kGpt2, 2), HasSubstr("across=pipeline"));
  EXPECT_THAT(refusal("hybrid:ways=4", kLlama, 4), HasSubstr("2 heads of keys"));
  EXPECT_THROW(mode_traits("tensor:ways=0"), std::invalid_argument);
  EXPECT_THROW(mode_traits("tensor:level=2"), std::invalid_argument);
}

}  // namespace
}  // namespace howmany
