// SPDX-License-Identifier: Apache-2.0
#include "core/backends/selection.h"
#include "core/ops/check.h"
#include "core/ops/helpers.h"
#include "core/ops/ops.h"

namespace howmany::ops {
namespace {

// [N,T,3D] -> [N,T,D]
Shape check_qkv(const char* op, const Tensor& qkv, Heads heads) {
  check::floating(op, "qkv", qkv);
  check::rank(op, "qkv", qkv, 3);
  const int64_t width = qkv.shape()[2] / 3;
  HM_REQUIRE(
      heads.count > 0 && width > 0 && 3 * width == qkv.shape()[2] && width % heads.count == 0,
      "[{}] qkv {} is not [N,T,3 D] with D a multiple of {} heads", op, qkv.shape().str(),
      heads.count);
  return {qkv.shape()[0], qkv.shape()[1], width};
}

Shape lse_shape(const Shape& y, Heads heads) { return {y[0], heads.count, y[1]}; }

// Requires t [N,T,heads size]. Returns the size.
int64_t check_heads(const char* op, const Tensor& t, int64_t heads) {
  check::floating(op, "x", t);
  check::rank(op, "x", t, 3);
  const int64_t width = t.shape()[2];
  HM_REQUIRE(width > 0 && width % (2 * heads) == 0,
             "[{}] x {} is not [N,T,{} heads of an even size]", op, t.shape().str(), heads);
  return width / heads;
}

void check_groups(const char* op, GroupedHeads heads) {
  HM_REQUIRE(heads.kv > 0 && heads.count > 0 && heads.count % heads.kv == 0,
             "[{}] {} heads are no multiple of {} heads of keys and values", op, heads.count,
             heads.kv);
}

// Maps the heads of `from` to `to` heads.
Tensor with_heads(const Tensor& from, int64_t size, int64_t to) {
  return Tensor::empty({from.shape()[0], from.shape()[1], to * size}, from.dtype(), from.device());
}

}  // namespace

Tensor rotary(const Tensor& input, const Tensor& angles, GroupedHeads heads) {
  const Tensor x = stored(input);
  check_groups("rotary", heads);
  const int64_t size = check_heads("rotary", x, heads.count + 2 * heads.kv);
  check::beside("rotary", "angles", angles, {x.shape()[1], size}, x);
  Tensor y = with_heads(x, size, 3 * heads.count);
  const Range range = compute("rotary", 3 * static_cast<double>(y.numel()));
  backend_for(x).rotary(x, angles, heads, y);
  return y;
}

Tensor rotary_backward(const Tensor& gradient, const Tensor& angles, GroupedHeads heads) {
  const char* const op = "rotary_backward";
  const Tensor dy = stored(gradient);
  check_groups(op, heads);
  const int64_t size = check_heads(op, dy, 3 * heads.count);
  check::beside(op, "angles", angles, {dy.shape()[1], size}, dy);
  Tensor dx = with_heads(dy, size, heads.count + 2 * heads.kv);
  const Range range = compute(op, 3 * static_cast<double>(dy.numel()));
  backend_for(dy).rotary_backward(dy, angles, heads, dx);
  return dx;
}

double attention_flop(const Shape& qkv, Heads heads) {
  const auto times = static_cast<double>(qkv[1]);
  const double pairs = heads.causal ? times * (times + 1) / 2 : times * times;
  return 4 * static_cast<double>(qkv[0]) * pairs * static_cast<double>(qkv[2] / 3);
}

Attended attention(const Tensor& input, Heads heads) {
  const Tensor qkv = stored(input);
  const Shape y = check_qkv("attention", qkv, heads);
  const Range range = compute("attention", attention_flop(qkv.shape(), heads));
  Attended out{Tensor::empty(y, qkv.dtype(), qkv.device()),
               Tensor::empty(lse_shape(y, heads), beside(qkv.dtype()), qkv.device())};
  backend_for(qkv).attention(qkv, heads, out.lse, out.y);
  return out;
}

// The FLOP of recomputation in backward do not count.
Tensor attention_backward(const Tensor& input, const Attended& forward, const Tensor& gradient,
                          Heads heads) {
  const char* const op = "attention_backward";
  const Tensor qkv = stored(input), y = stored(forward.y), dy = stored(gradient);
  const Shape shape = check_qkv(op, qkv, heads);
  check::shape(op, "y", y, shape, qkv);
  check::beside(op, "lse", forward.lse, lse_shape(shape, heads), qkv);
  check::shape(op, "dy", dy, shape, qkv);
  const Range range = compute(op, 2 * attention_flop(qkv.shape(), heads));
  Tensor dqkv = Tensor::empty(qkv.shape(), qkv.dtype(), qkv.device());
  backend_for(qkv).attention_backward(qkv, y, forward.lse, dy, heads, dqkv);
  return dqkv;
}

}  // namespace howmany::ops
