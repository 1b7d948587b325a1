// SPDX-License-Identifier: Apache-2.0
#include "core/nn/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/nn/layers.h"
#include "core/nn/model.h"
#include "tests/support/tensors.h"

namespace howmany {
namespace {

using testing_support::close;
using testing_support::Draw;

std::vector<std::string> paths(Layer& model) {
  std::vector<std::string> list;
  for (const Unit& unit : units(model)) list.push_back(unit.path);
  return list;
}

TEST(Units, FlattenNestedSequentialsAndKeepBlocksWhole) {
  const ModelSpec m = make_model("resnet18:image=32,width=2,classes=3");
  EXPECT_THAT(paths(*m.layer),
              testing::ElementsAre("conv1", "bn1", "maxpool", "layer1.0", "layer1.1", "layer2.0",
                                   "layer2.1", "layer3.0", "layer3.1", "layer4.0", "layer4.1",
                                   "avgpool", "fc"));
}

TEST(Units, AModelThatIsNoSequentialIsOne) {
  const LayerPtr alone = layers::linear(3, 2);
  EXPECT_THAT(paths(*alone), testing::ElementsAre(""));
  const LayerPtr nothing = layers::sequential(std::vector<LayerPtr>{});
  EXPECT_THAT(paths(*nothing), testing::ElementsAre(""));
}

TEST(Units, APartHasThePathsAndValuesOfTheWhole) {
  const ModelSpec m = make_model("resnet18:image=32,width=2,classes=3");
  const std::vector<Unit> all = units(*m.layer);
  const LayerPtr whole = m.layer->clone();
  materialize(*whole, {.seed = 7});
  std::map<std::string, Tensor> want;
  for (const Param* p : all_params(*whole)) want[p->name] = p->value;
  for (const size_t cut : {size_t{0}, size_t{1}, size_t{4}, all.size()}) {
    size_t seen = 0;
    for (const auto& half : {std::span(all).first(cut), std::span(all).subspan(cut)}) {
      const LayerPtr piece = part(half);
      materialize(*piece, {.seed = 7});
      for (const Param* p : all_params(*piece)) {
        ASSERT_TRUE(want.contains(p->name)) << p->name;
        EXPECT_TRUE(close(p->value, want.at(p->name), 0)) << p->name;
        ++seen;
      }
    }
    EXPECT_EQ(seen, want.size());
  }
}

TEST(Units, APartOfAModelOfOneUnitHasItsNames) {
  const LayerPtr alone = layers::linear(3, 2);
  const std::vector<Unit> all = units(*alone);
  const LayerPtr piece = part(all);
  name_params(*piece);
  EXPECT_EQ(all_params(*piece)[0]->name, "weight");
}

TEST(Units, PartsOneAfterTheOtherComputeTheWholeAndDropTheSameElements) {
  std::vector<LayerPtr> layers;
  layers.push_back(layers::linear(6, 5));
  layers.push_back(layers::dropout(0.5));
  layers.push_back(layers::linear(5, 3));
  const LayerPtr whole = layers::sequential(std::move(layers));
  const std::vector<Unit> all = units(*whole);
  const LayerPtr front = part(std::span(all).first(1)), back = part(std::span(all).subspan(1));
  for (Layer* layer : {whole.get(), front.get(), back.get()}) materialize(*layer, {});
  const Tensor x = Draw(3).normal({4, 6});
  const TapeOptions options{.seed = 2, .step = 1};
  Tape one(options), first(options), second(options);
  const Tensor want = whole->forward(x, one);
  EXPECT_TRUE(close(back->forward(front->forward(x, first), second), want, 0));
}

TEST(NameParams, NamesWithoutAllocating) {
  const ModelSpec m = make_model("mlp:sizes=4-3-2");
  name_params(*m.layer);
  const std::vector<Param*> params = all_params(*m.layer);
  EXPECT_EQ(params[2]->name, "1.weight");
  EXPECT_FALSE(params[2]->value);
}

}  // namespace
}  // namespace howmany
