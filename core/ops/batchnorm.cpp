// SPDX-License-Identifier: Apache-2.0
#include "core/backends/selection.h"
#include "core/gpu/gpu.h"
#include "core/gpu/graph.h"
#include "core/ops/check.h"
#include "core/ops/helpers.h"
#include "core/ops/ops.h"

namespace howmany::ops {
namespace {

Shape check_batchnorm(const char* op, const Tensor& x, const Tensor& scale, const Tensor& shift,
                      Activation act) {
  check::floating(op, "x", x);
  HM_REQUIRE(x.shape().rank() >= 2, "[{}] x has shape {}, expected [N,..,C]", op, x.shape().str());
  HM_REQUIRE(act == Activation::none || act == Activation::relu, "[{}] {} does not fuse with it",
             op, name_of(act));
  const Shape channels{x.shape()[-1]};
  check::beside(op, "scale", scale, channels, x);
  check::beside(op, "shift", shift, channels, x);
  return channels;
}

void check_state(const char* op, const BatchNormState& state, const Tensor& scale) {
  check::alike(op, "running_mean", state.running_mean, scale);
  check::alike(op, "running_var", state.running_var, scale);
}

int64_t row_count(const Tensor& x) { return x.shape()[-1] == 0 ? 0 : x.numel() / x.shape()[-1]; }

// During a capture, each launch of the graph makes the call, between two of its pieces.
void sum_over_replicas(const Tensor& message, const SumOverReplicas& sum) {
  gpu::outside_graph([message, sum] { sum(message); });
}

Tensor message_of(const Tensor& x, const Shape& channels) {
  return Tensor::empty({2 * channels[0] + 1}, Dtype::f64, x.device());
}

// Skips the check if this replica alone has two rows, because reading a GPU blocks the host. Skips
// it during a capture, because the same step ran before.
void check_rows(const Tensor& x, const Tensor& message) {
  if (row_count(x) >= 2 || gpu::capturing()) return;
  const Tensor host = message.to(Device{});
  HM_REQUIRE(host.values<double>().back() != 1,
             "[batchnorm] one value per channel on all replicas together: training "
             "needs more to normalise by");
}

// Normalizes with the mean and biased variance over all replicas' rows, as torch.nn.SyncBatchNorm.
Normalized batchnorm_over_replicas(const Tensor& x, const Tensor& scale, const Tensor& shift,
                                   Activation act, BatchNormState& state,
                                   const SumOverReplicas& sum) {
  const Shape channels{x.shape()[-1]};
  const Backend& backend = backend_for(x);
  Normalized out{like(x, x.shape()), like_beside(x, channels), like_beside(x, channels)};
  Tensor variance = like_beside(x, channels), message = message_of(x, channels);
  backend.batchnorm_moments(x, out.mean, variance);
  backend.batchnorm_send_moments(out.mean, variance, static_cast<double>(row_count(x)), message);
  sum_over_replicas(message, sum);
  check_rows(x, message);
  backend.batchnorm_receive_moments(message, state, out.mean, variance, out.inv_std);
  const BatchNormState seen{out.mean, variance, state.momentum, state.epsilon};
  backend.batchnorm_inference(x, scale, shift, act, seen, out.y);
  return out;
}

void store(const Tensor& gradient, GradOut& to) {
  if (!to.value) return;
  if (to.accumulate)
    axpy(1, gradient, to.value);
  else
    to.value.copy_from(gradient);
}

}  // namespace

Normalized batchnorm(const Tensor& input, const Tensor& scale, const Tensor& shift, Activation act,
                     BatchNormState& state, const SumOverReplicas& sum) {
  const char* const op = "batchnorm";
  const Tensor x = stored(input);
  const Shape channels = check_batchnorm(op, x, scale, shift, act);
  check_state(op, state, scale);
  const Range range = compute(op, 8 * static_cast<double>(x.numel()));
  if (sum) return batchnorm_over_replicas(x, scale, shift, act, state, sum);
  HM_REQUIRE(
      x.numel() != channels[0] || x.numel() == 0,
      "[batchnorm] x {} has one value per channel, which has no variance: use larger images, "
      "or a batch size that leaves no single sample for the last batch",
      x.shape().str());
  Normalized out{like(x, x.shape()), like_beside(x, channels), like_beside(x, channels)};
  backend_for(x).batchnorm(x, scale, shift, act, state, out.mean, out.inv_std, out.y);
  return out;
}

Tensor batchnorm_inference(const Tensor& input, const Tensor& scale, const Tensor& shift,
                           Activation act, const BatchNormState& state) {
  const char* const op = "batchnorm_inference";
  const Tensor x = stored(input);
  check_batchnorm(op, x, scale, shift, act);
  check_state(op, state, scale);
  const Range range = compute(op, 2 * static_cast<double>(x.numel()));
  Tensor y = like(x, x.shape());
  backend_for(x).batchnorm_inference(x, scale, shift, act, state, y);
  return y;
}

// The gradients of scale and shift cover only this replica's rows: the caller sums gradients over
// replicas. dx needs the sums over all replicas.
Tensor batchnorm_backward(const Tensor& input, const Tensor& scale, const Tensor& shift,
                          const Normalized& forward, const Tensor& gradient, Activation act,
                          GradOut dscale, GradOut dshift, const SumOverReplicas& sum) {
  const char* const op = "batchnorm_backward";
  const Tensor x = stored(input), y = stored(forward.y), dy = stored(gradient);
  const Shape channels = check_batchnorm(op, x, scale, shift, act);
  check::alike(op, "dy", dy, x);
  if (act == Activation::relu) check::alike(op, "y", y, x);
  check::alike(op, "mean", forward.mean, scale);
  check::alike(op, "inv_std", forward.inv_std, scale);
  check::grad(op, "dscale", dscale, scale.shape(), x);
  check::grad(op, "dshift", dshift, scale.shape(), x);
  const Range range = compute(op, 12 * static_cast<double>(x.numel()));
  const BatchNormBackward in{x, scale, shift, y, dy, forward.mean, forward.inv_std, act};
  Tensor dots = like_beside(x, channels), sums = like_beside(x, channels), dx = like(x, x.shape());
  backend_for(x).batchnorm_backward_sums(in, dots, sums);
  store(dots, dscale);
  store(sums, dshift);
  auto rows = static_cast<double>(row_count(x));
  if (sum) {
    Tensor message = message_of(x, channels);
    backend_for(x).batchnorm_send_sums(dots, sums, rows, message);
    sum_over_replicas(message, sum);
    backend_for(x).batchnorm_receive_sums(message, dots, sums);
    rows = 1;  // the received values are means over all rows already
  }
  backend_for(x).batchnorm_backward_input(in, dots, sums, rows, dx);
  return dx;
}

}  // namespace howmany::ops
