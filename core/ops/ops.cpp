// SPDX-License-Identifier: Apache-2.0
#include "core/ops/ops.h"

#include <algorithm>

#include "core/backends/selection.h"
#include "core/ops/check.h"
#include "core/ops/helpers.h"
#include "core/tensor/precision.h"

namespace howmany::ops {
namespace {

double product(std::initializer_list<int64_t> extents) {
  double p = 1;
  for (int64_t e : extents) p *= static_cast<double>(e);
  return p;
}

void check_linear(const char* op, const Tensor& x, const Tensor& w) {
  check::floating(op, "x", x);
  check::rank(op, "x", x, 2);
  check::rank(op, "w", w, 2);
  HM_REQUIRE(x.shape()[1] == w.shape()[1], "[{}] inner sizes differ: x {}, w {}", op,
             x.shape().str(), w.shape().str());
  check::weight(op, "w", w, w.shape(), x);
}

// x [N,..,C]
void check_groups_of_channels(const char* op, const Tensor& x, int64_t groups) {
  check::floating(op, "x", x);
  HM_REQUIRE(x.shape().rank() >= 2 && groups > 0 && x.shape()[-1] % groups == 0,
             "[{}] x {} has no multiple of {} channels", op, x.shape().str(), groups);
}

// [..,2F] -> [..,F]
Shape check_gates(const char* op, const Tensor& x) {
  check::floating(op, "x", x);
  HM_REQUIRE(x.shape().rank() >= 1 && x.shape()[-1] % 2 == 0,
             "[{}] x has shape {}, expected an even last extent", op, x.shape().str());
  std::vector<int64_t> extents(x.shape().extents().begin(), x.shape().extents().end());
  extents.back() /= 2;
  return Shape(extents);
}

}  // namespace

Tensor stored(const Tensor& activation) {
  return activation.to(stored_dtype(activation.dtype(), activation.device()));
}

Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  check::floating("matmul", "a", a);
  check::rank("matmul", "a", a, 2);
  check::rank("matmul", "b", b, 2);
  const int64_t m = a.shape()[transpose_a ? 1 : 0], k = a.shape()[transpose_a ? 0 : 1];
  const int64_t n = b.shape()[transpose_b ? 0 : 1];
  HM_REQUIRE(b.shape()[transpose_b ? 1 : 0] == k, "[matmul] inner sizes differ: a {}{}, b {}{}",
             a.shape().str(), transpose_a ? "^T" : "", b.shape().str(), transpose_b ? "^T" : "");
  check::shape("matmul", "b", b, b.shape(), a);
  const Range range = compute("matmul", 2 * product({m, n, k}));
  Tensor y = like(a, {m, n});
  backend_for(a).matmul(a, transpose_a, b, transpose_b, false, y);
  return y;
}

Tensor linear(const Tensor& input, const Tensor& w, const Tensor& bias, Activation act) {
  const Tensor x = stored(input);
  check_linear("linear", x, w);
  const int64_t rows = x.shape()[0], out = w.shape()[0];
  if (bias) check::beside("linear", "bias", bias, {out}, x);
  const Range range = compute("linear", 2 * product({rows, out, w.shape()[1]}));
  Tensor y = like(x, {rows, out});
  backend_for(x).linear(x, w, bias, act, y);
  return y;
}

Tensor linear_backward(const Tensor& input, const Tensor& w, const Tensor& seen,
                       const Tensor& gradient, Activation act, bool want_dx, GradOut dw,
                       GradOut dbias) {
  const char* const op = "linear_backward";
  const Tensor x = stored(input), kept = stored(seen), dy = stored(gradient);
  check_linear(op, x, w);
  const Shape y{x.shape()[0], w.shape()[0]};
  check::shape(op, "dy", dy, y, x);
  if (act != Activation::none) check::shape(op, "kept", kept, y, x);
  check::grad(op, "dw", dw, w.shape(), x);
  check::grad(op, "dbias", dbias, {w.shape()[0]}, x);
  const double count = products(want_dx, dw);
  const Range range = compute(op, 2 * count * product({y[0], y[1], w.shape()[1]}), count);
  Tensor dx = want_dx ? like(x) : Tensor();
  backend_for(x).linear_backward(x, w, kept, dy, act, dx, dw, dbias);
  return dx;
}

Tensor activation(const Tensor& input, Activation act) {
  const Tensor x = stored(input);
  check::floating("activation", "x", x);
  const Range range = compute("activation", static_cast<double>(x.numel()));
  Tensor y = like(x);
  backend_for(x).activation(x, act, y);
  return y;
}

