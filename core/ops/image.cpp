// SPDX-License-Identifier: Apache-2.0
#include "core/backends/selection.h"
#include "core/ops/check.h"
#include "core/ops/helpers.h"
#include "core/ops/ops.h"

namespace howmany::ops {
namespace {

// Returns the number of window positions along one axis.
int64_t positions(const char* op, const Shape& x, int axis, Window window) {
  const int64_t padded = x[axis] + 2 * window.padding;
  HM_REQUIRE(padded >= window.size, "[{}] a window of {} (padding {}) does not fit x {}", op,
             window.size, window.padding, x.str());
  return (padded - window.size) / window.stride + 1;
}

Shape window_shape(const char* op, const Shape& x, int64_t channels, Window window) {
  HM_REQUIRE(x.rank() == 4, "[{}] x has shape {}, expected [N,H,W,C]", op, x.str());
  HM_REQUIRE(window.size >= 1 && window.stride >= 1 && window.padding >= 0,
             "[{}] window size {}, stride {}, padding {}", op, window.size, window.stride,
             window.padding);
  return {x[0], positions(op, x, 1, window), positions(op, x, 2, window), channels};
}

Shape check_conv2d(const char* op, const Tensor& x, const Tensor& w, Window window) {
  check::floating(op, "x", x);
  check::rank(op, "x", x, 4);
  check::rank(op, "w", w, 4);
  check::weight(op, "w", w, {w.shape()[0], window.size, window.size, x.shape()[3]}, x);
  return window_shape(op, x.shape(), w.shape()[0], window);
}

double conv2d_flop(const Shape& y, const Shape& w) {
  return 2 * static_cast<double>(y.numel()) * static_cast<double>(w.row_numel());
}

}  // namespace

// Requires that every pooling window covers at least one element of x.
Shape pool_shape(const char* op, const Shape& x, Window window) {
  HM_REQUIRE(2 * window.padding <= window.size, "[{}] padding {} is more than half of window {}",
             op, window.padding, window.size);
  return window_shape(op, x, x.rank() == 4 ? x[3] : 0, window);
}

Shape conv2d_shape(const Shape& x, int64_t out_channels, Window window) {
  return window_shape("conv2d", x, out_channels, window);
}

Tensor conv2d(const Tensor& input, const Tensor& w, const Tensor& bias, Window window) {
  const Tensor x = stored(input);
  const Shape shape = check_conv2d("conv2d", x, w, window);
  if (bias) check::beside("conv2d", "bias", bias, {w.shape()[0]}, x);
  const Range range = compute("conv2d", conv2d_flop(shape, w.shape()));
  Tensor y = like(x, shape);
  backend_for(x).conv2d(x, w, bias, window, y);
  return y;
}

Tensor conv2d_backward(const Tensor& input, const Tensor& w, const Tensor& gradient, Window window,
                       bool want_dx, GradOut dw, GradOut dbias) {
  const char* const op = "conv2d_backward";
  const Tensor x = stored(input), dy = stored(gradient);
  const Shape shape = check_conv2d(op, x, w, window);
  check::shape(op, "dy", dy, shape, x);
  check::grad(op, "dw", dw, w.shape(), x);
  check::grad(op, "dbias", dbias, {w.shape()[0]}, x);
  const double count = products(want_dx, dw);
  const Range range = compute(op, count * conv2d_flop(shape, w.shape()), count);
  Tensor dx = want_dx ? like(x, x.shape()) : Tensor();
  backend_for(x).conv2d_backward(x, w, dy, window, dx, dw, dbias);
  return dx;
}

Pooled max_pool(const Tensor& input, Window window) {
  const Tensor x = stored(input);
  check::floating("max_pool", "x", x);
  const Shape shape = pool_shape("max_pool", x.shape(), window);
  const Range range = compute("max_pool", static_cast<double>(x.numel()));
  Pooled out{like(x, shape), Tensor::empty(shape, Dtype::i32, x.device())};
  backend_for(x).max_pool(x, window, out.chosen, out.y);
  return out;
}

Tensor max_pool_backward(const Tensor& chosen, const Tensor& gradient, Window window,
                         const Shape& x) {
  const char* const op = "max_pool_backward";
  const Tensor dy = stored(gradient);
  check::floating(op, "dy", dy);
  check::shape(op, "dy", dy, pool_shape(op, x, window), dy);
  check::same(op, "chosen", chosen, dy.shape(), Dtype::i32, dy.device());
  const Range range = compute(op, static_cast<double>(dy.numel()));
  Tensor dx = like(dy, x);
  backend_for(dy).max_pool_backward(chosen, dy, window, dx);
  return dx;
}

Tensor avg_pool(const Tensor& input, Window window) {
  const Tensor x = stored(input);
  check::floating("avg_pool", "x", x);
  const Shape shape = pool_shape("avg_pool", x.shape(), window);
  const Range range = compute("avg_pool", static_cast<double>(x.numel()));
  Tensor y = like(x, shape);
  backend_for(x).avg_pool(x, window, y);
  return y;
}

Tensor avg_pool_backward(const Tensor& gradient, Window window, const Shape& x) {
  const char* const op = "avg_pool_backward";
  const Tensor dy = stored(gradient);
  check::floating(op, "dy", dy);
  check::shape(op, "dy", dy, pool_shape(op, x, window), dy);
  const Range range = compute(op, static_cast<double>(x.numel()));
  Tensor dx = like(dy, x);
  backend_for(dy).avg_pool_backward(dy, window, dx);
  return dx;
}

}  // namespace howmany::ops
