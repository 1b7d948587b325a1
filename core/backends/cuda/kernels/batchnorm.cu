// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/kernels/columns.cuh"
#include "core/backends/cuda/runtime/cuda.h"

// Batch norm over the columns of x [rows, channels]. Own kernels, because cuDNN's batch norm does
// not share statistics over replicas. Values per channel are double and stored in f32. Values per
// element are f32 and stored in the dtype of x.
namespace howmany::backends {
namespace {

using cuda::by_16;
using cuda::by_element;
using cuda::each_lane;
using cuda::each_pack;
using cuda::Floats;
using cuda::kLanes;
using cuda::Lanes;
using cuda::load;
using cuda::OnDevice;
using cuda::Pair;
using cuda::Pairs;
using cuda::store;
using cuda::Sums;

int64_t row_count(const Tensor& x, int64_t width) { return width == 0 ? 0 : x.numel() / width; }

// Sums squares and values in one pass (Chan, Golub and LeVeque 1983). Within a block of rows,
// values are relative to the block's first row, so that f32 suffices. Blocks are combined in
// double, relative to the first row of all.
template <typename T>
struct Spread {
  const T* x;
  int64_t channels;

  template <int kWide>
  __device__ Pairs<kWide> term(int64_t row, int64_t first, int64_t c, Lanes<kWide> lanes) const {
    const auto v = load(x + row * channels + c, lanes),
               from = load(x + first * channels + c, lanes);
    return each_lane(lanes, [&](int l) {
      const float off = v.at[l] - from.at[l];
      return Pair{off * off, off};
    });
  }
  template <int kWide>
  __device__ auto close(const Pairs<kWide>& sums, int64_t first, int64_t rows, int64_t c,
                        Lanes<kWide> lanes) const {
    const auto from = load(x + first * channels + c, lanes), origin = load(x + c, lanes);
    return each_lane(lanes, [&](int l) {
      const double n = static_cast<double>(rows), off = sums.at[l].b,
                   shift = static_cast<double>(from.at[l]) - origin.at[l];
      return Sums{sums.at[l].a + shift * (2 * off + n * shift), off + n * shift};
    });
  }
};

// Calls g(channel, mean, biased variance) for every channel.
template <typename T, typename G>
void moments_of(const Tensor& x, int64_t channels, const OnDevice& on, G g) {
  const int64_t rows = row_count(x, channels);
  const T* const xs = x.data<T>();
  cuda::reduce_blocks<kLanes<T>>(rows, channels, by_16(xs), x.device(), on, Spread<T>{xs, channels},
                                 [=] __device__(int64_t c, Sums sum) {
                                   if (rows == 0) return g(c, 0, 0);
                                   const double n = static_cast<double>(rows), off = sum.b / n,
                                                variance = sum.a / n - off * off;
                                   g(c, static_cast<double>(static_cast<float>(xs[c])) + off,
                                     variance < 0 ? 0 : variance);
                                 });
}

template <typename G>
void moments(const Tensor& x, int64_t channels, const OnDevice& on, const G& g) {
  by_element(x.dtype(), [&](auto e) { moments_of<decltype(e)>(x, channels, on, g); });
}

__device__ void move_towards(float& running, double target, double momentum) {
  running = static_cast<float>((1 - momentum) * running + momentum * target);
}

// act(factor (x - centre) + shift) in f32, with values per channel. The shift corrects the rounding
// of the centre.
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

