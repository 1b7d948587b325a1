// SPDX-License-Identifier: Apache-2.0
#include "core/nn/cut.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/error.h"

namespace howmany {
namespace {

class Cutter {
 public:
  Cutter(const Cut& cut, bool logits) : cut_(cut), wants_logits_(logits) {}

  CutModel model(Layer& layer) {
    LayerPtr whole = divided(layer, "", true);
    return {std::move(whole), std::move(params_), logits_};
  }
  bool any_chain() const { return chains_ > 0; }

 private:
  // last: nothing follows the layer.
  LayerPtr divided(Layer& layer, const std::string& path, bool last) {
    const std::vector<Layer::Child> children = layer.children();
    if (children.empty()) return leaf(layer, path, last);
    std::vector<LayerPtr> parts;
    for (size_t i = 0; i < children.size();) {
      const size_t end = layer.is_chain() ? end_of_pair(children, i) : i;
      if (end == i) {
        parts.push_back(divided(*children[i].layer, join_path(path, children[i].name),
                                last && layer.is_chain() && i + 1 == children.size()));
        ++i;
        continue;
      }
      cut_pair(children, i, end, path, parts);
      i = end + 1;
    }
    LayerPtr with_parts = layer.with_children(std::move(parts));
    if (with_parts == nullptr) return layer.clone();
    return with_parts->can_cut(Cut::vocabulary) ? head(*with_parts, Cut::vocabulary)
                                                : std::move(with_parts);
  }

  LayerPtr leaf(Layer& layer, const std::string& path, bool last) {
    const bool table = layer.can_cut(Cut::vocabulary);
    if (!table && !(last && wants_logits_ && layer.can_cut(Cut::outputs))) return layer.clone();
    note_params(layer, at(Cut::outputs), path);
    return table ? layer.cut(at(Cut::vocabulary)) : head(layer, Cut::outputs);
  }

  LayerPtr head(const Layer& layer, Cut::Place place) {
    logits_ = true;
    return layer.cut(at(place));
  }

  Cut at(Cut::Place place) const {
    Cut cut = cut_;
    cut.place = place;
    return cut;
  }

  // Returns the place of the linear layer that takes what the one at `begin` makes, or `begin`.
  size_t end_of_pair(const std::vector<Layer::Child>& children, size_t begin) const {
    if (!children[begin].layer->can_cut(Cut::outputs)) return begin;
    for (size_t i = begin + 1; i < children.size(); ++i) {
      if (children[i].layer->can_cut(Cut::inputs)) return i;
      if (!children[i].layer->can_cut(Cut::between)) return begin;
    }
    return begin;
  }

  void cut_pair(const std::vector<Layer::Child>& children, size_t begin, size_t end,
                const std::string& path, std::vector<LayerPtr>& parts) {
    ++chains_;
    Cut cut = cut_;
    for (size_t i = begin + 1; i < end && cut.blocks.size() == 1; ++i)
      cut.blocks = children[i].layer->input_blocks();
    for (size_t i = begin; i <= end; ++i) {
      cut.place = i == begin ? Cut::outputs : i == end ? Cut::inputs : Cut::between;
      parts.push_back(children[i].layer->cut(cut));
      note_params(*children[i].layer, cut, join_path(path, children[i].name));
    }
  }

  // weight [out, in] and bias [out]
  void note_params(Layer& layer, const Cut& cut, const std::string& path) {
    for (const Param& p : layer.own_params()) {
      const bool weight = p.shape.rank() == 2;
      const std::string name = join_path(path, p.name.substr(p.name.rfind('.') + 1));
      const int64_t out = p.shape[0], in = weight ? p.shape[1] : 1;
      if (cut.place == Cut::outputs) params_.push_back({name, 1, block_sizes(cut, out), in});
      if (cut.place == Cut::inputs && weight) params_.push_back({name, out, {in}, 1});
    }
  }

  const Cut& cut_;
  const bool wants_logits_;
  bool logits_ = false;
  int chains_ = 0;
  std::vector<CutParam> params_;
};

}  // namespace

std::vector<int64_t> block_sizes(const Cut& cut, int64_t out) {
  const int64_t all = std::accumulate(cut.blocks.begin(), cut.blocks.end(), int64_t{0});
  std::vector<int64_t> sizes;
  for (const int64_t block : cut.blocks) sizes.push_back(out / all * block);
  return sizes;
}

bool makes_logits_of_tokens(const ModelSpec& model) {
  return model.vocabulary > 0 && model.classes == model.vocabulary &&
         model.loss == Loss::softmax_cross_entropy;
}

int64_t nearest_divisor(int64_t whole, int64_t wanted) {
  int64_t nearest = std::min(whole, wanted);
  while (whole % nearest != 0) --nearest;
  return nearest;
}

CutModel cut_chains(Layer& model, const Cut& cut, bool logits) {
  Cutter cutter(cut, logits);
  CutModel all = cutter.model(model);
  HM_REQUIRE(cutter.any_chain(),
             "[tensor] the model has no two linear layers in a row that ranks could divide: take "
             "sharded");
  return all;
}

}  // namespace howmany
