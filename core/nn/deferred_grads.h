// Weight gradients that wait until run(), so that all micro-batches of a step share one product for
// each layer: eight of 64 rows would read and write the gradient eight times. Tapes that are given
// one hand it the rows of layers that can wait (linear); the other layers go on as ever. It keeps
// these rows meanwhile. One thread.
//
//   DeferredGrads later;
//   Tape tape({.training = true, .later = &later});  // of each micro-batch
//   later.run(on_final);                             // after the last backward
#pragma once

#include <vector>

#include "core/nn/layer.h"

namespace howmany {

class DeferredGrads {
 public:
  // What the layer's gradients follow from, row by row: as many tensors each time.
  void add(Layer& layer, std::vector<Tensor> rows);
  // Adds all gradients in the order of the backwards; `on_final` may be empty.
  void run(const Tape::Hook& on_final);

 private:
  struct Entry {
    Layer* layer;
    std::vector<std::vector<Tensor>> parts;  // of each tensor, by micro-batch
  };
  std::vector<Entry> entries_;
};

}  // namespace howmany
