// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/nn/cut.h"
#include "core/nn/layers.h"
#include "core/ops/ops.h"

namespace howmany::layers {
namespace {

class Embedding final : public Layer {
 public:
  // With `cut`, this has a part of the rows.
  Embedding(int64_t vocabulary, int64_t width, double deviation, std::optional<Cut> cut = {})
      : vocabulary_(vocabulary), width_(width), cut_(std::move(cut)) {
    HM_REQUIRE(vocabulary > 0 && width > 0, "[embedding] {} rows of {}", vocabulary, width);
    const int64_t rows = cut_ ? begin(cut_->index + 1) - begin(cut_->index) : vocabulary;
    params_ = {Param{.name = "weight",
                     .shape = {rows, width},
                     .init = {Init::normal, deviation},
                     .rounded = true}};
  }

  Tensor forward(const Tensor& x, Tape& tape) override {
    Tensor y = ops::embedding(x, table().value, rows());
    if (cut_) cut_->sum(y);
    if (tape.training()) {
      tape.used(table());
      tape.push(x);
    }
    return y;
  }
  Tensor backward(const Tensor& dy, Tape& tape) override {
    ops::embedding_backward(tape.pop(), dy, grad_out(table()), rows());
    tape.done(table());
    return {};  // ids have no gradient
  }
  Shape output_shape(const Shape& x) const override {
    HM_REQUIRE(x.rank() < Shape::kMaxRank, "[embedding] ids of shape {}", x.str());
    std::vector<int64_t> extents(x.extents().begin(), x.extents().end());
    extents.push_back(width_);
    return Shape(extents);
  }
  std::string describe() const override {
    return fmt::format("embedding({}, {})", vocabulary_, width_);
  }
  LayerPtr clone() const override { return with(cut_); }
  bool can_cut(int place) const override { return place == Cut::vocabulary && !cut_; }
  LayerPtr cut(const Cut& cut) const override {
    HM_REQUIRE(vocabulary_ >= cut.count,
               "[embedding] {} rows cannot be divided over {} ranks: take {}", vocabulary_,
               cut.count, vocabulary_);
    return with(cut);
  }
  std::span<Param> own_params() override { return params_; }

 private:
  LayerPtr with(std::optional<Cut> cut) const {
    return std::make_unique<Embedding>(vocabulary_, width_, params_[0].init.value, std::move(cut));
  }
  int64_t begin(int index) const { return begin_of_part(vocabulary_, index, cut_->count); }
  ops::TableRows rows() const { return {cut_ ? begin(cut_->index) : 0, vocabulary_}; }
  Param& table() { return params_[0]; }

  int64_t vocabulary_, width_;
  std::optional<Cut> cut_;
  std::array<Param, 1> params_;
};

}  // namespace

LayerPtr embedding(int64_t vocabulary, int64_t width, double deviation) {
  return std::make_unique<Embedding>(vocabulary, width, deviation);
}

}  // namespace howmany::layers
