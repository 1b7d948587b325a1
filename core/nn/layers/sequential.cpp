// SPDX-License-Identifier: Apache-2.0

#include "core/base/error.h"
#include "core/nn/layers.h"

namespace howmany::layers {
namespace {

class Sequential final : public Layer {
 public:
  explicit Sequential(std::vector<Named> children) : children_(std::move(children)) {
    for (const Named& c : children_) HM_REQUIRE(c.layer, "[sequential] child '{}' is null", c.name);
  }

  Tensor forward(const Tensor& x, Tape& tape) override {
    output_shape(x.shape());  // throws before any child has run
    Tensor y = x;
    for (const Named& c : children_) y = c.layer->forward(y, tape);
    return y;
  }
  Tensor backward(const Tensor& dy, Tape& tape) override {
    Tensor d = dy;
    for (auto c = children_.rbegin(); c != children_.rend(); ++c) d = c->layer->backward(d, tape);
    return d;
  }
  Shape output_shape(const Shape& x) const override {
    Shape shape = x;
    for (const Named& c : children_) shape = c.layer->output_shape(shape);
    return shape;
  }
  double forward_flop(const Shape& x) const override {
    Shape shape = x;
    double flop = 0;
    for (const Named& c : children_) {
      flop += c.layer->forward_flop(shape);
      shape = c.layer->output_shape(shape);
    }
    return flop;
  }
  std::string describe() const override {
    std::vector<std::string> parts;
    for (const Named& c : children_) parts.push_back(c.layer->describe());
    return fmt::format("sequential({})", fmt::join(parts, ", "));
  }
  LayerPtr clone() const override {
    std::vector<Named> copies;
    for (const Named& c : children_) copies.push_back({c.name, c.layer->clone()});
    return sequential(std::move(copies));
  }
  std::vector<Child> children() override {
    std::vector<Child> list;
    for (const Named& c : children_) list.push_back({c.name, c.layer.get()});
    return list;
  }
  bool is_chain() const override { return true; }
  LayerPtr with_children(std::vector<LayerPtr> others) const override {
    std::vector<Named> named;
    for (size_t i = 0; i < children_.size(); ++i)
      named.push_back({children_[i].name, std::move(others[i])});
    return sequential(std::move(named));
  }

 private:
  std::vector<Named> children_;
};

}  // namespace

LayerPtr sequential(std::vector<Named> children) {
  return std::make_unique<Sequential>(std::move(children));
}

LayerPtr sequential(std::vector<LayerPtr> children) {
  std::vector<Named> named;
  for (LayerPtr& c : children) named.push_back({std::to_string(named.size()), std::move(c)});
  return sequential(std::move(named));
}

}  // namespace howmany::layers
