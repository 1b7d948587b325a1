// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/backends/onednn/loops.h"
#include "core/backends/onednn/onednn.h"

// Threads divide the samples. Sums over a sample's rows are by channel, then by group.
namespace howmany::onednn {
namespace {

HM_SIMD void add_values(const float* __restrict x, int64_t rows, int64_t channels,
                        float* __restrict sum) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < channels; ++c) sum[c] += x[r * channels + c];
}

HM_SIMD void add_squares(const float* __restrict x, const float* __restrict mean, int64_t rows,
                         int64_t channels, float* __restrict sum) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < channels; ++c) {
      const float off = x[r * channels + c] - mean[c];
      sum[c] += off * off;
    }
}

HM_SIMD void add_products(const float* __restrict x, const float* __restrict dy,
                          const float* __restrict mean, const float* __restrict inv, int64_t rows,
                          int64_t channels, float* __restrict dots, float* __restrict sums) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < channels; ++c) {
      const float d = dy[r * channels + c];
      dots[c] += d * ((x[r * channels + c] - mean[c]) * inv[c]);
      sums[c] += d;
    }
}

HM_SIMD void normalize_rows(const float* __restrict x, const float* __restrict mean,
                            const float* __restrict inv, const float* __restrict scale,
                            const float* __restrict shift, int64_t rows, int64_t channels,
                            float* __restrict y) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < channels; ++c)
      y[r * channels + c] = (x[r * channels + c] - mean[c]) * inv[c] * scale[c] + shift[c];
}

// dot and sum are those of the channel's group, divided by its size.
HM_SIMD void input_gradient(const float* __restrict x, const float* __restrict dy,
                            const float* __restrict mean, const float* __restrict inv,
                            const float* __restrict scale, const float* __restrict dot,
                            const float* __restrict sum, int64_t rows, int64_t channels,
                            float* __restrict dx) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < channels; ++c) {
      const float xhat = (x[r * channels + c] - mean[c]) * inv[c];
      dx[r * channels + c] = inv[c] * (dy[r * channels + c] * scale[c] - sum[c] - xhat * dot[c]);
    }
}

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

// The shape of x and the loops over a sample.
struct Samples {
  Samples(const Tensor& x, int64_t group_count)
      : count(x.shape()[0]),
        channels(x.shape()[-1]),
        rows(x.numel() / std::max<int64_t>(1, count * channels)),
        groups(group_count),
        each(channels / group_count) {}

  size_t width() const { return static_cast<size_t>(channels); }
  double group_size() const { return static_cast<double>(rows * each); }
  // Sums of each group, one per channel.
  Doubles spread(const Doubles& of_channels) const {
    Doubles all(width());
    for (int64_t g = 0; g < groups; ++g) {
      double sum = 0;
      for (int64_t c = g * each; c < (g + 1) * each; ++c)
        sum += of_channels[static_cast<size_t>(c)];
      for (int64_t c = g * each; c < (g + 1) * each; ++c) all[static_cast<size_t>(c)] = sum;
    }
    return all;
  }
  Floats spread(const float* of_groups) const {
    Floats all(width());
    for (int64_t c = 0; c < channels; ++c) all[static_cast<size_t>(c)] = of_groups[c / each];
    return all;
  }

  int64_t count, channels, rows, groups, each;
};

void forward_sample(const Samples& s, const float* x, const float* scale, const float* shift,
                    double epsilon, float* means, float* invs, float* y) {
  const Doubles sums =
      s.spread(column_sums<1>(s.rows, s.channels, [&](int64_t row, int64_t end, float* sum) {
        add_values(x + row * s.channels, end - row, s.channels, sum);
      }));
  for (int64_t g = 0; g < s.groups; ++g)
    means[g] = static_cast<float>(sums[static_cast<size_t>(g * s.each)] / s.group_size());
  const Floats mean = s.spread(means);
  const Doubles squares =
      s.spread(column_sums<1>(s.rows, s.channels, [&](int64_t row, int64_t end, float* sum) {
        add_squares(x + row * s.channels, mean.data(), end - row, s.channels, sum);
      }));
  for (int64_t g = 0; g < s.groups; ++g)
    invs[g] = static_cast<float>(
        1 / std::sqrt(squares[static_cast<size_t>(g * s.each)] / s.group_size() + epsilon));
  normalize_rows(x, mean.data(), s.spread(invs).data(), scale, shift, s.rows, s.channels, y);
}

// Returns the channels' gradients of scale, then those of shift.
Doubles backward_sample(const Samples& s, const float* x, const float* scale, const float* dy,
                        const float* means, const float* invs, float* dx) {
  const Floats mean = s.spread(means), inv = s.spread(invs);
  const Doubles sums =
      column_sums<2>(s.rows, s.channels, [&](int64_t row, int64_t end, float* sum) {
        add_products(x + row * s.channels, dy + row * s.channels, mean.data(), inv.data(),
                     end - row, s.channels, sum, sum + s.channels);
      });
  Doubles dots(s.width()), plain(s.width());
  for (size_t c = 0; c < s.width(); ++c) {
    dots[c] = sums[c] * static_cast<double>(scale[c]) / s.group_size();
    plain[c] = sums[s.width() + c] * static_cast<double>(scale[c]) / s.group_size();
  }
  const Doubles dot_of_group = s.spread(dots), sum_of_group = s.spread(plain);
  const Floats dot(dot_of_group.begin(), dot_of_group.end()),
      sum(sum_of_group.begin(), sum_of_group.end());
  input_gradient(x, dy, mean.data(), inv.data(), scale, dot.data(), sum.data(), s.rows, s.channels,
                 dx);
  return sums;
}

}  // namespace

void OneDnn::groupnorm(const Tensor& x, int64_t groups, const Tensor& scale, const Tensor& shift,
                       double epsilon, Tensor& mean, Tensor& inv_std, Tensor& y) const {
  const Samples s(x, groups);
  const int64_t numel = s.rows * s.channels;
  const float *in = x.data<float>(), *scales = scale.data<float>(), *shifts = shift.data<float>();
  float *means = mean.mutable_data<float>(), *invs = inv_std.mutable_data<float>(),
        *out = y.mutable_data<float>();
  parallel_for(s.count, numel, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n)
      forward_sample(s, in + n * numel, scales, shifts, epsilon, means + n * groups,
                     invs + n * groups, out + n * numel);
  });
}

void OneDnn::groupnorm_backward(const Tensor& x, int64_t groups, const Tensor& scale,
                                const Tensor& dy, const Tensor& mean, const Tensor& inv_std,
                                Tensor& dx, GradOut& dscale, GradOut& dshift) const {
  const Samples s(x, groups);
  const int64_t numel = s.rows * s.channels;
  const float *in = x.data<float>(), *scales = scale.data<float>(), *d = dy.data<float>(),
              *means = mean.data<float>(), *invs = inv_std.data<float>();
  float* out = dx.mutable_data<float>();
  std::vector<Doubles> of_samples(static_cast<size_t>(s.count));
  parallel_for(s.count, numel, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n)
      of_samples[static_cast<size_t>(n)] =
          backward_sample(s, in + n * numel, scales, d + n * numel, means + n * groups,
                          invs + n * groups, out + n * numel);
  });
  Doubles sums(2 * s.width());
  for (const Doubles& one : of_samples)
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += one[i];
  store(dscale, std::span<const double>(sums).first(s.width()));
  store(dshift, std::span<const double>(sums).last(s.width()));
}

}  // namespace howmany::onednn
