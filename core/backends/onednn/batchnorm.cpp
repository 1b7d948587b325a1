// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/backends/onednn/loops.h"
#include "core/backends/onednn/onednn.h"

// x is [rows, C]. Memory-bound: forward reads x twice and writes y; backward reads x and dy twice
// and writes dx. Backward recomputes the mask of a fused relu from x instead of reading y.
namespace howmany::onednn {
namespace {

using Floats = std::vector<float>;

int64_t row_count(const Tensor& x, int64_t channels) {
  return channels == 0 ? 0 : x.numel() / channels;
}

// Adds x - pivot and its square. A pivot near the mean avoids cancellation in the variance.
HM_SIMD void add_moments(const float* __restrict x, const float* __restrict pivot, int64_t rows,
                         int64_t channels, float* __restrict sum, float* __restrict square) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t c = 0; c < channels; ++c) {
      const float d = x[row * channels + c] - pivot[c];
      sum[c] += d;
      square[c] += d * d;
    }
}

HM_SIMD void normalize(const float* __restrict x, const float* __restrict mean,
                       const float* __restrict slope, const float* __restrict shift, bool relu,
                       int64_t rows, int64_t channels, float* __restrict y) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t c = 0; c < channels; ++c) {
      const float z = (x[row * channels + c] - mean[c]) * slope[c] + shift[c];
      y[row * channels + c] = relu && z < 0 ? 0 : z;
    }
}

// Adds dz and dz (x - mean), where dz is the gradient of relu's input.
HM_SIMD void add_backward_sums(const float* __restrict x, const float* __restrict dy,
                               const float* __restrict mean, const float* __restrict slope,
                               const float* __restrict shift, bool relu, int64_t rows,
                               int64_t channels, float* __restrict sum, float* __restrict dot) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t c = 0; c < channels; ++c) {
      const float d = x[row * channels + c] - mean[c];
      const float dz = relu && !(d * slope[c] + shift[c] > 0) ? 0 : dy[row * channels + c];
      sum[c] += dz;
      dot[c] += dz * d;
    }
}

// dx = slope dz - offset - tilt (x - mean)
HM_SIMD void backward_rows(const float* __restrict x, const float* __restrict dy,
                           const float* __restrict mean, const float* __restrict slope,
                           const float* __restrict shift, const float* __restrict offset,
                           const float* __restrict tilt, bool relu, int64_t rows, int64_t channels,
                           float* __restrict dx) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t c = 0; c < channels; ++c) {
      const float d = x[row * channels + c] - mean[c];
      const float dz = relu && !(d * slope[c] + shift[c] > 0) ? 0 : dy[row * channels + c];
      dx[row * channels + c] = slope[c] * dz - offset[c] - tilt[c] * d;
    }
}

// Returns the mean of up to 16 rows at equal distances.
Floats pivots(const float* x, int64_t rows, int64_t channels) {
  const int64_t samples = std::min<int64_t>(rows, 16);
  Floats pivot(static_cast<size_t>(channels));
  for (int64_t s = 0; s < samples; ++s)
    for (int64_t c = 0; c < channels; ++c)
      pivot[c] += x[rows * s / samples * channels + c] / static_cast<float>(samples);
  return pivot;
}

Floats slopes(const Tensor& scale, const float* inv_std) {
  Floats slope(scale.values<float>().begin(), scale.values<float>().end());
  for (size_t c = 0; c < slope.size(); ++c) slope[c] *= inv_std[c];
  return slope;
}

void apply(const Tensor& x, const float* mean, const Floats& slope, const Tensor& shift,
           Activation act, Tensor& y) {
  const int64_t channels = shift.numel();
  const float *in = x.data<float>(), *shifts = shift.data<float>();
  float* out = y.mutable_data<float>();
  parallel_for(row_count(x, channels), channels, [&](int64_t begin, int64_t end) {
    normalize(in + begin * channels, mean, slope.data(), shifts, act == Activation::relu,
              end - begin, channels, out + begin * channels);
  });
}

void move_towards(float& running, double target, double momentum) {
  running = static_cast<float>((1 - momentum) * static_cast<double>(running) + momentum * target);
}

}  // namespace

