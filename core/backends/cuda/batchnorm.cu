#include "core/backends/cuda/columns.cuh"
#include "core/backends/cuda/cuda.h"
#include "core/backends/cuda/math.cuh"

// cuDNN's would save one of four passes over memory, forward, and has no statistics over replicas.
// Over the columns of x [rows, channels]. What there is one of a channel is double until it is
// stored; what there is one of an element is f32.
namespace howmany::backends {
namespace {

using cuda::each;
using cuda::OnDevice;
using cuda::Pair;
using cuda::Sums;

int64_t row_count(const Tensor& x, int64_t width) { return width == 0 ? 0 : x.numel() / width; }

// g(channel, mean, biased variance), in two passes as the reference; the second mends what rounding
// left of the mean (Chan, Golub and LeVeque 1983).
template <typename G>
void moments(const Tensor& x, int64_t channels, const OnDevice& on, G g) {
  const int64_t rows = row_count(x, channels);
  const float* const xs = x.data<float>();
  Tensor kept = Tensor::empty({channels}, Dtype::f32, x.device());
  float* const means = kept.mutable_data<float>();
  const double n = rows > 0 ? static_cast<double>(rows) : 1;
  cuda::reduce_columns(
      rows, channels, x.device(), on,
      [=] __device__(int64_t r, int64_t c) {
        return Pair{xs[r * channels + c], 0};
      },
      [=] __device__(int64_t c, Sums sum) { means[c] = static_cast<float>(sum.a / n); });
  cuda::reduce_columns(
      rows, channels, x.device(), on,
      [=] __device__(int64_t r, int64_t c) {
        const float off = xs[r * channels + c] - means[c];
        return Pair{off * off, off};
      },
      [=] __device__(int64_t c, Sums sum) {
        const double rest = sum.b / n;
        g(c, means[c] + rest, sum.a / n - rest * rest);
      });
}

__device__ void move_towards(float& running, double target, double momentum) {
  running = static_cast<float>((1 - momentum) * running + momentum * target);
}

// act(factor (x - centre) + shift) in f32, of a channel each; what the centre lost when it was
// rounded is in the shift.
struct Line {
  Line(const Tensor& like, int64_t channels)
      : room(Tensor::empty({3, channels}, Dtype::f32, like.device())),
        centre(room.mutable_data<float>()),
        factor(centre + channels),
        shift(factor + channels) {}
  struct Put {
    const float *scales, *shifts;
    float *centre, *factor, *shift;
    __device__ void operator()(int64_t c, double mean, double inv) const {
      centre[c] = static_cast<float>(mean);
      factor[c] = static_cast<float>(inv * scales[c]);
      shift[c] = static_cast<float>(shifts[c] - (mean - centre[c]) * inv * scales[c]);
    }
  };
  Put put(const Tensor& scales, const Tensor& shifts) const {
    return {scales.data<float>(), shifts.data<float>(), centre, factor, shift};
  }
  void apply(const Tensor& x, Activation act, Tensor& y, const OnDevice& on) const {
    const float *const xs = x.data<float>(), *const at = centre, *const by = factor,
                       *const plus = shift;
    float* const ys = y.mutable_data<float>();
    const cuda::Divisor channels(room.shape()[1]);
    each(x.numel(), on, [=] __device__(int64_t i) {
      const int64_t c = channels.rest(i);
      ys[i] = cuda::activate((xs[i] - at[c]) * by[c] + plus[c], act);
    });
  }

  Tensor room;
  float *centre, *factor, *shift;
};

// Statistics of the batch become those of the layer.
struct Settle {
  float *mean, *inv_std, *running_mean, *running_var;
  Line::Put put;
  int64_t rows;
  double momentum, epsilon;
  __device__ void operator()(int64_t c, double m, double variance) const {
    const double inv = 1 / sqrt(variance + epsilon);
    put(c, m, inv);
    mean[c] = static_cast<float>(m);
    inv_std[c] = static_cast<float>(inv);
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
  __device__ float dz(int64_t i) const {
    return y == nullptr ? dy[i] : dy[i] * cuda::activation_slope(y[i], act);
  }
  __device__ float xhat(int64_t i, int64_t c) const { return (x[i] - mean[c]) * inv_std[c]; }

  const float *x, *dy, *y, *mean, *inv_std;
  int64_t channels;
  Activation act;
};

}  // namespace

void Cuda::batchnorm(const Tensor& x, const Tensor& scale, const Tensor& shift, Activation act,
                     BatchNormState& state, Tensor& mean, Tensor& inv_std, Tensor& y) const {
  const OnDevice on(x);
  const int64_t channels = scale.numel();
  const Line line(x, channels);
  const Settle settle{mean.mutable_data<float>(),
                      inv_std.mutable_data<float>(),
                      state.running_mean.mutable_data<float>(),
                      state.running_var.mutable_data<float>(),
                      line.put(scale, shift),
                      row_count(x, channels),
                      state.momentum,
                      state.epsilon};
  moments(x, channels, on, settle);
  line.apply(x, act, y, on);
}

void Cuda::batchnorm_inference(const Tensor& x, const Tensor& scale, const Tensor& shift,
                               Activation act, const BatchNormState& state, Tensor& y) const {
  const OnDevice on(x);
  const int64_t channels = scale.numel();
  const double epsilon = state.epsilon;
  const Line line(x, channels);
  const Line::Put put = line.put(scale, shift);
  const float *const means = state.running_mean.data<float>(), *const variances =
                                                                   state.running_var.data<float>();
  each(channels, on,
       [=] __device__(int64_t c) { put(c, means[c], 1 / sqrt(variances[c] + epsilon)); });
  line.apply(x, act, y, on);
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
        const float dz = terms.dz(i);
        return Pair{dz * terms.xhat(i, c), dz};
      },
      [=] __device__(int64_t c, Sums total) {
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
  const auto share = static_cast<float>(1 / rows);
  const cuda::Divisor channels(terms.channels);
  each(in.x.numel(), on, [=] __device__(int64_t i) {
    const int64_t c = channels.rest(i);
    const float slope = terms.inv_std[c] * scales[c];
    out[i] = slope * (terms.dz(i) - (sum[c] + terms.xhat(i, c) * dot[c]) * share);
  });
}

}  // namespace howmany::backends
