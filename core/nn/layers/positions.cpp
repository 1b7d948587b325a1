// SPDX-License-Identifier: Apache-2.0
#include "core/nn/cut.h"
#include "core/nn/layers.h"

namespace howmany::layers {
namespace {

class ChangePositions final : public Layer {
 public:
  ChangePositions(Cut cut, bool join) : cut_(std::move(cut)), join_(join) {}

  Tensor forward(const Tensor& x, Tape&) override { return changed(x, join_); }
  Tensor backward(const Tensor& dy, Tape&) override { return dy ? changed(dy, !join_) : dy; }
  Shape output_shape(const Shape& x) const override {
    return join_ ? joined_positions(x, cut_.count) : part_of_positions(x, cut_.count);
  }
  std::string describe() const override { return join_ ? "join_positions" : "divide_positions"; }
  LayerPtr clone() const override { return std::make_unique<ChangePositions>(cut_, join_); }

 private:
  Tensor changed(const Tensor& t, bool join) const {
    return join ? cut_.positions->join(t) : cut_.positions->own(t);
  }

  Cut cut_;
  bool join_;
};

}  // namespace

LayerPtr divide_positions(const Cut& cut) { return std::make_unique<ChangePositions>(cut, false); }
LayerPtr join_positions(const Cut& cut) { return std::make_unique<ChangePositions>(cut, true); }

}  // namespace howmany::layers
