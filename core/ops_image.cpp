#include "core/check.h"
#include "core/ops.h"
#include "core/profile/range.h"

namespace howmany::ops {
namespace {

Tensor like(const Tensor& x, const Shape& shape) {
  return Tensor::empty(shape, x.dtype(), x.device());
}

Range compute(const char* name, double flop) {
  return {Category::compute, name, static_cast<uint64_t>(flop)};
}

// Positions of a window along one axis.
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
  check::shape(op, "w", w, {w.shape()[0], window.size, window.size, x.shape()[3]}, x);
  return window_shape(op, x.shape(), w.shape()[0], window);
}

double conv2d_flop(const Shape& y, const Shape& w) {
  return 2 * static_cast<double>(y.numel()) * static_cast<double>(w.row_numel());
}

Shape check_batchnorm(const char* op, const Tensor& x, const Tensor& scale, const Tensor& shift,
                      Activation act) {
  check::floating(op, "x", x);
  HM_REQUIRE(x.shape().rank() >= 2, "[{}] x has shape {}, expected [N,..,C]", op, x.shape().str());
  HM_REQUIRE(act != Activation::gelu, "[{}] gelu does not fuse with it", op);
  const Shape channels{x.shape()[-1]};
  check::shape(op, "scale", scale, channels, x);
  check::shape(op, "shift", shift, channels, x);
  return channels;
}

void check_state(const char* op, const BatchNormState& state, const Tensor& scale) {
  check::alike(op, "running_mean", state.running_mean, scale);
  check::alike(op, "running_var", state.running_var, scale);
}

}  // namespace

// Every pooling window must see at least one element of x.
Shape pool_shape(const char* op, const Shape& x, Window window) {
  HM_REQUIRE(2 * window.padding <= window.size, "[{}] padding {} is more than half of window {}",
             op, window.padding, window.size);
  return window_shape(op, x, x.rank() == 4 ? x[3] : 0, window);
}

Shape conv2d_shape(const Shape& x, int64_t out_channels, Window window) {
  return window_shape("conv2d", x, out_channels, window);
}

Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, Window window) {
  const Shape shape = check_conv2d("conv2d", x, w, window);
  if (bias) check::shape("conv2d", "bias", bias, {w.shape()[0]}, x);
  const Range range = compute("conv2d", conv2d_flop(shape, w.shape()));
  Tensor y = like(x, shape);
  backend_for(x).conv2d(x, w, bias, window, y);
  return y;
}

Tensor conv2d_backward(const Tensor& x, const Tensor& w, const Tensor& dy, Window window,
                       bool want_dx, GradOut dw, GradOut dbias) {
  const char* const op = "conv2d_backward";
  const Shape shape = check_conv2d(op, x, w, window);
  check::shape(op, "dy", dy, shape, x);
  check::grad(op, "dw", dw, w.shape(), x);
  check::grad(op, "dbias", dbias, {w.shape()[0]}, x);
  const Range range = compute(op, (want_dx ? 2 : 1) * conv2d_flop(shape, w.shape()));
  Tensor dx = want_dx ? like(x, x.shape()) : Tensor();
  backend_for(x).conv2d_backward(x, w, dy, window, dx, dw, dbias);
  return dx;
}

Normalized batchnorm(const Tensor& x, const Tensor& scale, const Tensor& shift, Activation act,
                     BatchNormState& state) {
  const char* const op = "batchnorm";
  const Shape channels = check_batchnorm(op, x, scale, shift, act);
  check_state(op, state, scale);
  HM_REQUIRE(x.numel() != channels[0] || x.numel() == 0,
             "[batchnorm] x {} has one value per channel: training needs more to normalise by",
             x.shape().str());
  const Range range = compute(op, 8 * static_cast<double>(x.numel()));
  Normalized out{like(x, x.shape()), like(x, channels), like(x, channels)};
  backend_for(x).batchnorm(x, scale, shift, act, state, out.mean, out.inv_std, out.y);
  return out;
}

Tensor batchnorm_inference(const Tensor& x, const Tensor& scale, const Tensor& shift,
                           Activation act, const BatchNormState& state) {
  const char* const op = "batchnorm_inference";
  check_batchnorm(op, x, scale, shift, act);
  check_state(op, state, scale);
  const Range range = compute(op, 2 * static_cast<double>(x.numel()));
  Tensor y = like(x, x.shape());
  backend_for(x).batchnorm_inference(x, scale, shift, act, state, y);
  return y;
}

Tensor batchnorm_backward(const Tensor& x, const Tensor& scale, const Tensor& shift,
                          const Normalized& forward, const Tensor& dy, Activation act,
                          GradOut dscale, GradOut dshift) {
  const char* const op = "batchnorm_backward";
  check_batchnorm(op, x, scale, shift, act);
  check::alike(op, "dy", dy, x);
  if (act == Activation::relu) check::alike(op, "y", forward.y, x);
  check::alike(op, "mean", forward.mean, scale);
  check::alike(op, "inv_std", forward.inv_std, scale);
  check::grad(op, "dscale", dscale, scale.shape(), x);
  check::grad(op, "dshift", dshift, scale.shape(), x);
  const Range range = compute(op, 12 * static_cast<double>(x.numel()));
  Tensor dx = like(x, x.shape());
  backend_for(x).batchnorm_backward(x, scale, shift, forward.y, dy, act, forward.mean,
                                    forward.inv_std, dx, dscale, dshift);
  return dx;
}

Pooled max_pool(const Tensor& x, Window window) {
  check::floating("max_pool", "x", x);
  const Shape shape = pool_shape("max_pool", x.shape(), window);
  const Range range = compute("max_pool", static_cast<double>(x.numel()));
  Pooled out{like(x, shape), Tensor::empty(shape, Dtype::i32, x.device())};
  backend_for(x).max_pool(x, window, out.chosen, out.y);
  return out;
}

Tensor max_pool_backward(const Tensor& chosen, const Tensor& dy, Window window, const Shape& x) {
  const char* const op = "max_pool_backward";
  check::floating(op, "dy", dy);
  check::shape(op, "dy", dy, pool_shape(op, x, window), dy);
  check::same(op, "chosen", chosen, dy.shape(), Dtype::i32, dy.device());
  const Range range = compute(op, static_cast<double>(dy.numel()));
  Tensor dx = like(dy, x);
  backend_for(dy).max_pool_backward(chosen, dy, window, dx);
  return dx;
}

Tensor avg_pool(const Tensor& x, Window window) {
  check::floating("avg_pool", "x", x);
  const Shape shape = pool_shape("avg_pool", x.shape(), window);
  const Range range = compute("avg_pool", static_cast<double>(x.numel()));
  Tensor y = like(x, shape);
  backend_for(x).avg_pool(x, window, y);
  return y;
}

Tensor avg_pool_backward(const Tensor& dy, Window window, const Shape& x) {
  const char* const op = "avg_pool_backward";
  check::floating(op, "dy", dy);
  check::shape(op, "dy", dy, pool_shape(op, x, window), dy);
  const Range range = compute(op, static_cast<double>(x.numel()));
  Tensor dx = like(dy, x);
  backend_for(dy).avg_pool_backward(dy, window, dx);
  return dx;
}

}  // namespace howmany::ops
