// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>

#include <utility>

#include "benches/core/cases.h"
#include "benches/core/check.h"
#include "core/backends/selection.h"
#include "core/nn/loss.h"
#include "core/ops/ops.h"
#include "core/tensor/precision.h"

namespace howmany::benches {
namespace {

std::string dims(const Shape& shape) { return fmt::format("{}", fmt::join(shape.extents(), "x")); }

// Memory-bound operations on one device.
class MemoryCases {
 public:
  explicit MemoryCases(const CorePlace& place)
      : place_(place),
        image_(place.image),
        rows_(place.rows),
        channels_{place.image[-1]},
        width_{place.rows[-1]} {}

  std::vector<CoreCase> all() {
    add_batchnorm();
    add_elementwise();
    add_layernorm();
    add_loss();
    add_pool();
    add_update();
    return std::move(cases_);
  }

 private:
  void add(const std::string& name, const Inputs& inputs, double bytes, const Outputs& run) {
    cases_.push_back(
        {.name = name, .bytes = bytes, .make = checked(name, place_.device, inputs, run)});
  }
  double stored_bytes(const Shape& shape) const {
    return static_cast<double>(size_of(stored_dtype(Dtype::f32, place_.device))) *
           static_cast<double>(shape.numel());
  }

  // Returns the inputs of a backward: those of the forward, and what the forward computed from
  // them.
  static Inputs after(const Inputs& inputs, std::function<ops::Normalized(Tensors&)> forward) {
    return [=](Device on) {
      Tensors t = inputs(on);
      const ops::Normalized n = forward(t);
      t.insert(t.end(), {n.y, n.mean, n.inv_std});
      return t;
    };
  }

  void add_batchnorm() {
    const auto inputs = [x = image_, c = channels_](Device on) {
      return Tensors{activation(x, "x", on), activation(x, "dy", on), normal(c, "scale", on),
                     normal(c, "shift", on), Tensor::zeros(c).to(on), Tensor::full(c, 1).to(on)};
    };
    const auto forward = [](Tensors& t) {
      BatchNormState state{.running_mean = t[4], .running_var = t[5]};
      return ops::batchnorm(t[0], t[2], t[3], Activation::relu, state);
    };
    const std::string name = "batchnorm_relu/" + dims(image_);
    const double size = stored_bytes(image_);
    add(name + "/forward", inputs, 2 * size, [=](Tensors& t) { return Tensors{forward(t).y}; });
    add(name + "/backward", after(inputs, forward), 3 * size, [](Tensors& t) {
      return Tensors{ops::batchnorm_backward(t[0], t[2], t[3], {t[6], t[7], t[8]}, t[1],
                                             Activation::relu, {room(t[2])}, {room(t[2])})};
    });
  }

  void add_elementwise() {
    const auto two = [x = image_](Device on) {
      return Tensors{activation(x, "a", on), activation(x, "b", on)};
    };
    const auto text = [x = rows_](Device on) { return Tensors{activation(x, "x", on)}; };
    const double size = stored_bytes(image_), line = stored_bytes(rows_);
    add("add_relu/" + dims(image_), two, 3 * size,
        [](Tensors& t) { return Tensors{ops::add(t[0], t[1], Activation::relu)}; });
    add("relu/" + dims(image_) + "/backward", two, 3 * size,
        [](Tensors& t) { return Tensors{ops::activation_backward(t[0], t[1], Activation::relu)}; });
    add("gelu/" + dims(rows_) + "/forward", text, 2 * line,
        [](Tensors& t) { return Tensors{ops::activation(t[0], Activation::gelu)}; });
    add("dropout/" + dims(rows_), text, 2 * line,
        [](Tensors& t) { return Tensors{ops::dropout(t[0], 0.1, {.seed = 1})}; });
  }

  void add_layernorm() {
    const auto inputs = [x = rows_, c = width_](Device on) {
      return Tensors{activation(x, "x", on), normal(c, "scale", on), normal(c, "shift", on),
                     activation(x, "dy", on)};
    };
    const auto forward = [](Tensors& t) { return ops::layernorm(t[0], t[1], t[2], 1e-5); };
    const std::string name = "layernorm/" + dims(rows_);
    add(name + "/forward", inputs, 2 * stored_bytes(rows_),
        [=](Tensors& t) { return Tensors{forward(t).y}; });
    add(name + "/backward", after(inputs, forward), 3 * stored_bytes(rows_), [](Tensors& t) {
      return Tensors{ops::layernorm_backward(t[0], t[1], {t[4], t[5], t[6]}, t[3], {room(t[1])},
                                             {room(t[1])})};
    });
  }

  void add_loss() {
    const auto inputs = [x = rows_](Device on) {
      Tensor labels = Tensor::empty({x[0]}, Dtype::i64);
      int64_t label = 0;
      for (int64_t& one : labels.mutable_values<int64_t>()) one = label++ % x[1];
      return Tensors{activation(x, "logits", on), labels.to(on)};
    };
    add("softmax_cross_entropy/" + dims(rows_), inputs, 2 * stored_bytes(rows_), [](Tensors& t) {
      return Tensors{compute_loss(Loss::softmax_cross_entropy, t[0], t[1], t[0].shape()[0]).dy};
    });
  }

  void add_pool() {
    const Window window{3, 2, 1};
    const double winners = 4.0 * static_cast<double>(image_.numel()) / 4;
    add(
        "max_pool/" + dims(image_) + "-3x3/stride:2/forward",
        [x = image_](Device on) { return Tensors{activation(x, "x", on)}; },
        1.25 * stored_bytes(image_) + winners,
        [=](Tensors& t) { return Tensors{ops::max_pool(t[0], window).y}; });
  }

  void add_update() {
    const Shape w{place_.parameters, place_.parameters};
    add(
        "sgd/" + dims(w),
        [w](Device on) {
          return Tensors{normal(w, "w", on), normal(w, "g", on), normal(w, "v", on)};
        },
        5.0 * 4 * static_cast<double>(w.numel()),
        [](Tensors& t) {
          SgdParam one{t[0], t[1], t[2]};
          backend_for(t[0]).sgd({&one, 1}, {.lr = 1e-4, .momentum = 0.9});
          return Tensors{t[0], t[2]};
        });
  }

  const CorePlace& place_;
  const Shape image_, rows_, channels_, width_;
  std::vector<CoreCase> cases_;
};

}  // namespace

std::vector<CoreCase> memory_cases(const CorePlace& place) { return MemoryCases(place).all(); }

}  // namespace howmany::benches
