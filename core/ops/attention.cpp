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

}  // namespace

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
