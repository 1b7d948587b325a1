// SPDX-License-Identifier: Apache-2.0
#include "core/nn/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "core/backends/backend.h"
#include "core/nn/loss.h"
#include "core/nn/optim.h"
#include "core/nn/units.h"
#include "core/ops/ops.h"
#include "core/tensor/rng.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"

namespace howmany {
namespace {

using testing::HasSubstr;

std::string model_refusal(std::string_view text) {
  return message_of<std::invalid_argument>([&] { make_model(text); });
}

const Param* find(const std::vector<Param*>& params, std::string_view name) {
  const auto found = std::ranges::find_if(params, [&](const Param* p) { return p->name == name; });
  return found == params.end() ? nullptr : *found;
}

TEST(Model, EveryModelMapsABatchToItsClasses) {
  for (std::string_view name : model_names()) {
    const ModelSpec m = make_model(name);
    const Shape x = with_rows_in_front(3, m.sample), labels = with_rows_in_front(3, m.labels);
    std::vector<int64_t> y(labels.extents().begin(), labels.extents().end());
    y.push_back(m.classes);
    EXPECT_EQ(m.name, name);
    EXPECT_EQ(m.layer->output_shape(x), Shape(y)) << name;
    EXPECT_GT(m.layer->forward_flop(x), 0) << name;
  }
}

TEST(Model, Resnet18HasTorchvisionsNames) {
  const ModelSpec m = make_model("resnet18:image=32,width=2,classes=10");
  materialize(*m.layer, {});
  const std::vector<Param*> params = all_params(*m.layer);
  EXPECT_EQ(params.front()->name, "conv1.weight");
  EXPECT_EQ(params.back()->name, "fc.bias");
  for (const char* name :
       {"bn1.running_var", "layer1.0.conv1.weight", "layer1.1.bn2.bias",
        "layer2.0.downsample.0.weight", "layer4.0.downsample.1.running_mean", "fc.weight"})
    EXPECT_NE(find(params, name), nullptr) << name;
  EXPECT_EQ(find(params, "layer1.0.downsample.0.weight"), nullptr);
  EXPECT_EQ(find(params, "layer2.0.downsample.0.weight")->shape, (Shape{4, 1, 1, 2}));
}

// Multiply-adds of torchvision's models for an image of 224x224. In resnet50, the stride is in the
// 3x3 convolutions.
TEST(Model, HasTorchvisionsParametersAndWork) {
  struct Known {
    const char* name;
    int64_t parameters;
    size_t tensors;
    double multiply_adds, tolerance;
  };
  for (const Known& known : {Known{"resnet18", 11'689'512, 62, 1.814e9, 0.015e9},
                             Known{"resnet34", 21'797'672, 110, 3.664e9, 0.03e9},
                             Known{"resnet50", 25'557'032, 161, 4.089e9, 0.065e9},
                             Known{"vgg16", 138'357'544, 32, 15.47e9, 0.05e9},
                             Known{"vit_b_16", 86'567'656, 152, 17.56e9, 0.05e9}}) {
    const ModelSpec m = make_model(known.name);
    EXPECT_EQ(parameter_count(*m.layer), known.parameters) << known.name;
    EXPECT_EQ(trainable_params(*m.layer).size(), known.tensors) << known.name;
    EXPECT_NEAR(m.layer->forward_flop({1, 224, 224, 3}) / 2, known.multiply_adds, known.tolerance)
        << known.name;
  }
}

TEST(Model, Vgg16RefusesWhatItCannotBe) {
  EXPECT_THAT(model_refusal("vgg16:image=100"), HasSubstr("image 100 is no multiple of 32"));
  EXPECT_THAT(model_refusal("vgg16:dropout=1"), HasSubstr("from 0 to below 1"));
}

TEST(Model, Vgg16HasTorchvisionsNames) {
  const ModelSpec m = make_model("vgg16:image=32,width=1,classes=10");
  materialize(*m.layer, {});
  const std::vector<Param*> params = all_params(*m.layer);
  for (const char* name : {"features.0.weight", "features.28.bias", "classifier.0.weight",
                           "classifier.3.bias", "classifier.6.weight"})
    EXPECT_NE(find(params, name), nullptr) << name;
}

TEST(Model, VitRefusesWhatItCannotBe) {
  EXPECT_THAT(model_refusal("vit_b_16:image=100"),
              HasSubstr("image 100 is no multiple of patch 16"));
  EXPECT_THAT(model_refusal("vit_b_16:width=10,heads=4"),
              HasSubstr("vit_b_16: width 10 is no multiple of 4 heads"));
}

TEST(Model, Gpt2HasItsPublishedSizes) {
  const std::map<std::string, int64_t> known = {{"small", 124'439'808},
                                                {"medium", 354'823'168},
                                                {"large", 774'030'080},
                                                {"xl", 1'557'611'200}};
  for (const auto& [size, parameters] : known) {
    const ModelSpec m = make_model("gpt2:size=" + size);
    EXPECT_EQ(parameter_count(*m.layer), parameters) << size;
    EXPECT_EQ(m.sample, (Shape{1024})) << size;
  }
  EXPECT_EQ(make_model("gpt2:size=small,length=256").sample, (Shape{256}));
  EXPECT_EQ(units(*make_model("gpt2:size=small").layer).size(), 1u);  // its head is tied
  EXPECT_THAT(model_refusal("gpt2:tied=maybe"), HasSubstr("tied=maybe: expected yes or no"));
  EXPECT_THAT(model_refusal("gpt2:size=huge"), HasSubstr("expected small, medium, large or xl"));
}

// The gradient of a tied table is the sum of those of the embedding and of an equal head.
TEST(Model, Gpt2WithATiedHeadTrainsAsTwoEqualTables) {
  const std::string sizes = "gpt2:width=12,layers=1,heads=3,length=5,vocabulary=11,deviation=0.5";
  const ModelSpec tied = make_model(sizes + ",tied=yes"), untied = make_model(sizes);
  materialize(*tied.layer, {.seed = 5});
  materialize(*untied.layer, {.seed = 5});
  const auto of_tied = trainable_params(*tied.layer), of_untied = trainable_params(*untied.layer);
  Tensor head = find(of_untied, "lm_head.weight")->value;  // shares its storage
  head.copy_from(find(of_tied, "wte.weight")->value);
  const Tensor ids = Tensor::from<int64_t>({1, 9, 3, 0, 7, 2, 2, 8, 10, 4}, {2, 5});
  const auto run = [&](const ModelSpec& m) {
    Tape tape;
    tape.set_input(ids);
    const LossResult loss = compute_loss(m.loss, m.layer->forward(ids, tape), ids, 10);
    m.layer->backward(loss.dy, tape);
    EXPECT_TRUE(tape.empty());
    return loss.total.item();
  };
  EXPECT_EQ(run(tied), run(untied));
  for (const Param* p : of_tied) {
    const Param* const same = find(of_untied, p->name);
    ASSERT_NE(same, nullptr) << p->name;
    const Tensor want = p->name == "wte.weight"
                            ? ops::add(same->grad, find(of_untied, "lm_head.weight")->grad)
                            : same->grad;
    for (int64_t i = 0; i < want.numel(); ++i)
      ASSERT_NEAR(p->grad.data<float>()[i], want.data<float>()[i], 1e-6) << p->name;
  }
}

// Without the layer that makes classes.
TEST(Model, BertHasItsPublishedSizes) {
  EXPECT_EQ(parameter_count(*make_model("bert_base").layer), 109'482'240 + 2 * 768 + 2);
  EXPECT_EQ(parameter_count(*make_model("bert_large").layer), 335'141'888 + 2 * 1024 + 2);
  EXPECT_THAT(model_refusal("bert_base:length=513"),
              HasSubstr("length 513 is above the 512 positions"));
  EXPECT_THAT(model_refusal("bert_large:heads=3"), HasSubstr("no multiple of 3 heads"));
}

TEST(Model, LlamaHasItsPublishedSizes) {
  EXPECT_EQ(parameter_count(*make_model("llama:size=160m").layer), 162'417'408);
  EXPECT_EQ(parameter_count(*make_model("llama:size=1b").layer), 1'235'814'400);
  EXPECT_THAT(model_refusal("llama:size=9b"), HasSubstr("expected one of 160m, 1b"));
  EXPECT_THAT(model_refusal("llama:kv_heads=3"),
              HasSubstr("4 heads are no multiple of kv_heads=3"));
  EXPECT_THAT(model_refusal("llama:width=12,heads=4"),
              HasSubstr("width 12 is no multiple of 4 heads of an even size"));
}

// GPT-2 (124M), with a head of its own instead of one tied to the embedding.
TEST(Model, Gpt2HasTheKnownSizeAndNames) {
  const ModelSpec m = make_model("gpt2:width=768,layers=12,heads=12,length=1024,vocabulary=50257");
  EXPECT_EQ(parameter_count(*m.layer), 124'439'808 + 768 * 50257);
  name_params(*m.layer);
  const std::vector<Param*> params = trainable_params(*m.layer);
  EXPECT_EQ(params.front()->name, "wte.weight");
  EXPECT_EQ(params.back()->name, "lm_head.weight");
  for (const char* name :
       {"wpe.weight", "h.0.attn.ln.weight", "h.0.attn.qkv.weight", "h.11.attn.proj.bias",
        "h.11.mlp.fc.weight", "h.3.mlp.proj.weight", "ln_f.bias"})
    EXPECT_NE(find(params, name), nullptr) << name;
  EXPECT_EQ(units(*m.layer).size(), 2u + 2 * 12 + 2);
}

// FLOP per token: 2 per weight of a product, and 4 D per attended token in each layer.
TEST(Model, Gpt2CountsTheKnownWork) {
  const ModelSpec m = make_model("gpt2:width=1024,layers=8,heads=16,length=1024");
  const double weights = 8 * 12.0 * 1024 * 1024 + 1024 * 1000, tokens = 8 * 1024;
  const double attention = 8 * tokens * 4 * 1024 * (1024 + 1) / 2;
  EXPECT_NEAR(m.layer->forward_flop({8, 1024}), 2 * weights * tokens + attention,
              2e-3 * 2 * weights * tokens);
}

TEST(Model, ReadsItsOptions) {
  const ModelSpec mlp = make_model("mlp:sizes=64-32-10");
  EXPECT_EQ(mlp.sample, (Shape{64}));
  EXPECT_EQ(mlp.classes, 10);
  EXPECT_EQ(parameter_count(*mlp.layer), 64 * 32 + 32 + 32 * 10 + 10);
  EXPECT_EQ(make_model("resnet18:image=64,classes=7").sample, (Shape{64, 64, 3}));
}

TEST(Model, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(model_refusal("resnet81"), HasSubstr("did you mean 'resnet18'?"));
  EXPECT_THAT(model_refusal("zzzzzzzzz"), HasSubstr("known: simple_net, mlp, resnet18"));
  EXPECT_THAT(model_refusal("mlp:size=64-10"),
              HasSubstr("unknown option 'size', did you mean 'sizes'?"));
  EXPECT_THAT(model_refusal("simple_net:width=3"), HasSubstr("takes no options"));
  EXPECT_THAT(model_refusal("mlp:sizes=64"), HasSubstr("at least two sizes"));
  EXPECT_THAT(model_refusal("mlp:sizes=64--10"), HasSubstr("'' is not a positive integer"));
  EXPECT_THAT(model_refusal("mlp:sizes=64-x"), HasSubstr("'x' is not a positive integer"));
  EXPECT_THAT(model_refusal("mlp:sizes"), HasSubstr("not of the form key=value"));
  EXPECT_THAT(model_refusal("mlp:sizes=4-2,sizes=4-2"), HasSubstr("given twice"));
  EXPECT_THAT(model_refusal("gpt2:width=10,heads=4"),
              HasSubstr("width 10 is no multiple of 4 heads"));
  EXPECT_THAT(model_refusal("resnet18:image=0"), HasSubstr("'0' is not a positive integer"));
  EXPECT_THAT(model_refusal("resnet18:image=99999999999999999999"),
              HasSubstr("not a positive integer"));
  EXPECT_THAT(model_refusal(""), HasSubstr("unknown model ''"));
}

TEST(Model, StartsTheSameForASeedAndDifferentlyForAnother) {
  const ModelSpec a = make_model("mlp:sizes=6-5-4"), b = make_model("mlp:sizes=6-5-4");
  materialize(*a.layer, {.seed = 3});
  materialize(*b.layer, {.seed = 3});
  const auto values = [](const ModelSpec& m) {
    const auto span = trainable_params(*m.layer)[2]->value.values<float>();
    return std::vector<float>(span.begin(), span.end());
  };
  EXPECT_EQ(values(a), values(b));
  materialize(*b.layer, {.seed = 4});
  EXPECT_NE(values(a), values(b));
}

TEST(Model, Resnet18LearnsAFewImages) {
  const ModelSpec m = make_model("resnet18:image=32,width=2,classes=3");
  materialize(*m.layer, {});
  Tensor x = Tensor::empty({6, 32, 32, 3});
  fill_normal(x, 0, 1, Rng(5));
  const Tensor labels = Tensor::from<int64_t>({0, 1, 2, 0, 1, 2}, {6});
  const auto params = trainable_params(*m.layer);
  const auto optimizer = make_optimizer("sgd", {.lr = 0.05, .momentum = 0.9});
  std::vector<double> losses;
  for (int step = 0; step < 10; ++step) {
    Tape tape;
    tape.set_input(x);
    const LossResult loss = compute_loss(m.loss, m.layer->forward(x, tape), labels, 6);
    zero_grads(params);
    EXPECT_FALSE(m.layer->backward(loss.dy, tape));
    EXPECT_TRUE(tape.empty());
    optimizer->step(params);
    losses.push_back(loss.value());
  }
  EXPECT_NEAR(losses.front(), std::log(3.0), 0.8);
  EXPECT_LT(losses.back(), 0.3 * losses.front());
}

// Returns the losses of five steps on one batch in f64. Compares the gradients of the first.
Tensor train_five_steps(const std::string& name, const ModelSpec& m, Optimizer& optimizer,
                        const Tensor& x, const Tensor& labels) {
  const std::vector<Param*> params = trainable_params(*m.layer);
  std::vector<double> losses;
  for (int step = 0; step < 5; ++step) {
    Tape tape;
    tape.set_input(x);
    const LossResult loss = compute_loss(m.loss, m.layer->forward(x, tape), labels, x.shape()[0]);
    zero_grads(params);
    m.layer->backward(loss.dy, tape);
    for (const Param* p : params) {
      if (step > 0) break;
      EXPECT_TRUE(golden::matches(name + ".d" + p->name, p->grad));
    }
    optimizer.step(params);
    losses.push_back(loss.value());
  }
  return Tensor::from(losses, {5});
}

// Initializes parameter i with wave(i), plus 1 if `high` returns true.
void start_as_waves(const ModelSpec& m, const std::function<bool(size_t, const Param&)>& high,
                    double scale = 0.5) {
  materialize(*m.layer, {.dtype = Dtype::f64});
  const std::vector<Param*> params = trainable_params(*m.layer);
  for (size_t i = 0; i < params.size(); ++i) {
    golden::fill_wave(params[i]->value, static_cast<double>(i), scale);
    if (high(i, *params[i]))
      for (double& v : params[i]->value.mutable_values<double>()) v += 1;
  }
}

using StartsAtOne = std::function<bool(size_t, const Param&)>;

// Returns the model after five steps of SGD.
ModelSpec expect_trains_as_pytorchs(const std::string& name, const std::string& text,
                                    const Tensor& x, const Tensor& labels, const StartsAtOne& high,
                                    double scale = 0.5, double rate = 0.01) {
  ModelSpec m = make_model(text);
  for (const std::string rule : {"adamw", "sgd"}) {
    SCOPED_TRACE(name + " " + rule);
    const auto optimizer =
        rule == "sgd" ? make_optimizer(rule, {.lr = rate, .momentum = 0.9})
                      : make_optimizer(rule, {.lr = rate, .weight_decay = 0.05, .epsilon = 1e-4});
    m = make_model(text);
    start_as_waves(m, high, scale);
    EXPECT_TRUE(
        golden::matches(name + "." + rule, train_five_steps(name, m, *optimizer, x, labels)));
  }
  return m;
}

const Tensor kThreeClasses = Tensor::from<int64_t>({4, 0, 2}, {3});

// Also inference of narrow ResNets.
TEST(Model, ResnetsTrainAsPyTorchs) {
  for (const std::string name : {"resnet18", "resnet34", "resnet50"}) {
    const Tensor x = golden::wave({3, 64, 64, 3}, 1);
    const ModelSpec m = expect_trains_as_pytorchs(
        name, name + ":image=64,width=2,classes=5", x, kThreeClasses,
        [](size_t i, const Param& p) { return p.shape.rank() == 1 && i % 3 == 1; }, 0.5,
        name == "resnet50" ? 1e-6 : 0.01);
    const auto all = all_params(*m.layer);
    EXPECT_TRUE(
        golden::matches(name + ".running_var", find(all, "layer4.1.bn2.running_var")->value));
    if (name != "resnet18") continue;
    Tape inference({.training = false});
    EXPECT_TRUE(golden::matches(name + ".eval", m.layer->forward(x, inference)));
  }
}

TEST(Model, Vgg16TrainsAsPyTorchs) {
  expect_trains_as_pytorchs(
      "vgg16", "vgg16:image=32,width=2,classes=5,dropout=0", golden::wave({3, 32, 32, 3}, 1),
      kThreeClasses, [](size_t, const Param&) { return false; }, 0.2);
}

double deviation_of(const Param& p) {
  double sum = 0;
  for (const float v : p.value.values<float>()) sum += double{v} * v;
  return std::sqrt(sum / static_cast<double>(p.value.numel()));
}

TEST(Model, Gpt2StartsAsGpt2) {
  const ModelSpec m = make_model("gpt2:width=96,layers=3,heads=3,length=32,vocabulary=500");
  for (const bool cloned : {false, true}) {
    const LayerPtr copy = m.layer->clone();
    Layer& model = cloned ? *copy : *m.layer;
    materialize(model, {.seed = 3});
    for (const Param* p : trainable_params(model)) {
      const bool norm = p->name.find("ln") != std::string::npos;
      const double wanted = p->name.ends_with("bias")          ? 0
                            : norm                             ? 1
                            : p->name.ends_with("proj.weight") ? 0.02 / std::sqrt(6)
                                                               : 0.02;
      EXPECT_NEAR(deviation_of(*p), wanted, 0.05 * wanted) << p->name;
    }
  }
}

bool starts_at_one(size_t, const Param& p) {
  return (p.name.find("ln") != std::string::npos || p.name.find("norm") != std::string::npos) &&
         p.name.ends_with("weight");
}

// Two rows of seven tokens, and labels: golden.py's tokens().
std::pair<Tensor, Tensor> tokens(int64_t vocabulary) {
  std::vector<int64_t> ids, next;
  for (int64_t i = 0; i < 14; ++i) {
    ids.push_back(5 * i * i % vocabulary);
    next.push_back((3 * i + 1) % vocabulary);
  }
  return {Tensor::from(ids, {2, 7}), Tensor::from(next, {2, 7})};
}

TEST(Model, Gpt2TrainsAsPyTorchs) {
  const auto [ids, next] = tokens(11);
  expect_trains_as_pytorchs("gpt2", "gpt2:width=12,layers=2,heads=3,length=7,vocabulary=11", ids,
                            next, starts_at_one);
}

TEST(Model, LlamaTrainsAsPyTorchs) {
  const auto [ids, next] = tokens(11);
  expect_trains_as_pytorchs(
      "llama", "llama:width=24,layers=2,heads=6,kv_heads=2,hidden=20,length=7,vocabulary=11", ids,
      next, starts_at_one);
}

TEST(Model, BertTrainsAsPyTorchs) {
  expect_trains_as_pytorchs("bert",
                            "bert_base:width=12,layers=2,heads=3,length=7,vocabulary=11,classes=5",
                            tokens(11).first, Tensor::from<int64_t>({4, 0}, {2}), starts_at_one);
}

TEST(Model, VitTrainsAsPyTorchs) {
  expect_trains_as_pytorchs("vit", "vit_b_16:image=16,patch=4,width=12,layers=2,heads=3,classes=5",
                            golden::wave({3, 16, 16, 3}, 1), kThreeClasses, starts_at_one);
}

}  // namespace
}  // namespace howmany