void OneDnn::batchnorm_moments(const Tensor& x, Tensor& mean, Tensor& variance) const {
  const int64_t channels = mean.numel(), rows = row_count(x, channels);
  const float* in = x.data<float>();
  const Floats pivot = pivots(in, rows, channels);
  const std::vector<double> sums =
      column_sums<2>(rows, channels, [&](int64_t begin, int64_t end, float* sum) {
        add_moments(in + begin * channels, pivot.data(), end - begin, channels, sum,
                    sum + channels);
      });
  float *means = mean.mutable_data<float>(), *variances = variance.mutable_data<float>();
  const auto n = static_cast<double>(std::max<int64_t>(rows, 1));
  for (int64_t c = 0; c < channels; ++c) {
    const double off = sums[c] / n;
    means[c] = static_cast<float>(static_cast<double>(pivot[c]) + off);
    // In this order, std::max() returns NaN if the difference is NaN.
    variances[c] = static_cast<float>(std::max(sums[channels + c] / n - off * off, 0.0));
  }
}

void OneDnn::batchnorm(const Tensor& x, const Tensor& scale, const Tensor& shift, Activation act,
                       BatchNormState& state, Tensor& mean, Tensor& inv_std, Tensor& y) const {
  const int64_t channels = scale.numel(), rows = row_count(x, channels);
  batchnorm_moments(x, mean, inv_std);  // inv_std holds the variance until the loop below
  float *means = mean.mutable_data<float>(), *invs = inv_std.mutable_data<float>();
  float *running_mean = state.running_mean.mutable_data<float>(),
        *running_var = state.running_var.mutable_data<float>();
  const auto n = static_cast<double>(rows);
  for (int64_t c = 0; c < channels; ++c) {
    const auto variance = static_cast<double>(invs[c]);
    invs[c] = static_cast<float>(1 / std::sqrt(variance + state.epsilon));
    if (rows < 2) continue;
    move_towards(running_mean[c], static_cast<double>(means[c]), state.momentum);
    move_towards(running_var[c], variance * n / (n - 1), state.momentum);
  }
  apply(x, means, slopes(scale, invs), shift, act, y);
}

void OneDnn::batchnorm_inference(const Tensor& x, const Tensor& scale, const Tensor& shift,
                                 Activation act, const BatchNormState& state, Tensor& y) const {
  Floats inv_std(state.running_var.values<float>().begin(),
                 state.running_var.values<float>().end());
  for (float& v : inv_std)
    v = static_cast<float>(1 / std::sqrt(static_cast<double>(v) + state.epsilon));
  apply(x, state.running_mean.data<float>(), slopes(scale, inv_std.data()), shift, act, y);
}

void OneDnn::batchnorm_backward_sums(const BatchNormBackward& in, Tensor& dots,
                                     Tensor& sums) const {
  const int64_t channels = in.scale.numel(), rows = row_count(in.x, channels);
  const float *xs = in.x.data<float>(), *dys = in.dy.data<float>(), *means = in.mean.data<float>(),
              *invs = in.inv_std.data<float>(), *shifts = in.shift.data<float>();
  const Floats slope = slopes(in.scale, invs);
  const std::vector<double> both =
      column_sums<2>(rows, channels, [&](int64_t begin, int64_t end, float* sum) {
        const int64_t at = begin * channels;
        add_backward_sums(xs + at, dys + at, means, slope.data(), shifts,
                          in.act == Activation::relu, end - begin, channels, sum, sum + channels);
      });
  float *dot = dots.mutable_data<float>(), *sum = sums.mutable_data<float>();
  for (int64_t c = 0; c < channels; ++c) {
    sum[c] = static_cast<float>(both[c]);
    dot[c] = static_cast<float>(both[channels + c] * static_cast<double>(invs[c]));
  }
}

void OneDnn::batchnorm_backward_input(const BatchNormBackward& in, const Tensor& dots,
                                      const Tensor& sums, double rows, Tensor& dx) const {
  const int64_t channels = in.scale.numel();
  const float *xs = in.x.data<float>(), *dys = in.dy.data<float>(), *means = in.mean.data<float>(),
              *invs = in.inv_std.data<float>(), *shifts = in.shift.data<float>(),
              *dot = dots.data<float>(), *sum = sums.data<float>();
  const Floats slope = slopes(in.scale, invs);
  Floats offset(slope.size()), tilt(slope.size());
  for (size_t c = 0; c < slope.size(); ++c) {
    const double share = static_cast<double>(slope[c]) / rows;
    offset[c] = static_cast<float>(share * static_cast<double>(sum[c]));
    tilt[c] =
        static_cast<float>(share * static_cast<double>(invs[c]) * static_cast<double>(dot[c]));
  }
  float* out = dx.mutable_data<float>();
  parallel_for(row_count(in.x, channels), channels, [&](int64_t begin, int64_t end) {
    const int64_t at = begin * channels;
    backward_rows(xs + at, dys + at, means, slope.data(), shifts, offset.data(), tilt.data(),
                  in.act == Activation::relu, end - begin, channels, out + at);
  });
}

}  // namespace howmany::onednn
