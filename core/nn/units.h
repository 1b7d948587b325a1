// SPDX-License-Identifier: Apache-2.0
// Units: the places where a model can be cut. They are the layers that run one after the other,
// with nested sequentials flattened (layer1.0, layer1.1, fc). A model that is not a sequential is
// one unit. A part is a model of some consecutive units. Its parameters keep their paths in the
// whole model, and so their initial values. The functions are pure and as thread-safe as the model.
//
//   std::vector<Unit> all = units(*model.layer);
//   LayerPtr second_half = part(std::span(all).subspan(all.size() / 2));
//   materialize(*second_half, {.seed = 1});
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/nn/layer.h"

namespace howmany {

struct Unit {
  std::string path;  // "layer1.0"; empty if the model is one unit
  Layer* layer;      // of the model, which must outlive it
};

std::vector<Unit> units(Layer& model);

// Returns clones of the units, not materialized. A part without units returns its input.
LayerPtr part(std::span<const Unit> units);

// Returns a clone of the model, not materialized. Its units run forward again before backward (see
// recomputed() in layers.h), except a first unit that a tied head uses again.
LayerPtr recomputing(Layer& model);

// [3,224,224] -> [rows,3,224,224]
Shape with_rows_in_front(int64_t rows, const Shape& sample);

}  // namespace howmany
