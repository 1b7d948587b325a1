#include "core/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/backend.h"
#include "core/optim.h"
#include "core/rng.h"
#include "tests/support/golden.h"

namespace howmany {
namespace {

using testing::HasSubstr;

std::string refusal(std::string_view text) {
  try {
    make_model(text);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "accepted";
}

const Param* find(const std::vector<Param*>& params, std::string_view name) {
  const auto found = std::ranges::find_if(params, [&](const Param* p) { return p->name == name; });
  return found == params.end() ? nullptr : *found;
}

TEST(Model, EveryModelMapsABatchToItsClasses) {
  for (std::string_view name : model_names()) {
    const ModelSpec m = make_model(name);
    std::vector<int64_t> extents{3};
    for (int64_t e : m.sample.extents()) extents.push_back(e);
    EXPECT_EQ(m.name, name);
    EXPECT_EQ(m.layer->output_shape(Shape(extents)), (Shape{3, m.classes})) << name;
    EXPECT_GT(m.layer->forward_flop(Shape(extents)), 0) << name;
  }
}

TEST(Model, Resnet18HasTorchvisionsParameters) {
  const ModelSpec m = make_model("resnet18");
  EXPECT_EQ(parameter_count(*m.layer), 11'689'512);
  EXPECT_EQ(trainable_params(*m.layer).size(), 62u);
  EXPECT_EQ(all_params(*m.layer).size(), 62u + 2 * 20);  // running statistics of 20 batch norms
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

// torchvision.models.resnet18 at 224x224: 1.814 GMAC (multiply and add count as two here).
TEST(Model, Resnet18CountsTheKnownWork) {
  const ModelSpec m = make_model("resnet18");
  EXPECT_NEAR(m.layer->forward_flop({1, 224, 224, 3}), 2 * 1.814e9, 0.03e9);
}

TEST(Model, ReadsItsOptions) {
  const ModelSpec mlp = make_model("mlp:sizes=64-32-10");
  EXPECT_EQ(mlp.sample, (Shape{64}));
  EXPECT_EQ(mlp.classes, 10);
  EXPECT_EQ(parameter_count(*mlp.layer), 64 * 32 + 32 + 32 * 10 + 10);
  EXPECT_EQ(make_model("resnet18:image=64,classes=7").sample, (Shape{64, 64, 3}));
}

TEST(Model, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(refusal("resnet81"), HasSubstr("did you mean 'resnet18'?"));
  EXPECT_THAT(refusal("zzzzzzzzz"), HasSubstr("known: simple_net, mlp, resnet18"));
  EXPECT_THAT(refusal("mlp:size=64-10"), HasSubstr("unknown option 'size', did you mean 'sizes'?"));
  EXPECT_THAT(refusal("simple_net:width=3"), HasSubstr("takes no options"));
  EXPECT_THAT(refusal("mlp:sizes=64"), HasSubstr("at least two sizes"));
  EXPECT_THAT(refusal("mlp:sizes=64--10"), HasSubstr("'' is not a positive integer"));
  EXPECT_THAT(refusal("mlp:sizes=64-x"), HasSubstr("'x' is not a positive integer"));
  EXPECT_THAT(refusal("mlp:sizes"), HasSubstr("not of the form key=value"));
  EXPECT_THAT(refusal("mlp:sizes=4-2,sizes=4-2"), HasSubstr("given twice"));
  EXPECT_THAT(refusal("resnet18:image=0"), HasSubstr("'0' is not a positive integer"));
  EXPECT_THAT(refusal("resnet18:image=99999999999999999999"), HasSubstr("not a positive integer"));
  EXPECT_THAT(refusal(""), HasSubstr("unknown model ''"));
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
    losses.push_back(loss.value);
  }
  EXPECT_NEAR(losses.front(), std::log(3.0), 0.8);
  EXPECT_LT(losses.back(), 0.3 * losses.front());
}

// Forward, backward, three steps of SGD and inference of a narrow ResNet-18, in f64.
TEST(Model, Resnet18TrainsAsPyTorchs) {
  const ModelSpec m = make_model("resnet18:image=32,width=2,classes=5");
  materialize(*m.layer, {.dtype = Dtype::f64});
  const std::vector<Param*> params = trainable_params(*m.layer);
  for (size_t i = 0; i < params.size(); ++i) {
    golden::fill_wave(params[i]->value, static_cast<double>(i), 0.5);
    if (params[i]->shape.rank() == 1 && i % 3 == 1)
      for (double& v : params[i]->value.mutable_values<double>()) v += 1;
  }
  const Tensor x = golden::wave({3, 32, 32, 3}, 1);
  const Tensor labels = Tensor::from<int64_t>({4, 0, 2}, {3});
  const auto optimizer = make_optimizer("sgd", {.lr = 0.05, .momentum = 0.9});
  std::vector<double> losses;
  for (int step = 0; step < 3; ++step) {
    Tape tape;
    tape.set_input(x);
    const LossResult loss = compute_loss(m.loss, m.layer->forward(x, tape), labels, 3);
    zero_grads(params);
    m.layer->backward(loss.dy, tape);
    if (step == 0) {
      EXPECT_TRUE(golden::matches("resnet.dconv1", find(params, "conv1.weight")->grad));
      EXPECT_TRUE(golden::matches("resnet.ddownsample",
                                  find(params, "layer3.0.downsample.0.weight")->grad));
      EXPECT_TRUE(golden::matches("resnet.dbn", find(params, "layer2.1.bn2.weight")->grad));
      EXPECT_TRUE(golden::matches("resnet.dfc", find(params, "fc.weight")->grad));
    }
    optimizer->step(params);
    losses.push_back(loss.value);
  }
  EXPECT_TRUE(golden::matches("resnet.losses", Tensor::from(losses, {3})));
  const auto all = all_params(*m.layer);
  EXPECT_TRUE(golden::matches("resnet.running_var", find(all, "layer4.1.bn2.running_var")->value));
  Tape inference({.training = false});
  EXPECT_TRUE(golden::matches("resnet.eval", m.layer->forward(x, inference)));
}

}  // namespace
}  // namespace howmany
