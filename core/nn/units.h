// Where a model can be cut: its units are the layers that run one after the other, nested
// sequentials flattened (layer1.0, layer1.1, fc). A part is a few neighbouring units as a model of
// its own whose parameters keep the paths, and so the values, they have in the whole. A model that
// is no sequential is one unit. Pure; as thread-safe as the model.
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
  std::string path;  // "layer1.0"; empty when the model is one unit
  Layer* layer;      // of the model, which must outlive it
};

std::vector<Unit> units(Layer& model);

// Clones, not materialized. No units make a part that passes its input on.
LayerPtr part(std::span<const Unit> units);

// [3,224,224] -> [rows,3,224,224]
Shape with_rows_in_front(int64_t rows, const Shape& sample);

}  // namespace howmany
