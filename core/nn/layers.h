// SPDX-License-Identifier: Apache-2.0
// The list of layers: X(name, (factory parameters), (example arguments), (example input)). A layer
// is one file in core/nn/layers plus its line here. The line adds it to core_bench and to the tests
// of shapes, gradients and replicas. Initial values are those of torch.nn. With a deviation,
// weights are drawn from N(0, deviation^2) and biases are 0.
#pragma once

#include <concepts>
#include <optional>
#include <utility>
#include <vector>

#include "core/backends/backend.h"
#include "core/nn/layer.h"

namespace howmany {

// clang-format off
#define HM_LAYERS(X)                                                                                              \
  X(linear,     (int64_t in, int64_t out, Activation act = Activation::none, bool bias = true,                    \
                 std::optional<double> deviation = {}), (4, 3), (2, 4))                                           \
  X(relu,       (), (), (2, 5))                                                                                   \
  X(gelu,       (), (), (2, 5))                                                                                   \
  X(conv2d,     (int64_t in, int64_t out, Window window, bool bias = true), (2, 3, {3, 1, 1}), (2, 5, 5, 2))      \
  X(batchnorm,  (int64_t channels, Activation act = Activation::none), (3), (4, 2, 2, 3))                         \
  X(layernorm,  (int64_t width, double epsilon = 1e-5), (6), (3, 6))                                              \
  X(groupnorm,  (int64_t groups, int64_t channels, double epsilon = 1e-5), (2, 6), (3, 2, 2, 6))                   \
  X(rmsnorm,    (int64_t width, double epsilon = 1e-6), (6), (3, 6))                                              \
  X(max_pool,   (Window window), ({2, 2, 0}), (2, 4, 4, 3))                                                       \
  X(avg_pool,   (Window window), ({2, 2, 0}), (2, 4, 4, 3))                                                       \
  X(global_avg_pool, (), (), (2, 3, 3, 4))                                                                        \
  X(embedding,  (int64_t vocabulary, int64_t width, double deviation = 1), (7, 4), (3, 5))                        \
  X(position,   (int64_t length, int64_t width, double deviation = 1), (6, 4), (2, 5, 4))                         \
  X(segment,    (int64_t count, int64_t width, double deviation = 1), (2, 4), (2, 5, 4))                          \
  X(class_token, (int64_t width), (4), (2, 3, 2, 4))                                                              \
  X(first_token, (), (), (2, 3, 4))                                                                               \
  X(attention,  (Heads heads), ({2, true}), (2, 5, 12))                                                           \
  X(rotary,     (GroupedHeads heads, double base = 10000), ({4, 2}, 7), (2, 3, 32))                               \
  X(swiglu,     (), (), (2, 6))                                                                                   \
  X(rnn,        (int64_t in, int64_t hidden), (4, 3), (2, 5, 4))                                                  \
  X(dropout,    (double p), (0.5), (4, 6))                                                                        \
  X(flatten,    (), (), (2, 3, 4))
// clang-format on

namespace layers {

#define X(name, parameters, arguments, input) LayerPtr name parameters;
HM_LAYERS(X)
#undef X

// Containers. The name of a child is the given one, or its index.
struct Named {
  std::string name;
  LayerPtr layer;
};
LayerPtr sequential(std::vector<LayerPtr> children);
LayerPtr sequential(std::vector<Named> children);
// The same from a list of arguments: sequential(linear(10, 20), relu(), linear(20, 2)).
template <typename Child, std::same_as<Child>... Rest>
requires(std::same_as<Child, LayerPtr> || std::same_as<Child, Named>) LayerPtr
    sequential(Child first, Rest... rest) {
  std::vector<Child> children;
  children.push_back(std::move(first));
  (children.push_back(std::move(rest)), ...);
  return sequential(std::move(children));
}
// y = act(main(x) + shortcut(x)). A null shortcut is the identity. Paths follow torchvision: the
// parts of main come directly under the residual's path, and the shortcut is "downsample":
// layer1.0.conv1.weight, layer2.0.downsample.0.weight.
LayerPtr residual(LayerPtr main, LayerPtr shortcut, Activation act);
// logits = body(x) weight^T. The weight is the table of the embedding that is the body's first
// part, so that the two share one parameter (Press and Wolf, 2017). Only `sharded` and `tensor` cut
// such a model.
LayerPtr tied_head(LayerPtr body);
// Divide the positions of [N,T,K] over ranks, and join them (Cut::positions). Backward does the
// reverse with the gradients, which are equal on all ranks where the positions are whole.
LayerPtr divide_positions(const Cut& cut);
LayerPtr join_positions(const Cut& cut);
// Keeps only its input for backward, and runs forward again there (Chen 2016; torch checkpoint). No
// layer outside may use its parameters.
LayerPtr recomputed(LayerPtr layer);

}  // namespace layers
}  // namespace howmany
