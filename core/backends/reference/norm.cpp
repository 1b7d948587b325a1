// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/backends/reference/reference.h"

// Batch norm normalizes the columns of x [rows, channels]; layer norm normalizes its rows.
namespace howmany::backends {
namespace {

int64_t row_count(const Tensor& x, int64_t width) { return width == 0 ? 0 : x.numel() / width; }

// Layer norm is group norm with each row as a sample of one group.
Tensor as_rows(const Tensor& x, const Tensor& scale) {
  return x.view({row_count(x, scale.numel()), scale.numel()});
}

struct Moments {
  double mean = 0, variance = 0;  // biased
};

// Moments of n values that are `stride` apart. Mean and variance are 0 if n is 0.
template <typename T>
Moments moments(const T* x, int64_t n, int64_t stride) {
  Moments m;
  for (int64_t i = 0; i < n; ++i) m.mean += x[i * stride] / static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i)
    m.variance += (x[i * stride] - m.mean) * (x[i * stride] - m.mean) / static_cast<double>(n);
  return m;
}

template <typename T>
void move_towards(T& running, double target, double momentum) {
  running = static_cast<T>((1 - momentum) * running + momentum * target);
}

// Element [n,c] of the tensors of batch norm's backward.
template <typename T>
struct Column {
  Column(const BatchNormBackward& in, int64_t c)
      : x(in.x.data<T>() + c),
        dy(in.dy.data<T>() + c),
        y(in.act == Activation::none ? nullptr : in.y.data<T>() + c),
        stride(in.scale.numel()),
        mean(in.mean.data<T>()[c]),
        inv_std(in.inv_std.data<T>()[c]),
        act(in.act) {}
  double dz(int64_t n) const {
    const double d = dy[n * stride];
    return y == nullptr ? d : d * activation_slope(y[n * stride], act);
  }
  double xhat(int64_t n) const { return (double{x[n * stride]} - mean) * inv_std; }

  const T *x, *dy, *y;
  int64_t stride;
  double mean, inv_std;
  Activation act;
};

// A group of channels of one sample of x [N,rows,C].
struct Group {
  Group(const Tensor& x, int64_t groups, int64_t cell)
      : channels(x.shape()[-1]),
        each(channels / groups),
        rows(x.numel() / std::max<int64_t>(1, x.shape()[0] * channels)),
        first_channel(cell % groups * each),
        first(cell / groups * rows * channels + first_channel) {}
  int64_t count() const { return rows * each; }
  int64_t at(int64_t i) const { return first + i / each * channels + i % each; }
  int64_t channel(int64_t i) const { return first_channel + i % each; }

  int64_t channels, each, rows, first_channel, first;
};

}  // namespace

void Reference::batchnorm(const Tensor& x, const Tensor& scale, const Tensor& shift, Activation act,
                          BatchNormState& state, Tensor& mean, Tensor& inv_std, Tensor& y) const {
  const int64_t channels = scale.numel(), rows = row_count(x, channels);
  by_type(x, [&]<typename T>(T) {
    const T *xs = x.data<T>(), *scales = scale.data<T>(), *shifts = shift.data<T>();
    T *means = mean.mutable_data<T>(), *invs = inv_std.mutable_data<T>(), *ys = y.mutable_data<T>();
    for (int64_t c = 0; c < channels; ++c) {
      const Moments m = moments(xs + c, rows, channels);
      const double inv = 1 / std::sqrt(m.variance + state.epsilon);
      means[c] = static_cast<T>(m.mean);
      invs[c] = static_cast<T>(inv);
      for (int64_t i = c; i < x.numel(); i += channels)
        ys[i] = static_cast<T>(activate((xs[i] - m.mean) * inv * scales[c] + shifts[c], act));
      if (rows < 2) continue;  // an empty batch; ops.h rejects one row
      const double unbiased =
          m.variance * static_cast<double>(rows) / static_cast<double>(rows - 1);
      move_towards(state.running_mean.mutable_data<T>()[c], m.mean, state.momentum);
      move_towards(state.running_var.mutable_data<T>()[c], unbiased, state.momentum);
    }
  });
}

