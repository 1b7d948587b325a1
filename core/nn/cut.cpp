// SPDX-License-Identifier: Apache-2.0
#include "core/nn/cut.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/nn/units.h"

namespace howmany {
namespace {

class Cutter {
 public:
  Cutter(const Cut& cut, bool logits) : cut_(cut), wants_logits_(logits) {}

  CutModel model(Layer& layer) {
    LayerPtr whole = divided(layer, "", true);
    if (LayerPtr change = change_to(false)) whole = in_a_row(std::move(whole), std::move(change));
    return {std::move(whole), std::move(params_), logits_, std::move(of_positions_)};
  }
  bool any_chain() const { return chains_ > 0; }
  bool any_positions() const { return any_positions_; }

 private:
  // last: nothing follows the layer.
  LayerPtr divided(Layer& layer, const std::string& path, bool last) {
    LayerPtr change = change_to(takes_part(layer, last));
    LayerPtr result = divided_here(layer, path, last);
    return change ? in_a_row(std::move(change), std::move(result)) : std::move(result);
  }

  // Returns whether the layer takes a part of the positions.
  bool takes_part(Layer& layer, bool last) const {
    if (!cut_.positions) return false;
    if (layer.is_chain() || layer.inner_chain() != nullptr) return in_part_;  // its layers decide
    if (layer.children().empty())
      return in_part_ && (layer.is_per_position() || is_head(layer, last));
    return keeps_positions(layer) && (in_part_ || has_pair(layer));
  }

  bool keeps_positions(Layer& layer) const {
    const std::vector<Layer::Child> children = layer.children();
    if (children.empty()) return layer.is_per_position();
    for (size_t i = 0; i < children.size(); ++i) {
      const size_t end = layer.is_chain() ? end_of_pair(children, i) : i;
      if (end == i && !keeps_positions(*children[i].layer)) return false;
      i = end;
    }
    return true;
  }

  bool has_pair(Layer& layer) const {
    const std::vector<Layer::Child> children = layer.children();
    for (size_t i = 0; i < children.size(); ++i)
      if ((layer.is_chain() && end_of_pair(children, i) != i) || has_pair(*children[i].layer))
        return true;
    return false;
  }

  // Returns a layer that divides or joins the positions, or null if they are as wanted.
  LayerPtr change_to(bool part) {
    if (part == in_part_) return nullptr;
    in_part_ = part;
    any_positions_ = true;
    return part ? layers::divide_positions(cut_) : layers::join_positions(cut_);
  }

  // Without a path of their own, so that parameters keep theirs.
  static LayerPtr in_a_row(LayerPtr first, LayerPtr second) {
    std::vector<layers::Named> both;
    both.push_back({"", std::move(first)});
    both.push_back({"", std::move(second)});
    return layers::sequential(std::move(both));
  }

  LayerPtr divided_here(Layer& layer, const std::string& path, bool last) {
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
    if (!table && !is_head(layer, last)) {
      if (in_part_)
        for (const Param& p : layer.own_params()) of_positions_.push_back(path_of(p, path));
      return layer.clone();
    }
    note_params(layer, at(Cut::outputs), path);
    return table ? layer.cut(at(Cut::vocabulary)) : head(layer, Cut::outputs);
  }

  bool is_head(const Layer& layer, bool last) const {
    return last && wants_logits_ && layer.can_cut(Cut::outputs);
  }

  LayerPtr head(const Layer& layer, Cut::Place place) {
    logits_ = true;
    LayerPtr part = layer.cut(at(place));
    in_part_ = false;
    return part;
  }

  Cut at(Cut::Place place) const {
    Cut cut = cut_;
    cut.place = place;
    if (!in_part_) cut.positions.reset();
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
    Cut cut = at(Cut::outputs);
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
      const std::string name = path_of(p, path);
      const int64_t out = p.shape[0], in = weight ? p.shape[1] : 1;
      if (cut.place == Cut::outputs) params_.push_back({name, 1, block_sizes(cut, out), in});
      if (cut.place == Cut::inputs && weight) params_.push_back({name, out, {in}, 1});
    }
  }

  static std::string path_of(const Param& p, const std::string& path) {
    return join_path(path, p.name.substr(p.name.rfind('.') + 1));
  }

  const Cut& cut_;
  const bool wants_logits_;
  bool logits_ = false;
  bool in_part_ = false, any_positions_ = false;  // the next layer is given a part of the positions
  int chains_ = 0;
  std::vector<CutParam> params_;
  std::vector<std::string> of_positions_;
};

}  // namespace

Shape joined_positions(const Shape& part, int count) { return {part[0], part[1] * count, part[2]}; }

Shape part_of_positions(const Shape& whole, int count) {
  HM_REQUIRE(whole.rank() == 3, "[tensor] sequence=1 divides the positions of [N,T,K], not of {}",
             whole.str());
  HM_REQUIRE(whole[1] % count == 0,
             "[tensor] sequence=1: {} ranks cannot divide {} positions: take ways={}", count,
             whole[1], nearest_divisor(whole[1], count));
  return {whole[0], whole[1] / count, whole[2]};
}

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
  HM_REQUIRE(!cut.positions || cutter.any_positions(),
             "[tensor] sequence=1: the model has no residual branch of two linear layers in which "
             "ranks could divide positions: leave it out");
  return all;
}

CutModel cut_model(const ModelSpec& model, const Cut& cut) {
  CutModel all = cut_chains(*model.layer, cut, makes_logits_of_tokens(model));
  if (cut.positions) all.layer->output_shape(with_rows_in_front(1, model.sample));
  return all;
}

}  // namespace howmany
