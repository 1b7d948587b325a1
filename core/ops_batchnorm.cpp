#include <cmath>

#include "core/check.h"
#include "core/ops.h"
#include "core/profile/range.h"

namespace howmany::ops {
namespace {

Tensor like(const Tensor& x, const Shape& shape) {
  return Tensor::empty(shape, x.dtype(), x.device());
}

Tensor like_beside(const Tensor& x, const Shape& shape) {
  return Tensor::empty(shape, beside(x.dtype()), x.device());
}

Range compute(const char* name, double flop) {
  return {Category::compute, name, static_cast<uint64_t>(flop)};
}

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

// One number per channel, in double where the processor reads it, and back.
std::vector<double> read(const Tensor& t) {
  const Tensor host = t.to(Device{}).to(Dtype::f64);
  return {host.values<double>().begin(), host.values<double>().end()};
}
void write(const std::vector<double>& values, Tensor& t) {
  t.copy_from(Tensor::from(values, t.shape()).to(t.dtype()));
}

// Sums `a`, `b` and the number of rows over the replicas, in one message of doubles: what the
// replicas' sums of squares differ in must not drown.
struct Summed {
  std::vector<double> a, b;
  double rows = 0;
};
Summed over_replicas(std::vector<double> a, const std::vector<double>& b, double rows,
                     const SumOverReplicas& sum) {
  const size_t n = a.size();
  a.insert(a.end(), b.begin(), b.end());
  a.push_back(rows);
  Tensor message = Tensor::from(a, {static_cast<int64_t>(a.size())});
  sum(message);
  const std::span<const double> all = message.values<double>();
  return {{all.begin(), all.begin() + static_cast<ptrdiff_t>(n)},
          {all.begin() + static_cast<ptrdiff_t>(n), all.end() - 1},
          all.back()};
}

// Mean and biased variance of all replicas' rows; as torch.nn.SyncBatchNorm.
Summed moments_over_replicas(const Tensor& x, const Shape& channels, const SumOverReplicas& sum) {
  Tensor mean = like_beside(x, channels), variance = like_beside(x, channels);
  backend_for(x).batchnorm_moments(x, mean, variance);
  std::vector<double> first = read(mean), second = read(variance);
  const auto rows = static_cast<double>(row_count(x));
  for (size_t c = 0; c < first.size(); ++c) {
    second[c] = rows * (second[c] + first[c] * first[c]);
    first[c] *= rows;
  }
  Summed all = over_replicas(std::move(first), second, rows, sum);
  const double n = std::max(all.rows, 1.0);
  for (size_t c = 0; c < all.a.size(); ++c) {
    all.a[c] /= n;
    all.b[c] = std::max(0.0, all.b[c] / n - all.a[c] * all.a[c]);
  }
  return all;
}

void move_towards(Tensor running, const std::vector<double>& targets, double factor,
                  double momentum) {
  std::vector<double> values = read(running);
  for (size_t c = 0; c < values.size(); ++c)
    values[c] = (1 - momentum) * values[c] + momentum * factor * targets[c];
  write(values, running);
}

Normalized batchnorm_over_replicas(const Tensor& x, const Tensor& scale, const Tensor& shift,
                                   Activation act, BatchNormState& state,
                                   const SumOverReplicas& sum) {
  const Shape channels{x.shape()[-1]};
  const Summed all = moments_over_replicas(x, channels, sum);
  HM_REQUIRE(all.rows != 1,
             "[batchnorm] one value per channel on all replicas together: training "
             "needs more to normalise by");
  Normalized out{like(x, x.shape()), like_beside(x, channels), like_beside(x, channels)};
  BatchNormState seen{like_beside(x, channels), like_beside(x, channels), state.momentum,
                      state.epsilon};
  write(all.a, seen.running_mean);
  write(all.b, seen.running_var);
  write(all.a, out.mean);
  std::vector<double> inv_std = all.b;
  for (double& v : inv_std) v = 1 / std::sqrt(v + state.epsilon);
  write(inv_std, out.inv_std);
  backend_for(x).batchnorm_inference(x, scale, shift, act, seen, out.y);
  if (all.rows < 2) return out;
  move_towards(state.running_mean, all.a, 1, state.momentum);
  move_towards(state.running_var, all.b, all.rows / (all.rows - 1), state.momentum);
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
  HM_REQUIRE(x.numel() != channels[0] || x.numel() == 0,
             "[batchnorm] x {} has one value per channel: training needs more to normalise by",
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

// Gradients of scale and shift are those of this replica's rows, for whoever sums gradients; dx
// needs the sums of all.
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
    const Summed all = over_replicas(read(dots), read(sums), rows, sum);
    write(all.a, dots);
    write(all.b, sums);
    rows = all.rows;
  }
  backend_for(x).batchnorm_backward_input(in, dots, sums, rows, dx);
  return dx;
}

}  // namespace howmany::ops
