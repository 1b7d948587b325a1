// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/backends/reference/reference.h"

namespace howmany::backends {
namespace {

// Calls f(y pixel, x pixel, tap) for every window element that is not padding. A pixel is a flat
// index over [N,H,W]; a tap is one over [K,K].
template <typename F>
void for_each_tap(const Shape& x, const Shape& y, Window w, F&& f) {
  for (int64_t n = 0; n < y[0]; ++n)
    for (int64_t oy = 0; oy < y[1]; ++oy)
      for (int64_t ox = 0; ox < y[2]; ++ox)
        for (int64_t tap = 0; tap < w.size * w.size; ++tap) {
          const int64_t iy = oy * w.stride - w.padding + tap / w.size;
          const int64_t ix = ox * w.stride - w.padding + tap % w.size;
          if (iy < 0 || iy >= x[1] || ix < 0 || ix >= x[2]) continue;
          f((n * y[1] + oy) * y[2] + ox, (n * x[1] + iy) * x[2] + ix, tap);
        }
}

}  // namespace

void Reference::conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, Window window,
                       Tensor& y) const {
  const int64_t in = x.shape()[3], out = w.shape()[0], taps = window.size * window.size;
  by_type(x, [&]<typename T>(T) {
    const T *xs = x.data<T>(), *ws = w.data<T>();
    Doubles ys = zeros(y.numel());
    if (bias)
      for (int64_t i = 0; i < y.numel(); ++i) ys[i] = bias.data<T>()[i % out];
    for_each_tap(x.shape(), y.shape(), window, [&](int64_t to, int64_t from, int64_t tap) {
      for (int64_t o = 0; o < out; ++o)
        for (int64_t c = 0; c < in; ++c)
          ys[to * out + o] += double{xs[from * in + c]} * double{ws[(o * taps + tap) * in + c]};
    });
    store<T>(ys, y);
  });
}

void Reference::conv2d_backward(const Tensor& x, const Tensor& w, const Tensor& dy, Window window,
                                Tensor& dx, GradOut& dw, GradOut& dbias) const {
  const int64_t in = x.shape()[3], out = w.shape()[0], taps = window.size * window.size;
  by_type(x, [&]<typename T>(T) {
    const T *xs = x.data<T>(), *ws = w.data<T>(), *dys = dy.data<T>();
    Doubles dxs = zeros(x.numel()), dws = zeros(w.numel()), dbs = zeros(out);
    for (int64_t i = 0; i < dy.numel(); ++i) dbs[i % out] += dys[i];
    for_each_tap(x.shape(), dy.shape(), window, [&](int64_t to, int64_t from, int64_t tap) {
      for (int64_t o = 0; o < out; ++o)
        for (int64_t c = 0; c < in; ++c) {
          const int64_t at = (o * taps + tap) * in + c;
          dxs[from * in + c] += double{dys[to * out + o]} * double{ws[at]};
          dws[at] += double{dys[to * out + o]} * double{xs[from * in + c]};
        }
    });
    if (dx) store<T>(dxs, dx);
    store<T>(dws, dw);
    store<T>(dbs, dbias);
  });
}

void Reference::max_pool(const Tensor& x, Window window, Tensor& chosen, Tensor& y) const {
  const int64_t channels = x.shape()[3], image = x.shape()[1] * x.shape()[2];
  by_type(x, [&]<typename T>(T) {
    const T* xs = x.data<T>();
    T* ys = y.mutable_data<T>();
    int32_t* winners = chosen.mutable_data<int32_t>();
    std::fill_n(winners, chosen.numel(), -1);
    for_each_tap(x.shape(), y.shape(), window, [&](int64_t to, int64_t from, int64_t) {
      for (int64_t c = 0; c < channels; ++c) {
        const T value = xs[from * channels + c];
        T& best = ys[to * channels + c];
        int32_t& winner = winners[to * channels + c];
        if (winner >= 0 && !(value > best) && !std::isnan(value)) continue;
        best = value;
        winner = static_cast<int32_t>(from % image);
      }
    });
  });
}

void Reference::max_pool_backward(const Tensor& chosen, const Tensor& dy, Window,
                                  Tensor& dx) const {
  const int64_t channels = dx.shape()[3], image = dx.shape()[1] * dx.shape()[2];
  const int64_t outputs = dy.shape()[1] * dy.shape()[2] * channels;
  by_type(dy, [&]<typename T>(T) {
    const T* dys = dy.data<T>();
    const int32_t* winners = chosen.data<int32_t>();
    Doubles dxs = zeros(dx.numel());
    for (int64_t i = 0; i < dy.numel(); ++i)
      dxs[(i / outputs * image + winners[i]) * channels + i % channels] += dys[i];
    store<T>(dxs, dx);
  });
}

void Reference::avg_pool(const Tensor& x, Window window, Tensor& y) const {
  const int64_t channels = x.shape()[3];
  const double share = 1 / static_cast<double>(window.size * window.size);
  by_type(x, [&]<typename T>(T) {
    const T* xs = x.data<T>();
    Doubles ys = zeros(y.numel());
    for_each_tap(x.shape(), y.shape(), window, [&](int64_t to, int64_t from, int64_t) {
      for (int64_t c = 0; c < channels; ++c)
        ys[to * channels + c] += share * xs[from * channels + c];
    });
    store<T>(ys, y);
  });
}

void Reference::avg_pool_backward(const Tensor& dy, Window window, Tensor& dx) const {
  const int64_t channels = dx.shape()[3];
  const double share = 1 / static_cast<double>(window.size * window.size);
  by_type(dy, [&]<typename T>(T) {
    const T* dys = dy.data<T>();
    Doubles dxs = zeros(dx.numel());
    for_each_tap(dx.shape(), dy.shape(), window, [&](int64_t to, int64_t from, int64_t) {
      for (int64_t c = 0; c < channels; ++c)
        dxs[from * channels + c] += share * dys[to * channels + c];
    });
    store<T>(dxs, dx);
  });
}

}  // namespace howmany::backends