Tensor activation_backward(const Tensor& seen, const Tensor& gradient, Activation act) {
  const Tensor kept = stored(seen), dy = stored(gradient);
  check::floating("activation_backward", "dy", dy);
  check::alike("activation_backward", "kept", kept, dy);
  const Range range = compute("activation_backward", static_cast<double>(dy.numel()));
  Tensor dx = like(dy);
  backend_for(dy).activation_backward(kept, dy, act, dx);
  return dx;
}

Tensor add(const Tensor& left, const Tensor& right, Activation act) {
  const Tensor a = stored(left), b = stored(right);
  check::floating("add", "a", a);
  check::alike("add", "b", b, a);
  HM_REQUIRE(act != Activation::gelu, "[add] gelu does not fuse with a sum");
  const Range range = compute("add", static_cast<double>(a.numel()));
  Tensor y = like(a);
  backend_for(a).add(a, b, act, y);
  return y;
}

Normalized layernorm(const Tensor& input, const Tensor& scale, const Tensor& shift,
                     double epsilon) {
  const Tensor x = stored(input);
  check::floating("layernorm", "x", x);
  HM_REQUIRE(x.shape().rank() >= 1, "[layernorm] x is a scalar");
  const Shape width{x.shape()[-1]};
  check::beside("layernorm", "scale", scale, width, x);
  check::beside("layernorm", "shift", shift, width, x);
  const Range range = compute("layernorm", 8 * static_cast<double>(x.numel()));
  const Shape rows{width[0] == 0 ? 0 : x.numel() / width[0]};
  Normalized out{like(x), like_beside(x, rows), like_beside(x, rows)};
  backend_for(x).layernorm(x, scale, shift, epsilon, out.mean, out.inv_std, out.y);
  return out;
}

Tensor layernorm_backward(const Tensor& input, const Tensor& scale, const Normalized& forward,
                          const Tensor& gradient, GradOut dscale, GradOut dshift) {
  const char* const op = "layernorm_backward";
  const Tensor x = stored(input), dy = stored(gradient);
  check::floating(op, "x", x);
  check::alike(op, "dy", dy, x);
  check::beside(op, "scale", scale, {x.shape()[-1]}, x);
  check::alike(op, "inv_std", forward.inv_std, forward.mean);
  check::grad(op, "dscale", dscale, scale.shape(), x);
  check::grad(op, "dshift", dshift, scale.shape(), x);
  const Range range = compute(op, 12 * static_cast<double>(x.numel()));
  Tensor dx = like(x);
  backend_for(x).layernorm_backward(x, scale, dy, forward.mean, forward.inv_std, dx, dscale,
                                    dshift);
  return dx;
}

Normalized groupnorm(const Tensor& input, int64_t groups, const Tensor& scale, const Tensor& shift,
                     double epsilon) {
  const Tensor x = stored(input);
  check_groups_of_channels("groupnorm", x, groups);
  const Shape channels{x.shape()[-1]}, cells{x.shape()[0] * groups};
  check::beside("groupnorm", "scale", scale, channels, x);
  check::beside("groupnorm", "shift", shift, channels, x);
  const Range range = compute("groupnorm", 8 * static_cast<double>(x.numel()));
  Normalized out{like(x), like_beside(x, cells), like_beside(x, cells)};
  backend_for(x).groupnorm(x, groups, scale, shift, epsilon, out.mean, out.inv_std, out.y);
  return out;
}

Tensor groupnorm_backward(const Tensor& input, int64_t groups, const Tensor& scale,
                          const Normalized& forward, const Tensor& gradient, GradOut dscale,
                          GradOut dshift) {
  const char* const op = "groupnorm_backward";
  const Tensor x = stored(input), dy = stored(gradient);
  check_groups_of_channels(op, x, groups);
  check::alike(op, "dy", dy, x);
  check::beside(op, "scale", scale, {x.shape()[-1]}, x);
  check::beside(op, "mean", forward.mean, {x.shape()[0] * groups}, x);
  check::alike(op, "inv_std", forward.inv_std, forward.mean);
  check::grad(op, "dscale", dscale, scale.shape(), x);
  check::grad(op, "dshift", dshift, scale.shape(), x);
  const Range range = compute(op, 12 * static_cast<double>(x.numel()));
  Tensor dx = like(x);
  backend_for(x).groupnorm_backward(x, groups, scale, dy, forward.mean, forward.inv_std, dx, dscale,
                                    dshift);
  return dx;
}