void Reference::batchnorm_inference(const Tensor& x, const Tensor& scale, const Tensor& shift,
                                    Activation act, const BatchNormState& state, Tensor& y) const {
  const int64_t channels = scale.numel();
  by_type(x, [&]<typename T>(T) {
    const T *xs = x.data<T>(), *scales = scale.data<T>(), *shifts = shift.data<T>();
    const T *means = state.running_mean.data<T>(), *variances = state.running_var.data<T>();
    T* ys = y.mutable_data<T>();
    for (int64_t i = 0; i < x.numel(); ++i) {
      const int64_t c = i % channels;
      const double inv = 1 / std::sqrt(variances[c] + state.epsilon);
      const double z = (double{xs[i]} - means[c]) * inv * scales[c] + shifts[c];
      ys[i] = static_cast<T>(activate(z, act));
    }
  });
}

void Reference::batchnorm_moments(const Tensor& x, Tensor& mean, Tensor& variance) const {
  const int64_t channels = mean.numel(), rows = row_count(x, channels);
  by_type(x, [&]<typename T>(T) {
    for (int64_t c = 0; c < channels; ++c) {
      const Moments m = moments(x.data<T>() + c, rows, channels);
      mean.mutable_data<T>()[c] = static_cast<T>(m.mean);
      variance.mutable_data<T>()[c] = static_cast<T>(m.variance);
    }
  });
}

void Reference::batchnorm_backward_sums(const BatchNormBackward& in, Tensor& dots,
                                        Tensor& sums) const {
  const int64_t channels = in.scale.numel(), rows = row_count(in.x, channels);
  by_type(in.x, [&]<typename T>(T) {
    for (int64_t c = 0; c < channels; ++c) {
      const Column<T> column(in, c);
      double dot = 0, sum = 0;
      for (int64_t n = 0; n < rows; ++n) {
        dot += column.dz(n) * column.xhat(n);
        sum += column.dz(n);
      }
      dots.mutable_data<T>()[c] = static_cast<T>(dot);
      sums.mutable_data<T>()[c] = static_cast<T>(sum);
    }
  });
}

void Reference::batchnorm_backward_input(const BatchNormBackward& in, const Tensor& dots,
                                         const Tensor& sums, double rows, Tensor& dx) const {
  const int64_t channels = in.scale.numel(), mine = row_count(in.x, channels);
  by_type(in.x, [&]<typename T>(T) {
    T* dxs = dx.mutable_data<T>();
    for (int64_t c = 0; c < channels; ++c) {
      const Column<T> column(in, c);
      const double dot = dots.data<T>()[c], sum = sums.data<T>()[c];
      const double slope = column.inv_std * in.scale.data<T>()[c];
      for (int64_t n = 0; n < mine; ++n)
        dxs[n * channels + c] =
            static_cast<T>(slope * (column.dz(n) - (sum + column.xhat(n) * dot) / rows));
    }
  });
}

void Reference::layernorm(const Tensor& x, const Tensor& scale, const Tensor& shift, double epsilon,
                          Tensor& mean, Tensor& inv_std, Tensor& y) const {
  Tensor rows = as_rows(y, scale);
  groupnorm(as_rows(x, scale), 1, scale, shift, epsilon, mean, inv_std, rows);
}

void Reference::layernorm_backward(const Tensor& x, const Tensor& scale, const Tensor& dy,
                                   const Tensor& mean, const Tensor& inv_std, Tensor& dx,
                                   GradOut& dscale, GradOut& dshift) const {
  Tensor rows = as_rows(dx, scale);
  groupnorm_backward(as_rows(x, scale), 1, scale, as_rows(dy, scale), mean, inv_std, rows, dscale,
                     dshift);
}

void Reference::groupnorm(const Tensor& x, int64_t groups, const Tensor& scale, const Tensor& shift,
                          double epsilon, Tensor& mean, Tensor& inv_std, Tensor& y) const {
  by_type(x, [&]<typename T>(T) {
    for (int64_t cell = 0; cell < mean.numel(); ++cell) {
      const Group g(x, groups, cell);
      const double count = static_cast<double>(g.count());
      double m = 0, variance = 0;
      for (int64_t i = 0; i < g.count(); ++i) m += x.data<T>()[g.at(i)] / count;
      for (int64_t i = 0; i < g.count(); ++i)
        variance += (x.data<T>()[g.at(i)] - m) * (x.data<T>()[g.at(i)] - m) / count;
      const double inv = 1 / std::sqrt(variance + epsilon);
      mean.mutable_data<T>()[cell] = static_cast<T>(m);
      inv_std.mutable_data<T>()[cell] = static_cast<T>(inv);
      for (int64_t i = 0; i < g.count(); ++i)
        y.mutable_data<T>()[g.at(i)] =
            static_cast<T>((x.data<T>()[g.at(i)] - m) * inv * scale.data<T>()[g.channel(i)] +
                           shift.data<T>()[g.channel(i)]);
    }
  });
}

