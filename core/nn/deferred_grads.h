// SPDX-License-Identifier: Apache-2.0
// Defers weight gradients until run(), so that all micro-batches of a step share one matrix product
// per layer. With eight micro-batches of 64 rows, eight products would read and write each gradient
// eight times.
//
// Use. A Tape with TapeOptions::later adds the rows of layers that support it (linear). Other
// layers
//   compute their gradients at once.
// Ownership. Keeps the added rows until run().
// Thread safety. Not thread-safe.
//
//   DeferredGrads later;
//   Tape tape({.training = true, .later = &later});  // for each micro-batch
//   later.run(on_final);                             // after the last backward
#pragma once

#include <vector>

#include "core/nn/layer.h"

namespace howmany {

class DeferredGrads {
 public:
  // `rows` holds the tensors that add_grads() of the layer needs, in the same order each time.
  void add(Layer& layer, std::vector<Tensor> rows);
  // Adds all gradients to their parameters, in the order of the first add() of each layer. Calls
  // `on_final`, which may be empty, for each parameter.
  void run(const Tape::Hook& on_final);

 private:
  struct Entry {
    Layer* layer;
    std::vector<std::vector<Tensor>> parts;  // [tensor][micro-batch]
  };
  std::vector<Entry> entries_;
};

}  // namespace howmany
