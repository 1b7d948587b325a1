// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/ops/ops.h"

namespace howmany::layers {
namespace {

// An Elman network with tanh, as torch.nn.RNN: h_t = tanh(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh),
// h_0 = 0. Returns the last state: x [N,T,in] -> y [N,hidden].
class Rnn final : public Layer {
 public:
  Rnn(int64_t in, int64_t hidden) : in_(in), hidden_(hidden) {
    HM_REQUIRE(in > 0 && hidden > 0, "[rnn] sizes {} -> {}", in, hidden);
    const Init init{Init::uniform, 1 / std::sqrt(static_cast<double>(hidden))};
    const std::pair<const char*, Shape> params[] = {{"weight_ih_l0", {hidden, in}},
                                                    {"weight_hh_l0", {hidden, hidden}},
                                                    {"bias_ih_l0", {hidden}},
                                                    {"bias_hh_l0", {hidden}}};
    for (size_t i = 0; i < params_.size(); ++i)
      params_[i] = {
          .name = params[i].first, .shape = params[i].second, .init = init, .rounded = i < 2};
  }

  // One product covers the inputs of all times. Only the products of the states are sequential.
  Tensor forward(const Tensor& x, Tape& tape) override {
    output_shape(x.shape());
    const int64_t rows = x.shape()[0], times = x.shape()[1];
    const Tensor inputs =
        ops::embedding(time_major(rows, times, x.device()), x.view({rows * times, in_}))
            .view({times * rows, in_});
    const Tensor driven = ops::linear(inputs, w_ih().value, b_ih().value, Activation::none);
    Tensor h = Tensor::zeros({rows, hidden_}, driven.dtype(), x.device());
    if (tape.training()) tape.push(h);
    for (int64_t t = 0; t < times; ++t) {
      const Tensor carried = ops::linear(h, w_hh().value, b_hh().value, Activation::none);
      h = ops::add(driven.rows(t * rows, (t + 1) * rows), carried, Activation::tanh);
      if (tape.training()) tape.push(h);
    }
    if (tape.training()) {
      for (Param& p : params_) tape.used(p);
      tape.push(inputs);
      tape.push_shape({rows, times, tape.wants_grad(x) ? 1 : 0});
    }
    return h;
  }

  Tensor backward(const Tensor& dy, Tape& tape) override {
    const Shape kept = tape.pop_shape();
    const int64_t rows = kept[0], times = kept[1];
    const Tensor inputs = tape.pop();
    Tensor driven = Tensor::empty({times * rows, hidden_}, dy.dtype(), dy.device());
    Tensor h = tape.pop(), dh = dy;
    for (int64_t t = times; t-- > 0;) {
      const Tensor dz = ops::activation_backward(h, dh, Activation::tanh);
      driven.rows(t * rows, (t + 1) * rows).copy_from(dz);
      h = tape.pop();
      dh = ops::linear_backward(h, w_hh().value, {}, dz, Activation::none, t > 0, grad_out(w_hh()),
                                grad_out(b_hh()));
      w_hh().has_grad = b_hh().has_grad = true;  // earlier times add to it
    }
    const Tensor dx = ops::linear_backward(inputs, w_ih().value, {}, driven, Activation::none,
                                           kept[2] != 0, grad_out(w_ih()), grad_out(b_ih()));
    for (Param& p : params_) tape.done(p);
    return dx ? sample_major(dx, rows, times) : dx;
  }

  Shape output_shape(const Shape& x) const override {
    HM_REQUIRE(x.rank() == 3 && x[1] > 0 && x[2] == in_,
               "[rnn] x has shape {}, expected [N,T,{}] with T above 0", x.str(), in_);
    return {x[0], hidden_};
  }
  double forward_flop(const Shape& x) const override {
    const auto steps = static_cast<double>(x[0]) * static_cast<double>(x[1]);
    return 2 * steps * static_cast<double>(hidden_) * static_cast<double>(in_ + hidden_);
  }
  std::string describe() const override { return fmt::format("rnn({}, {})", in_, hidden_); }
  LayerPtr clone() const override { return rnn(in_, hidden_); }
  std::span<Param> own_params() override { return params_; }

 private:
  // Element [t,n] is the row of x [N*T,in] that holds sample n at time t. Cached per device,
  // because on a GPU each step would copy it.
  const Tensor& time_major(int64_t rows, int64_t times, Device device) {
    if (!order_ || order_.device() != device || !(order_.shape() == Shape{times, rows}))
      order_ = time_major_on_host(rows, times).to(device);
    return order_;
  }
  static Tensor time_major_on_host(int64_t rows, int64_t times) {
    Tensor ids = Tensor::empty({times, rows}, Dtype::i64);
    int64_t* id = ids.mutable_data<int64_t>();
    for (int64_t t = 0; t < times; ++t)
      for (int64_t n = 0; n < rows; ++n) *id++ = n * times + t;
    return ids;
  }

  Tensor sample_major(const Tensor& dx, int64_t rows, int64_t times) {
    Tensor whole = Tensor::empty({rows * times, in_}, beside(dx.dtype()), dx.device());
    ops::embedding_backward(time_major(rows, times, dx.device()), dx, {whole, false});
    return whole.to(dx.dtype()).view({rows, times, in_});
  }

  Param& w_ih() { return params_[0]; }
  Param& w_hh() { return params_[1]; }
  Param& b_ih() { return params_[2]; }
  Param& b_hh() { return params_[3]; }

  int64_t in_, hidden_;
  std::array<Param, 4> params_;
  Tensor order_;  // see time_major()
};

}  // namespace

LayerPtr rnn(int64_t in, int64_t hidden) { return std::make_unique<Rnn>(in, hidden); }

}  // namespace howmany::layers