void Reference::groupnorm_backward(const Tensor& x, int64_t groups, const Tensor& scale,
                                   const Tensor& dy, const Tensor& mean, const Tensor& inv_std,
                                   Tensor& dx, GradOut& dscale, GradOut& dshift) const {
  by_type(x, [&]<typename T>(T) {
    Doubles dscales = zeros(scale.numel()), dshifts = zeros(scale.numel());
    for (int64_t cell = 0; cell < mean.numel(); ++cell) {
      const Group g(x, groups, cell);
      const double m = mean.data<T>()[cell], inv = inv_std.data<T>()[cell];
      const auto dz = [&](int64_t i) { return double{dy.data<T>()[g.at(i)]}; };
      const auto d = [&](int64_t i) { return dz(i) * scale.data<T>()[g.channel(i)]; };
      const auto xhat = [&](int64_t i) { return (double{x.data<T>()[g.at(i)]} - m) * inv; };
      double sum = 0, dot = 0;  // of d, the gradient of xhat
      for (int64_t i = 0; i < g.count(); ++i) {
        sum += d(i);
        dot += d(i) * xhat(i);
        dscales[static_cast<size_t>(g.channel(i))] += dz(i) * xhat(i);
        dshifts[static_cast<size_t>(g.channel(i))] += dz(i);
      }
      for (int64_t i = 0; i < g.count(); ++i)
        dx.mutable_data<T>()[g.at(i)] =
            static_cast<T>(inv * (d(i) - (sum + xhat(i) * dot) / static_cast<double>(g.count())));
    }
    store<T>(dscales, dscale);
    store<T>(dshifts, dshift);
  });
}

void Reference::rmsnorm(const Tensor& x, const Tensor& scale, double epsilon, Tensor& inv_rms,
                        Tensor& y) const {
  const int64_t width = scale.numel(), rows = row_count(x, width);
  by_type(x, [&]<typename T>(T) {
    const T *xs = x.data<T>(), *scales = scale.data<T>();
    T *invs = inv_rms.mutable_data<T>(), *ys = y.mutable_data<T>();
    for (int64_t n = 0; n < rows; ++n) {
      double square = 0;
      for (int64_t c = 0; c < width; ++c)
        square += double{xs[n * width + c]} * xs[n * width + c] / static_cast<double>(width);
      const double inv = 1 / std::sqrt(square + epsilon);
      invs[n] = static_cast<T>(inv);
      for (int64_t c = 0; c < width; ++c)
        ys[n * width + c] = static_cast<T>(xs[n * width + c] * inv * scales[c]);
    }
  });
}

void Reference::rmsnorm_backward(const Tensor& x, const Tensor& scale, const Tensor& dy,
                                 const Tensor& inv_rms, Tensor& dx, GradOut& dscale) const {
  const int64_t width = scale.numel(), rows = row_count(x, width);
  by_type(x, [&]<typename T>(T) {
    const T *xs = x.data<T>(), *dys = dy.data<T>(), *scales = scale.data<T>();
    const T* invs = inv_rms.data<T>();
    T* dxs = dx.mutable_data<T>();
    Doubles dscales = zeros(width);
    for (int64_t n = 0; n < rows; ++n) {
      const auto dz = [&](int64_t c) { return double{dys[n * width + c]}; };
      const auto xhat = [&](int64_t c) { return double{xs[n * width + c]} * invs[n]; };
      double dot = 0;
      for (int64_t c = 0; c < width; ++c) {
        dscales[c] += dz(c) * xhat(c);
        dot += dz(c) * scales[c] * xhat(c) / static_cast<double>(width);
      }
      for (int64_t c = 0; c < width; ++c)
        dxs[n * width + c] = static_cast<T>(invs[n] * (dz(c) * scales[c] - xhat(c) * dot));
    }
    store<T>(dscales, dscale);
  });
}

}  // namespace howmany::backends
