#include "core/backends/cuda/columns.cuh"
#include "core/backends/cuda/cuda.h"
#include "core/backends/cuda/math.cuh"

// Over the columns of x [rows, channels]. Statistics are doubles until they are stored.
namespace howmany::backends {
namespace {

using cuda::each;
using cuda::OnDevice;
using cuda::Pair;

int64_t row_count(const Tensor& x, int64_t width) { return width == 0 ? 0 : x.numel() / width; }

// g(channel, mean, biased variance), in two passes as the reference.
template <typename G>
void moments(const Tensor& x, int64_t channels, const OnDevice& on, G g) {
  const int64_t rows = row_count(x, channels);
  const float* const xs = x.data<float>();
  Tensor kept = Tensor::empty({channels}, Dtype::f64, x.device());
  double* const means = kept.mutable_data<double>();
  const double n = rows > 0 ? static_cast<double>(rows) : 1;
  cuda::reduce_columns(
      rows, channels, x.device(), on,
      [=] __device__(int64_t r, int64_t c) {
        return Pair{xs[r * channels + c], 0};
      },
      [=] __device__(int64_t c, Pair sum) { means[c] = sum.a / n; });
  cuda::reduce_columns(
      rows, channels, x.device(), on,
      [=] __device__(int64_t r, int64_t c) {
        const double off = xs[r * channels + c] - means[c];
        return Pair{off * off, 0};
      },
      [=] __device__(int64_t c, Pair sum) { g(c, means[c], sum.a / n); });
}

__device__ void move_towards(float& running, double target, double momentum) {
  running = static_cast<float>((1 - momentum) * running + momentum * target);
}

// Statistics of the batch become those of the layer; `exact` [2, C] holds mean and inverse
// deviation in double for what follows.
struct Settle {
  float *mean, *inv_std, *running_mean, *running_var;
  double* exact;
  int64_t channels, rows;
  double momentum, epsilon;
  __device__ void operator()(int64_t c, double m, double variance) const {
    exact[c] = m;
    exact[channels + c] = 1 / sqrt(variance + epsilon);
    mean[c] = static_cast<float>(m);
    inv_std[c] = static_cast<float>(exact[channels + c]);
    if (rows < 2) return;  // nothing was seen
    const auto n = static_cast<double>(rows);
    move_towards(running_mean[c], m, momentum);
    move_towards(running_var[c], variance * n / (n - 1), momentum);
  }
};

// dz and xhat at [row, channel] of what the backward starts from.
struct Terms {
  explicit Terms(const BatchNormBackward& in)
      : x(in.x.data<float>()),
        dy(in.dy.data<float>()),
        y(in.act == Activation::none ? nullptr : in.y.data<float>()),
        mean(in.mean.data<float>()),
        inv_std(in.inv_std.data<float>()),
        channels(in.scale.numel()),
        act(in.act) {}
  __device__ double dz(int64_t i) const {
    return y == nullptr ? dy[i] : dy[i] * cuda::activation_slope(y[i], act);
  }
  __device__ double xhat(int64_t i) const {
    const int64_t c = i % channels;
    return (double{x[i]} - mean[c]) * inv_std[c];
  }

  const float *x, *dy, *y, *mean, *inv_std;
  int64_t channels;
  Activation act;
};

}  // namespace

void Cuda::batchnorm(const Tensor& x, const Tensor& scale, const Tensor& shift, Activation act,
                     BatchNormState& state, Tensor& mean, Tensor& inv_std, Tensor& y) const {
  const OnDevice on(x);
  const int64_t channels = scale.numel();
  Tensor kept = Tensor::empty({2, channels}, Dtype::f64, x.device());
  double* const exact = kept.mutable_data<double>();
  const Settle settle{mean.mutable_data<float>(),
                      inv_std.mutable_data<float>(),
                      state.running_mean.mutable_data<float>(),
                      state.running_var.mutable_data<float>(),
                      exact,
                      channels,
                      row_count(x, channels),
                      state.momentum,
                      state.epsilon};
  moments(x, channels, on, settle);
  const float *const xs = x.data<float>(), *const scales = scale.data<float>(),
                     *const shifts = shift.data<float>();
  float* const ys = y.mutable_data<float>();
  each(x.numel(), on, [=] __device__(int64_t i) {
    const int64_t c = i % channels;
    const double z = (xs[i] - exact[c]) * exact[channels + c] * scales[c] + shifts[c];
    ys[i] = cuda::activate(static_cast<float>(z), act);
  });
}

void Cuda::batchnorm_inference(const Tensor& x, const Tensor& scale, const Tensor& shift,
                               Activation act, const BatchNormState& state, Tensor& y) const {
  const OnDevice on(x);
  const int64_t channels = scale.numel();
  const double epsilon = state.epsilon;
  const float *const xs = x.data<float>(), *const scales = scale.data<float>(),
                     *const shifts = shift.data<float>();
  const float *const means = state.running_mean.data<float>(), *const variances =
                                                                   state.running_var.data<float>();
  float* const ys = y.mutable_data<float>();
  each(x.numel(), on, [=] __device__(int64_t i) {
    const int64_t c = i % channels;
    const double inv = 1 / sqrt(variances[c] + epsilon);
    const double z = (double{xs[i]} - means[c]) * inv * scales[c] + shifts[c];
    ys[i] = cuda::activate(static_cast<float>(z), act);
  });
}

void Cuda::batchnorm_moments(const Tensor& x, Tensor& mean, Tensor& variance) const {
  const OnDevice on(x);
  float* const means = mean.mutable_data<float>();
  float* const variances = variance.mutable_data<float>();
  moments(x, mean.numel(), on, [=] __device__(int64_t c, double m, double v) {
    means[c] = static_cast<float>(m);
    variances[c] = static_cast<float>(v);
  });
}

void Cuda::batchnorm_backward_sums(const BatchNormBackward& in, Tensor& dots, Tensor& sums) const {
  const OnDevice on(in.x);
  const Terms terms(in);
  float *const dot = dots.mutable_data<float>(), *const sum = sums.mutable_data<float>();
  cuda::reduce_columns(
      row_count(in.x, terms.channels), terms.channels, in.x.device(), on,
      [=] __device__(int64_t r, int64_t c) {
        const int64_t i = r * terms.channels + c;
        const double dz = terms.dz(i);
        return Pair{dz * terms.xhat(i), dz};
      },
      [=] __device__(int64_t c, Pair total) {
        dot[c] = static_cast<float>(total.a);
        sum[c] = static_cast<float>(total.b);
      });
}

void Cuda::batchnorm_backward_input(const BatchNormBackward& in, const Tensor& dots,
                                    const Tensor& sums, double rows, Tensor& dx) const {
  const OnDevice on(in.x);
  const Terms terms(in);
  const float *const dot = dots.data<float>(), *const sum = sums.data<float>(),
                     *const scales = in.scale.data<float>();
  float* const out = dx.mutable_data<float>();
  each(in.x.numel(), on, [=] __device__(int64_t i) {
    const int64_t c = i % terms.channels;
    const double slope = double{terms.inv_std[c]} * scales[c];
    out[i] = static_cast<float>(slope * (terms.dz(i) - (sum[c] + terms.xhat(i) * dot[c]) / rows));
  });
}

}  // namespace howmany::backends