  Tensor room;
  float *centre, *factor, *shift;
};

// Returns true if rows divide into packs of `lanes` adjacent channels.
bool packs(int64_t channels, int lanes) { return channels % lanes == 0; }

template <typename T>
void apply(const Line& line, const Tensor& x, Activation act, Tensor& y, const OnDevice& on) {
  const T* const xs = x.data<T>();
  const float *const at = line.centre, *const by = line.factor, *const plus = line.shift;
  T* const ys = y.mutable_data<T>();
  const int64_t count = line.room.shape()[1];
  const cuda::Divisor channels(count);
  const bool relu = act == Activation::relu;
  each_pack<kLanes<T>>(x.numel(), by_16(xs, ys) && packs(count, kLanes<T>), on,
                       [=] __device__(int64_t i, auto lanes) {
                         const int64_t c = channels.rest(i);
                         const auto v = load(xs + i, lanes), centre = load(at + c, lanes),
                                    factor = load(by + c, lanes), shift = load(plus + c, lanes);
                         store(ys + i, each_lane(lanes, [&](int l) {
                                 const float z =
                                     (v.at[l] - centre.at[l]) * factor.at[l] + shift.at[l];
                                 return relu && z < 0 ? 0.0f : z;  // keeps NaN
                               }));
                       });
}

void apply(const Line& line, const Tensor& x, Activation act, Tensor& y, const OnDevice& on) {
  by_element(x.dtype(), [&](auto e) { apply<decltype(e)>(line, x, act, y, on); });
}

// Stores the batch statistics and updates the running ones.
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
    if (rows < 2) return;  // one row has no variance
    const auto n = static_cast<double>(rows);
    move_towards(running_mean[c], m, momentum);
    move_towards(running_var[c], variance * n / (n - 1), momentum);
  }
};

// Loads dz and computes xhat for the elements from i on, whose channels start at c.
template <typename T>
struct Terms {
  explicit Terms(const BatchNormBackward& in)
      : x(in.x.data<T>()),
        dy(in.dy.data<T>()),
        y(in.act == Activation::none ? nullptr : in.y.data<T>()),
        mean(in.mean.data<float>()),
        inv_std(in.inv_std.data<float>()),
        channels(in.scale.numel()) {}
  bool together() const { return by_16(x, dy, y, mean, inv_std) && packs(channels, kLanes<T>); }
  template <int kCount>
  __device__ Floats<kCount> dz(int64_t i, Lanes<kCount> lanes) const {
    const auto d = load(dy + i, lanes);
    if (y == nullptr) return d;
    const auto kept = load(y + i, lanes);
    return each_lane(lanes, [&](int l) { return kept.at[l] > 0 ? d.at[l] : d.at[l] * 0; });
  }
  template <int kCount>
  __device__ Floats<kCount> xhat(int64_t i, int64_t c, Lanes<kCount> lanes) const {
    const auto v = load(x + i, lanes), m = load(mean + c, lanes), inv = load(inv_std + c, lanes);
    return each_lane(lanes, [&](int l) { return (v.at[l] - m.at[l]) * inv.at[l]; });
  }

  const T *x, *dy, *y;
  const float *mean, *inv_std;
  int64_t channels;
};

template <typename T>
void backward_sums(const BatchNormBackward& in, Tensor& dots, Tensor& sums) {
  const OnDevice on(in.x);
  const Terms<T> terms(in);
  float *const dot = dots.mutable_data<float>(), *const sum = sums.mutable_data<float>();
  cuda::reduce_columns<kLanes<T>>(
      row_count(in.x, terms.channels), terms.channels, terms.together(), in.x.device(), on,
      [=] __device__(int64_t r, int64_t c, auto lanes) {
        const int64_t i = r * terms.channels + c;
        const auto dz = terms.dz(i, lanes), xhat = terms.xhat(i, c, lanes);
        return each_lane(lanes, [&](int l) { return Pair{dz.at[l] * xhat.at[l], dz.at[l]}; });
      },
      [=] __device__(int64_t c, Sums total) {
        dot[c] = static_cast<float>(total.a);
        sum[c] = static_cast<float>(total.b);
      });
}

template <typename T>
void backward_input(const BatchNormBackward& in, const Tensor& dots, const Tensor& sums,
                    double rows, Tensor& dx) {
  const OnDevice on(in.x);
  const Terms<T> terms(in);
  const float *const dot = dots.data<float>(), *const sum = sums.data<float>(),
                     *const scales = in.scale.data<float>();
  T* const out = dx.mutable_data<T>();
  const auto share = static_cast<float>(1 / rows);
  const cuda::Divisor channels(terms.channels);
  each_pack<kLanes<T>>(
      in.x.numel(), terms.together() && by_16(dot, sum, scales, out), on,
      [=] __device__(int64_t i, auto lanes) {
        const int64_t c = channels.rest(i);
        const auto dz = terms.dz(i, lanes), xhat = terms.xhat(i, c, lanes),
                   inv = load(terms.inv_std + c, lanes), scale = load(scales + c, lanes),
                   s = load(sum + c, lanes), d = load(dot + c, lanes);
        store(out + i, each_lane(lanes, [&](int l) {
                const float slope = inv.at[l] * scale.at[l];
                return slope * (dz.at[l] - (s.at[l] + xhat.at[l] * d.at[l]) * share);
              }));
      });
}

