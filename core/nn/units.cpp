// SPDX-License-Identifier: Apache-2.0
#include "core/nn/units.h"

#include "core/nn/layers.h"

namespace howmany {
namespace {

void flatten(Layer& layer, const std::string& path, std::vector<Unit>& list) {
  if (!layer.is_chain()) return list.push_back({path, &layer});
  for (const Layer::Child& child : layer.children())
    flatten(*child.layer, join_path(path, child.name), list);
}

}  // namespace

std::vector<Unit> units(Layer& model) {
  std::vector<Unit> list;
  flatten(model, "", list);
  if (list.empty()) list.push_back({"", &model});
  return list;
}

LayerPtr part(std::span<const Unit> units) {
  std::vector<layers::Named> clones;
  for (const Unit& unit : units) clones.push_back({unit.path, unit.layer->clone()});
  return layers::sequential(std::move(clones));
}

LayerPtr recomputing(Layer& model) {
  Layer* const inner = model.inner_chain();
  if (inner == nullptr && !model.is_chain()) return layers::recomputed(model.clone());
  std::vector<layers::Named> parts;
  for (const Unit& unit : units(inner == nullptr ? model : *inner)) {
    LayerPtr layer = unit.layer->clone();
    const bool kept = inner != nullptr && parts.empty();
    parts.push_back({unit.path, kept ? std::move(layer) : layers::recomputed(std::move(layer))});
  }
  LayerPtr chain = layers::sequential(std::move(parts));
  return inner == nullptr ? std::move(chain) : model.over(std::move(chain));
}

Shape with_rows_in_front(int64_t rows, const Shape& sample) {
  std::vector<int64_t> extents{rows};
  extents.insert(extents.end(), sample.extents().begin(), sample.extents().end());
  return Shape(std::span<const int64_t>(extents));
}

}  // namespace howmany
