// SPDX-License-Identifier: Apache-2.0
// labels: threads
#include "core/nn/deferred_grads.h"

#include <gtest/gtest.h>

#include "core/nn/layers.h"
#include "tests/support/tensors.h"

namespace howmany {
namespace {

using namespace testing_support;

constexpr int64_t kParts[] = {4, 3, 5};  // rows of the micro-batches

LayerPtr model() {
  std::vector<LayerPtr> parts;
  parts.push_back(layers::linear(3, 7, Activation::relu));
  parts.push_back(layers::layernorm(7));  // does not support deferred gradients
  parts.push_back(layers::linear(7, 5, Activation::gelu));
  parts.push_back(layers::linear(5, 2, Activation::none, false));
  LayerPtr layer = layers::sequential(std::move(parts));
  materialize(*layer, {});
  return layer;
}

// Forward and backward of all micro-batches. `later` may be null.
void run_parts(Layer& layer, DeferredGrads* later) {
  Draw draw(3);
  for (const int64_t rows : kParts) {
    const Tensor x = draw.normal({rows, 3}), dy = draw.normal({rows, 2});
    Tape tape({.training = true, .later = later});
    tape.set_input(x);
    layer.forward(x, tape);
    layer.backward(dy, tape);
    EXPECT_TRUE(tape.empty());
  }
}

TEST(DeferredGrads, AreThoseOfTheMicroBatchesOneByOne) {
  const LayerPtr at_once = model(), waiting = model();
  run_parts(*at_once, nullptr);
  DeferredGrads later;
  run_parts(*waiting, &later);
  later.run({});
  const std::vector<Param*> want = trainable_params(*at_once), got = trainable_params(*waiting);
  ASSERT_EQ(got.size(), 7u);
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_TRUE(got[i]->has_grad);
    EXPECT_TRUE(close(got[i]->grad, want[i]->grad, 1e-5)) << want[i]->name;
  }
}

TEST(DeferredGrads, AreFinalWhenTheyAreAddedAndInTheOrderOfBackward) {
  const LayerPtr layer = model();
  DeferredGrads later;
  run_parts(*layer, &later);
  for (const Param* p : trainable_params(*layer)) EXPECT_EQ(p->has_grad, p->name[0] == '1');
  std::vector<std::string> names;
  later.run([&](Param& p) { names.push_back(p.name); });
  EXPECT_EQ(names,
            (std::vector<std::string>{"3.weight", "2.weight", "2.bias", "0.weight", "0.bias"}));
  names.clear();
  later.run([&](Param& p) { names.push_back(p.name); });
  EXPECT_TRUE(names.empty()) << "nothing waits any more";
}

}  // namespace
}  // namespace howmany