// Writes a message to other replicas: f(a, b) per channel, then the number of rows.
template <typename F>
void send(const Tensor& a, const Tensor& b, double rows, Tensor& message, F f) {
  const OnDevice on(a);
  const int64_t channels = a.numel();
  const float *const as = a.data<float>(), *const bs = b.data<float>();
  double* const to = message.mutable_data<double>();
  cuda::each(channels + 1, on, [=] __device__(int64_t c) {
    if (c == channels) {
      to[2 * channels] = rows;
      return;
    }
    const Sums both = f(as[c], bs[c]);
    to[c] = both.a;
    to[channels + c] = both.b;
  });
}

// Calls f(channel, sum over all replicas, their total rows) for every channel.
template <typename F>
void receive(const Tensor& message, int64_t channels, F f) {
  const OnDevice on(message);
  const double* const from = message.data<double>();
  cuda::each(channels, on, [=] __device__(int64_t c) {
    const double rows = from[2 * channels], n = rows > 0 ? rows : 1;
    f(c, Sums{from[c] / n, from[channels + c] / n}, rows);
  });
}

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
  apply(line, x, act, y, on);
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
  cuda::each(channels, on,
             [=] __device__(int64_t c) { put(c, means[c], 1 / sqrt(variances[c] + epsilon)); });
  apply(line, x, act, y, on);
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

void Cuda::batchnorm_send_moments(const Tensor& mean, const Tensor& variance, double rows,
                                  Tensor& message) const {
  send(mean, variance, rows, message, [=] __device__(double m, double v) {
    return Sums{rows * m, rows * (v + m * m)};
  });
}

void Cuda::batchnorm_receive_moments(const Tensor& message, BatchNormState& state, Tensor& mean,
                                     Tensor& variance, Tensor& inv_std) const {
  float *const means = mean.mutable_data<float>(),
               *const variances = variance.mutable_data<float>(),
               *const invs = inv_std.mutable_data<float>();
  float *const running_mean = state.running_mean.mutable_data<float>(),
               *const running_var = state.running_var.mutable_data<float>();
  const double momentum = state.momentum, epsilon = state.epsilon;
  receive(message, mean.numel(), [=] __device__(int64_t c, Sums of_rows, double rows) {
    const double m = of_rows.a, spread = of_rows.b - m * m, v = spread < 0 ? 0 : spread;
    means[c] = static_cast<float>(m);
    variances[c] = static_cast<float>(v);
    invs[c] = static_cast<float>(1 / sqrt(v + epsilon));
    if (rows < 2) return;  // one row has no variance
    move_towards(running_mean[c], m, momentum);
    move_towards(running_var[c], v * rows / (rows - 1), momentum);
  });
}

void Cuda::batchnorm_send_sums(const Tensor& dots, const Tensor& sums, double rows,
                               Tensor& message) const {
  send(dots, sums, rows, message, [] __device__(double dot, double sum) { return Sums{dot, sum}; });
}

void Cuda::batchnorm_receive_sums(const Tensor& message, Tensor& dots, Tensor& sums) const {
  float *const dot = dots.mutable_data<float>(), *const sum = sums.mutable_data<float>();
  receive(message, dots.numel(), [=] __device__(int64_t c, Sums of_rows, double) {
    dot[c] = static_cast<float>(of_rows.a);
    sum[c] = static_cast<float>(of_rows.b);
  });
}

void Cuda::batchnorm_backward_sums(const BatchNormBackward& in, Tensor& dots, Tensor& sums) const {
  by_element(in.x.dtype(), [&](auto e) { backward_sums<decltype(e)>(in, dots, sums); });
}

void Cuda::batchnorm_backward_input(const BatchNormBackward& in, const Tensor& dots,
                                    const Tensor& sums, double rows, Tensor& dx) const {
  by_element(in.x.dtype(), [&](auto e) { backward_input<decltype(e)>(in, dots, sums, rows, dx); });
}

}  // namespace howmany::backends