RmsNormalized rmsnorm(const Tensor& input, const Tensor& scale, double epsilon) {
  const Tensor x = stored(input);
  check::floating("rmsnorm", "x", x);
  HM_REQUIRE(x.shape().rank() >= 1, "[rmsnorm] x is a scalar");
  const int64_t width = x.shape()[-1];
  check::beside("rmsnorm", "scale", scale, {width}, x);
  const Range range = compute("rmsnorm", 4 * static_cast<double>(x.numel()));
  RmsNormalized out{like(x), like_beside(x, {width == 0 ? 0 : x.numel() / width})};
  backend_for(x).rmsnorm(x, scale, epsilon, out.inv_rms, out.y);
  return out;
}

Tensor rmsnorm_backward(const Tensor& input, const Tensor& scale, const Tensor& inv_rms,
                        const Tensor& gradient, GradOut dscale) {
  const char* const op = "rmsnorm_backward";
  const Tensor x = stored(input), dy = stored(gradient);
  check::floating(op, "x", x);
  check::alike(op, "dy", dy, x);
  const int64_t width = x.shape()[-1];
  check::beside(op, "scale", scale, {width}, x);
  check::beside(op, "inv_rms", inv_rms, {width == 0 ? 0 : x.numel() / width}, x);
  check::grad(op, "dscale", dscale, scale.shape(), x);
  const Range range = compute(op, 8 * static_cast<double>(x.numel()));
  Tensor dx = like(x);
  backend_for(x).rmsnorm_backward(x, scale, dy, inv_rms, dx, dscale);
  return dx;
}

Tensor swiglu(const Tensor& input) {
  const Tensor x = stored(input);
  const Shape half = check_gates("swiglu", x);
  const Range range = compute("swiglu", 2 * static_cast<double>(x.numel()));
  Tensor y = like(x, half);
  backend_for(x).swiglu(x, y);
  return y;
}

Tensor swiglu_backward(const Tensor& input, const Tensor& gradient) {
  const char* const op = "swiglu_backward";
  const Tensor x = stored(input), dy = stored(gradient);
  check::shape(op, "dy", dy, check_gates(op, x), x);
  const Range range = compute(op, 4 * static_cast<double>(x.numel()));
  Tensor dx = like(x);
  backend_for(x).swiglu_backward(x, dy, dx);
  return dx;
}

Tensor embedding(const Tensor& ids, const Tensor& table, TableRows rows) {
  check::floating("embedding", "table", table);
  check::rank("embedding", "table", table, 2);
  check::below("embedding", "id", ids, std::max(rows.all, table.shape()[0]));
  HM_REQUIRE(ids.shape().rank() < Shape::kMaxRank, "[embedding] ids {}", ids.shape().str());
  std::vector<int64_t> extents(ids.shape().extents().begin(), ids.shape().extents().end());
  extents.push_back(table.shape()[1]);
  const Range range = compute("embedding", 0);
  Tensor y =
      Tensor::empty(Shape(extents), stored_dtype(table.dtype(), table.device()), table.device());
  backend_for(table).embedding(ids, table, rows.first, y);
  return y;
}

void embedding_backward(const Tensor& ids, const Tensor& gradient, GradOut dtable, TableRows rows) {
  const char* const op = "embedding_backward";
  const Tensor dy = stored(gradient);
  check::floating(op, "dy", dy);
  check::floating(op, "dtable", dtable.value);
  check::rank(op, "dtable", dtable.value, 2);
  check::below(op, "id", ids, std::max(rows.all, dtable.value.shape()[0]));
  HM_REQUIRE(dy.numel() == ids.numel() * dtable.value.shape()[1] &&
                 beside(dy.dtype()) == dtable.value.dtype(),
             "[{}] dy {} {} does not fit ids {} and dtable {} {}", op, name_of(dy.dtype()),
             dy.shape().str(), ids.shape().str(), name_of(dtable.value.dtype()),
             dtable.value.shape().str());
  const Range range = compute(op, static_cast<double>(dy.numel()));
  backend_for(dy).embedding_backward(ids, dy, rows.first, dtable);
}

Tensor dropout(const Tensor& input, double p, DropoutKey key) {
  const Tensor x = stored(input);
  check::floating("dropout", "x", x);
  HM_REQUIRE(p >= 0 && p < 1, "[dropout] p is {}, expected 0 <= p < 1", p);
  const Range range = compute("dropout", static_cast<double>(x.numel()));
  Tensor y = like(x);
  backend_for(x).dropout(x, p, key, y);
  return y;
}

void axpy(double alpha, const Tensor& x, Tensor& y) {
  check::floating("axpy", "y", y);
  check::alike("axpy", "x", x, y);
  const Range range = compute("axpy", 2 * static_cast<double>(x.numel()));
  backend_for(y).axpy(alpha, x, y);
}

}  // namespace howmany::ops
